import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nativeSha256 as sha256 } from '../../../shared/host/native-sha256.ts'
import { toBase64 } from '../../../shared/sign/bytes.ts'
import { type Signer, signer } from '../../../shared/sign/ed25519.ts'
import { GENESIS, recordHash, type Sealed, seal } from '../../../shared/sign/record-chain.ts'
import type { Checkpoint } from '../../../shared/wire/router/checkpoint.ts'
import type { TraceRecord } from '../../../shared/wire/router/trace.ts'
import { testSigner } from '../../host/testing/store-folder.ts'
import { type ChainHead, traceText } from '../../traces/canonical-trace.ts'
import { signCheckpoint } from '../../traces/checkpoint.ts'
import { sampleTrace, sealedLine } from '../../traces/testing/records.ts'
import { verifyRecords } from '../../traces/verify.ts'
import { type ChainSource, verifyChains } from './verify-chains.ts'

const LENGTH = 12
const stranger = await signer(new Uint8Array(32).fill(9))
const keys = new Map([[testSigner.keyId, testSigner.publicKey]])

async function chain(by: Signer = testSigner, session = 's') {
  const records: TraceRecord[] = []
  const checkpoints: Checkpoint[] = []
  let head: ChainHead | undefined
  let prev_checkpoint = GENESIS
  for (let seq = 0; seq < LENGTH; seq++) {
    const sealed = sealedLine(traceText(sampleTrace({ at: seq * 1000, session })), head, sha256)
    head = sealed
    records.push(JSON.parse(sealed.body))
    if (seq % 4 !== 3) continue
    const place = { kind: 'head', tenant_id: 'default', seq, hash: sealed.hash } as const
    const rest = { feedback_seq: -1, feedback_hash: GENESIS, ts: '2026-01-02T03:04:05.678Z', prev_checkpoint }
    const { checkpoint, digest } = await signCheckpoint({ ...place, ...rest }, by, sha256)
    checkpoints.push(checkpoint)
    prev_checkpoint = digest
  }
  return { records, checkpoints }
}

const whole = await chain()

/** What a router would answer, in pages as small as they come. */
function sourceOf(
  lots: readonly (readonly unknown[])[],
  checkpoints: readonly Checkpoint[],
  by = testSigner,
  feedback: readonly unknown[] = [],
): ChainSource {
  const key = { key_id: by.keyId, alg: 'Ed25519', public_key: toBase64(by.publicKey), created_at: '' } as const
  return {
    traces: async before => {
      const at = Number(before ?? 0)
      return { traces: lots[at] ?? [], next: at + 1 < lots.length ? String(at + 1) : null }
    },
    checkpoints: async after => {
      const at = Number(after ?? 0)
      return { checkpoints: checkpoints.slice(at, at + 1), next: at + 1 < checkpoints.length ? String(at + 1) : null }
    },
    feedback: async after => {
      const at = Number(after ?? 0)
      const page = feedback.slice(at, at + 2).map(record => ({ tenant_id: 'default', record }))
      return { feedback: page, next: at + 2 < feedback.length ? String(at + 2) : null }
    },
    keys: async () => ({ v: 1, keys: [key], heads_url: '' }),
  }
}

function paged<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size))
}

async function* lines(records: readonly unknown[]) {
  yield records.map(record => ({ text: JSON.stringify(record) }))
}

/** What someone with the database may do to record `i`; the order of the list is the order of the store. */
const ATTACKS: Record<string, (records: TraceRecord[], i: number) => unknown[]> = {
  'its content': (all, i) => all.with(i, { ...all[i]!, session_id: 'other' }),
  'its number, to that of another': (all, i) => all.with(i, { ...all[i]!, seq: (i + 5) % LENGTH }),
  'its number, beyond the end': (all, i) => all.with(i, { ...all[i]!, seq: 99 }),
  'its number, to no number': (all, i) => all.with(i, { ...all[i]!, seq: 'x' } as unknown as TraceRecord),
  'its hash': (all, i) => all.with(i, { ...all[i]!, hash: 'a'.repeat(64) }),
  'its link': (all, i) => all.with(i, { ...all[i]!, prev_hash: 'a'.repeat(64) }),
  'its place, by leaving it out': (all, i) => all.toSpliced(i, 1),
  'its place, by standing twice': (all, i) => all.toSpliced(i, 0, all[i]!),
  'half a surrogate pair in it': (all, i) => all.with(i, { ...all[i]!, session_id: '\ud800' }),
  'content and hash alike': (all, i) => {
    const edited = { ...all[i]!, session_id: 'other' }
    return all.with(i, { ...edited, hash: recordHash(edited, sha256) })
  },
  'everything from it on': (all, i) => {
    let head = all[i - 1]?.hash ?? GENESIS
    return all.map((record, at) => {
      if (at < i) return record
      const edited = { ...record, session_id: 'other', prev_hash: head }
      head = recordHash(edited, sha256)
      return { ...edited, hash: head }
    })
  },
}

describe('the check in the browser', () => {
  it.each(Object.entries(ATTACKS))(
    'finds at the index of `verify` a record that was changed in %s',
    async (_, attack) => {
      await fc.assert(
        fc.asyncProperty(
          fc.nat(LENGTH - 1),
          fc.integer({ min: 1, max: LENGTH + 1 }),
          fc.boolean(),
          async (i, size, signed) => {
            const { records, checkpoints } = whole
            const attacked = attack(records, i)
            const known = signed ? checkpoints : []
            const told = await verifyRecords({ records: lines(attacked), checkpoints: known, keys, sha256 })
            // Lists are newest first. Without checkpoints only the first page is known to have been there: take one.
            const lots = paged(attacked.toReversed(), signed ? size : LENGTH + 2)
            const [verdict] = await verifyChains(sourceOf(lots, known))
            expect([verdict?.broken?.index ?? null, verdict?.records]).toEqual([
              told.tenants[0]?.broken_at,
              attacked.length,
            ])
          },
        ),
        { numRuns: 40 },
      )
    },
  )

  it('finds a chain whole in whatever order its records come', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(whole.records, { minLength: LENGTH }),
        fc.integer({ min: 1, max: LENGTH }),
        async (records, size) => {
          expect(await verifyChains(sourceOf(paged(records, size), whole.checkpoints))).toEqual([
            {
              tenant: 'default',
              records: LENGTH,
              reports: 0,
              unanchored: 0,
              checkpoints: 3,
              signatures: 'checked',
              keyIds: [testSigner.keyId],
              late: 0,
            },
          ])
        },
      ),
      { numRuns: 50 },
    )
  })

  it('does not take for a break what came while it was reading', async () => {
    const [a, b] = [whole.records.slice(0, 3), whole.records[8]]
    const [verdict] = await verifyChains(sourceOf([a.slice(1).reverse(), [b, a[0]]], []))
    expect(verdict).toMatchObject({ records: 3, late: 1, signatures: 'none', unanchored: 3 })
    expect(verdict?.broken).toBeUndefined()
  })

  it('finds a record in front of the chain, which holds by itself', async () => {
    const front = sealedLine(traceText(sampleTrace({ at: 0, session: 's' })), { seq: -4, hash: GENESIS }, sha256)
    const source = sourceOf([[...whole.records.toReversed(), JSON.parse(front.body)]], whole.checkpoints)
    expect((await verifyChains(source))[0]).toMatchObject({ records: LENGTH + 1, broken: { index: 0, reason: 'seq' } })
  })

  it('begins behind the records that were pruned', async () => {
    const { sig: _, ...first } = whole.checkpoints[0]!
    const { checkpoint } = await signCheckpoint(
      { ...first, kind: 'prune', prev_checkpoint: GENESIS },
      testSigner,
      sha256,
    )
    const source = sourceOf([whole.records.slice(4).reverse()], [checkpoint])
    expect((await verifyChains(source))[0]).toMatchObject({ records: 8, unanchored: 8, checkpoints: 1 })
    expect((await verifyChains(source))[0]?.broken).toBeUndefined()
    const cut = sourceOf([whole.records.slice(5).reverse()], [checkpoint])
    expect((await verifyChains(cut))[0]?.broken).toMatchObject({ index: 0, reason: 'seq' })
  })

  it('refuses checkpoints of another key, altered ones and ones that lack a link', async () => {
    const { records, checkpoints } = whole
    const of = async (some: readonly Checkpoint[], by = testSigner) =>
      (await verifyChains(sourceOf([records.toReversed()], some, by)))[0]?.broken
    expect(await of(checkpoints)).toBeUndefined()
    expect(await of((await chain(stranger)).checkpoints)).toMatchObject({ index: 3, reason: 'checkpoint_signature' })
    expect(await of(checkpoints, stranger)).toMatchObject({ index: 3, reason: 'checkpoint_signature' })
    expect(await of(checkpoints.with(1, { ...checkpoints[1]!, feedback_seq: 4 }))).toMatchObject({ index: 7 })
    expect(await of(checkpoints.toSpliced(1, 1))).toMatchObject({ index: 11, reason: 'checkpoint_link' })
    expect(await of((await chain(testSigner, 'rebuilt')).checkpoints)).toMatchObject({ reason: 'checkpoint_head' })
  })
})

describe('the check of what was reported', () => {
  type Report = Sealed & { verdict: string }
  const REPORTS = 6

  /** Reports in their chain, and checkpoints that name the third and the last of them. */
  async function reported() {
    const reports: Report[] = []
    for (let i = 0; i < REPORTS; i++) {
      reports.push(seal({ v: 1, tenant_id: 'default', feedback_id: `f${i}`, verdict: 'pass' }, reports.at(-1), sha256))
    }
    const checkpoints: Checkpoint[] = []
    let prev_checkpoint = GENESIS
    for (const [i, { sig: _, ...body }] of whole.checkpoints.entries()) {
      const named = reports[[2, 2, REPORTS - 1][i]!]!
      const { checkpoint, digest } = await signCheckpoint(
        { ...body, feedback_seq: named.seq, feedback_hash: named.hash, prev_checkpoint },
        testSigner,
        sha256,
      )
      checkpoints.push(checkpoint)
      prev_checkpoint = digest
    }
    return { reports, checkpoints }
  }

  const EDITS: Record<string, (all: Report[], i: number) => unknown[]> = {
    'its verdict': (all, i) => all.with(i, { ...all[i]!, verdict: 'fail' }),
    'its number': (all, i) => all.with(i, { ...all[i]!, seq: (i + 2) % REPORTS }),
    'its link': (all, i) => all.with(i, { ...all[i]!, prev_hash: 'a'.repeat(64) }),
    'its place, by leaving it out': (all, i) => all.toSpliced(i, 1),
    'its place, by standing twice': (all, i) => all.toSpliced(i, 0, all[i]!),
    'half a surrogate pair in it': (all, i) => all.with(i, { ...all[i]!, verdict: '\ud800' }),
    'all of its text': (all, i) => (all as unknown[]).with(i, null),
    'verdict and hash alike': (all, i) => {
      const edited = { ...all[i]!, verdict: 'fail' }
      return all.with(i, { ...edited, hash: recordHash(edited, sha256) })
    },
    'everything from it on': (all, i) => {
      const left: Report[] = all.slice(0, i)
      for (const { hash: _, seq: __, prev_hash: ___, ...one } of all.slice(i)) {
        left.push(seal({ ...one, verdict: 'fail' }, left.at(-1), sha256))
      }
      return left
    },
    'everything from it on, by leaving it out': (all, i) => all.slice(0, i),
  }

  it.each(Object.entries(EDITS))('names at the index of `verify` a report that was changed in %s', async (_, edit) => {
    const { reports, checkpoints } = await reported()
    for (let i = 0; i < REPORTS; i++) {
      const edited = edit(reports, i)
      async function* feedback() {
        yield edited.map(record => ({
          text: record === null ? 'no JSON' : JSON.stringify(record),
          tenantId: 'default',
        }))
      }
      const told = await verifyRecords({
        records: lines(whole.records),
        feedback: feedback(),
        checkpoints,
        keys,
        sha256,
      })
      const source = sourceOf([whole.records.toReversed()], checkpoints, testSigner, edited)
      const [verdict] = await verifyChains(source)
      const { broken_at, reason } = told.tenants[0]!
      expect(broken_at, `${i}`).not.toBeNull()
      expect(verdict?.broken, `${i}`).toEqual({ index: broken_at, reason })
      expect(reason).toMatch(/^feedback_/)
    }
  })

  it('holds for reports that nobody touched, and counts them', async () => {
    const { reports, checkpoints } = await reported()
    const source = sourceOf([whole.records.toReversed()], checkpoints, testSigner, reports)
    const [verdict] = await verifyChains(source)
    expect(verdict).toMatchObject({ reports: REPORTS, records: LENGTH })
    expect(verdict?.broken).toBeUndefined()
    // A break of the records comes first.
    const edited = whole.records.with(7, { ...whole.records[7]!, session_id: 'other' })
    const both = sourceOf([edited.toReversed()], checkpoints, testSigner, reports.toSpliced(1, 1))
    expect((await verifyChains(both))[0]?.broken).toMatchObject({ index: 7, reason: 'hash' })
  })
})

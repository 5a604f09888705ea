import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { type Signer, signer } from '../../shared/sign/ed25519.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { GENESIS, type Sealed, seal } from '../../shared/sign/record-chain.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Checkpoint } from '../../shared/wire/router/checkpoint.ts'
import { isFull } from '../../tests/slice.ts'
import { storeFolder, testSigner, testWriter } from '../host/testing/store-folder.ts'
import { type ChainHead, traceText } from './canonical-trace.ts'
import { checkpointDigest, signCheckpoint } from './checkpoint.ts'
import { storedCheckpoints, storedRecords } from './stored-records.ts'
import { sampleTrace, sealedLine } from './testing/records.ts'
import { newTraceIdList, pushTraceId, traceIdSet } from './trace-ids.ts'
import { type VerifyInput, verifyRecords } from './verify.ts'

const sha256 = nativeSha256
const keys = new Map([[testSigner.keyId, testSigner.publicKey]])
const stranger = await signer(new Uint8Array(32).fill(9))

type Line = Record<string, unknown> & Sealed & { tenant_id: string; final: { savings_usd: number } }

/** A chain as the writer makes it, checkpoints every 4 records. */
async function chain(
  length: number,
  by: Signer = testSigner,
  marked = '',
): Promise<{ lines: string[]; checkpoints: Checkpoint[] }> {
  const lines: string[] = []
  const checkpoints: Checkpoint[] = []
  let head: ChainHead | undefined
  let link = GENESIS
  for (let index = 0; index < length; index++) {
    const sealed = sealedLine(traceText(sampleTrace({ at: index * 1000, session: `s${marked}` })), head, sha256)
    head = sealed
    lines.push(sealed.body)
    if (index % 4 !== 3) continue
    const { checkpoint, digest } = await signCheckpoint(
      {
        kind: 'head',
        tenant_id: 'default',
        seq: index,
        hash: sealed.hash,
        feedback_seq: -1,
        feedback_hash: GENESIS,
        ts: '2026-01-02T03:04:05.678Z',
        prev_checkpoint: link,
      },
      by,
      sha256,
    )
    checkpoints.push(checkpoint)
    link = digest
  }
  return { lines, checkpoints }
}

async function* lots(lines: readonly string[], size = 3): AsyncGenerator<{ text: string }[]> {
  for (let at = 0; at < lines.length; at += size) yield lines.slice(at, at + size).map(text => ({ text }))
}

async function verdict(lines: readonly string[], rest: Partial<VerifyInput> = {}) {
  const report = await verifyRecords({ records: lots(lines), keys, sha256, ...rest })
  // Where the chain is cut into stretches says nothing about it.
  for (const size of rest.feedback ? [] : [1, 1000]) {
    expect(await verifyRecords({ records: lots(lines, size), keys, sha256, ...rest })).toEqual(report)
  }
  const [tenant] = report.tenants
  return {
    valid: report.valid,
    at: tenant?.broken_at ?? null,
    reason: tenant?.reason ?? null,
    tail: tenant?.unanchored_tail,
  }
}

const parse = (line: string) => readJson(line) as Line
/** What a forger without the key can do: give the records from `from` on new places and hashes. */
function resealed(lines: readonly string[], from: number): string[] {
  let previous = from === 0 ? undefined : parse(lines[from - 1]!)
  return lines.map((line, index) => {
    if (index < from) return line
    const { hash: _hash, ...record } = parse(line)
    const next = seal(record, previous, sha256)
    previous = next as unknown as Line
    return canonicalize(next)
  })
}

const length = 10
const { lines, checkpoints } = await chain(length)
const good = { valid: true, at: null, reason: null, tail: 2 }
const each = Array.from({ length }, (_, index) => index)

describe('verify', () => {
  it('accepts a chain with its checkpoints and tells how much follows the last one', async () => {
    expect(await verdict(lines, { checkpoints })).toEqual(good)
    expect(await verdict(lines)).toEqual({ ...good, tail: 10 })
    expect(await verifyRecords({ records: lots([]), sha256 })).toEqual({ valid: true, records: 0, tenants: [] })
  })

  it('accepts the same records in another spelling', async () => {
    const spaced = lines.map(line => JSON.stringify(Object.fromEntries(Object.entries(parse(line)).reverse()), null, 1))
    expect(await verdict(spaced, { checkpoints })).toEqual(good)
  })

  it.each(each)('finds an edit of record %i', async index => {
    const edited = lines.map((line, at) =>
      at === index ? line.replace('"savings_usd":0.0092', '"savings_usd":0.0093') : line,
    )
    expect(await verdict(edited)).toMatchObject({ valid: false, at: index, reason: 'hash' })
    expect(await verdict(edited, { checkpoints })).toMatchObject({ valid: false, at: index, reason: 'hash' })
    const hidden = lines.map((line, at) => (at === index ? line.replace('"mode":', '"hidden":1,"mode":') : line))
    expect(await verdict(hidden)).toMatchObject({ valid: false, at: index, reason: 'unknown_member' })
    const respelled = lines.map((line, at) =>
      at === index ? line.replace('"wall_ms":820.1', '"wall_ms":820.10') : line,
    )
    expect(await verdict(respelled)).toMatchObject({ valid: false, at: index, reason: 'number_form' })
    const torn = lines.map((line, at) => (at === index ? line.slice(0, -20) : line))
    expect(await verdict(torn)).toMatchObject({ valid: false, at: index, reason: 'parse' })
  })

  it.each(each)('is not fooled by a hash member put elsewhere in record %i', async index => {
    const moved = lines.map((line, at) => {
      if (at !== index) return line
      const member = `"hash":"${parse(line).hash}",`
      return line.replace(member, '').replace('"final":{', `"final":{${member}`)
    })
    expect(await verdict(moved)).toMatchObject({ valid: false, at: index, reason: 'unknown_member' })
    const doubled = lines.map((line, at) => (at === index ? line.replace('{', `{"hash":"${'0'.repeat(64)}",`) : line))
    expect(await verdict(doubled)).toMatchObject({ valid: false, at: index, reason: 'duplicate_member' })
  })

  it.each(each)('finds a record put in at %i', async index => {
    const other = await chain(length, testSigner, 'other')
    expect(await verdict(lines.toSpliced(index, 0, other.lines[index]!))).toMatchObject({
      valid: false,
      at: index + (index === 0 ? 1 : 0),
    })
    expect(await verdict(lines.toSpliced(index, 0, lines[index]!))).toMatchObject({
      valid: false,
      at: index + 1,
      reason: 'seq',
    })
  })

  it.each(each.slice(0, -1))('finds record %i missing', async index => {
    expect(await verdict(lines.toSpliced(index, 1))).toMatchObject({ valid: false, at: index, reason: 'seq' })
  })

  it.each(each.slice(0, -1))('finds record %i swapped with the next', async index => {
    const swapped = lines.toSpliced(index, 2, lines[index + 1]!, lines[index]!)
    expect(await verdict(swapped)).toMatchObject({ valid: false, at: index, reason: 'seq' })
  })

  it('finds a trace that occurs twice, also in another tenant', async () => {
    const twice = resealed(lines.with(6, lines[2]!), 6)
    expect(await verdict(twice)).toMatchObject({ valid: false, at: 6, reason: 'trace_id' })
    const { hash: _hash, ...copy } = parse(lines[2]!)
    const foreign = canonicalize(seal({ ...copy, tenant_id: 'other' }, undefined, sha256))
    const report = await verifyRecords({ records: lots([...lines, foreign]), sha256 })
    expect(report.tenants.map(({ broken_at, reason }) => [broken_at, reason])).toEqual([
      [null, null],
      [0, 'trace_id'],
    ])
  })

  it.each(each.slice(0, 8))('finds the end cut off after %i records by the checkpoints that name more', async left => {
    const index = left
    expect(await verdict(lines.slice(0, left), { checkpoints })).toMatchObject({
      valid: false,
      at: index,
      reason: 'tail_cut',
    })
  })

  it('finds the end cut off together with its checkpoints by an anchor, and not without one', async () => {
    const cut = lines.slice(0, 5)
    const left = checkpoints.slice(0, 1)
    expect(await verdict(cut, { checkpoints: left })).toMatchObject({ valid: true, tail: 1 })
    const anchors = [checkpoints[1]!]
    expect(await verdict(cut, { checkpoints: left, anchors })).toMatchObject({
      valid: false,
      at: 5,
      reason: 'tail_cut',
    })
    expect(await verdict([], { anchors })).toMatchObject({ valid: false, at: 0, reason: 'tail_cut' })
  })

  it('finds a chain rebuilt without the key at the first record that a checkpoint names', async () => {
    const edited = lines.map((line, at) => (at === 1 ? line.replace('"savings_usd":0.0092', '"savings_usd":9') : line))
    const rebuilt = resealed(edited, 1)
    expect(await verdict(rebuilt)).toMatchObject({ valid: true })
    expect(await verdict(rebuilt, { checkpoints })).toMatchObject({ valid: false, at: 3, reason: 'checkpoint_head' })
    const forged = checkpoints.map(one => ({ ...one, hash: parse(rebuilt[one.seq]!).hash }))
    expect(await verdict(rebuilt, { checkpoints: forged })).toMatchObject({
      valid: false,
      at: 3,
      reason: 'checkpoint_signature',
    })
    const strange = await chain(length, stranger, 'again')
    const result = await verdict(strange.lines, { checkpoints: strange.checkpoints })
    expect(result).toMatchObject({ valid: false, at: 3, reason: 'checkpoint_signature' })
  })

  it('finds a chain rebuilt with the key only by an anchor', async () => {
    const again = await chain(length, testSigner, 'again')
    expect(await verdict(again.lines, { checkpoints: again.checkpoints })).toEqual(good)
    const result = await verdict(again.lines, { checkpoints: again.checkpoints, anchors: [checkpoints[1]!] })
    expect(result).toMatchObject({ valid: false, at: 7, reason: 'anchor_head' })
  })

  it('finds a checkpoint taken out or changed', async () => {
    expect(await verdict(lines, { checkpoints: checkpoints.slice(1) })).toMatchObject({
      valid: false,
      at: 7,
      reason: 'checkpoint_link',
    })
    const changed = checkpoints.map((one, index) => (index === 0 ? { ...one, ts: '2027-01-02T03:04:05.678Z' } : one))
    expect(await verdict(lines, { checkpoints: changed })).toMatchObject({
      valid: false,
      at: 3,
      reason: 'checkpoint_signature',
    })
    expect(await verdict(lines, { checkpoints: [checkpoints[0]!, checkpoints[0]!, checkpoints[1]!] })).toEqual(good)
  })

  it('is not fooled by a second checkpoint with the signature of one that holds', async () => {
    const cut = { ...checkpoints[0]!, kind: 'prune' as const, seq: 5, hash: parse(lines[5]!).hash }
    const result = await verdict(lines.slice(6), { checkpoints: [...checkpoints.slice(0, 1), cut] })
    expect(result).toMatchObject({ valid: false, reason: 'checkpoint_signature' })
  })

  it('is not fooled by a record whose hash is of a text in another form', async () => {
    const { hash: _hash, ...record } = parse(lines[9]!)
    const text = canonicalize(record).replace('"wall_ms":820.1', '"wall_ms":820.10')
    const hash = Buffer.from(sha256(Buffer.from(text))).toString('hex')
    const sealed = text.replace(',"mode"', `,"hash":"${hash}","mode"`)
    expect(await verdict(lines.with(9, sealed))).toMatchObject({ valid: false, at: 9, reason: 'number_form' })
    const spaced = canonicalize(record).replace(',"mode"', ' ,"mode"')
    const own = Buffer.from(sha256(Buffer.from(spaced))).toString('hex')
    const odd = spaced.replace(' ,"mode"', `,"hash":"${own}" ,"mode"`)
    expect(await verdict(lines.with(9, odd))).toMatchObject({ valid: false, at: 9, reason: 'hash' })
  })

  it('begins behind a signed pruning, and only there', async () => {
    const head = parse(lines[5]!)
    const { checkpoint } = await signCheckpoint(
      { ...checkpoints[1]!, kind: 'prune', seq: 5, hash: head.hash, prev_checkpoint: GENESIS },
      testSigner,
      sha256,
    )
    const { sig: _sig, key_id: _key, v: _v, ...body } = checkpoint
    const again = await signCheckpoint(body, testSigner, sha256)
    expect(await verdict(lines.slice(6), { checkpoints: [again.checkpoint] })).toMatchObject({ valid: true, tail: 4 })
    const link = checkpointDigest(checkpoints[1]!, sha256)
    const behind = await signCheckpoint({ ...body, prev_checkpoint: link }, testSigner, sha256)
    const both = [...checkpoints, behind.checkpoint]
    expect(await verdict(lines.slice(6), { checkpoints: both })).toMatchObject({ valid: true, tail: 2 })
    expect(await verdict(lines.slice(7), { checkpoints: [again.checkpoint] })).toMatchObject({
      valid: false,
      at: 0,
      reason: 'seq',
    })
    expect(await verdict(lines.slice(6), { checkpoints: checkpoints.slice(0, 1) })).toMatchObject({
      valid: false,
      at: 0,
      reason: 'seq',
    })
  })

  it('follows the feedback chain to the head that a checkpoint names', async () => {
    let last: Sealed | undefined
    const feedback = [0, 1, 2].map(index => {
      last = seal({ v: 1, tenant_id: 'default', feedback_id: `f${index}`, verdict: 'pass' }, last, sha256)
      return canonicalize(last)
    })
    const body = { ...checkpoints[0]!, feedback_seq: 2, feedback_hash: parse(feedback[2]!).hash }
    const { checkpoint } = await signCheckpoint(body, testSigner, sha256)
    const { sig: _sig, key_id: _key, v: _v, ...unsigned } = checkpoint
    const signed = [(await signCheckpoint(unsigned, testSigner, sha256)).checkpoint]
    const check = (list: readonly string[]) => verdict(lines, { checkpoints: signed, feedback: lots(list) })
    expect(await check(feedback)).toMatchObject({ valid: true })
    expect(await check(feedback.slice(0, 2))).toMatchObject({ valid: false, at: 2, reason: 'feedback_tail_cut' })
    expect(await check(feedback.toSpliced(1, 1))).toMatchObject({ valid: false, at: 1, reason: 'feedback_seq' })
    const edited = feedback.map((line, at) => (at === 1 ? line.replace('pass', 'fail') : line))
    expect(await check(edited)).toMatchObject({ valid: false, at: 1, reason: 'feedback_hash' })
    expect(await check(resealed(edited, 1))).toMatchObject({ valid: false, at: 2, reason: 'feedback_head' })
  })

  it('raises no false alarm over random records of several tenants', async () => {
    const heads = new Map<string, ChainHead>()
    const random = fc
      .sample(
        fc.record({
          tenant: fc.constantFrom('a', 'b', 'c'),
          session: fc.string({ unit: 'binary', maxLength: 30 }),
          model: fc.string({ unit: 'grapheme', maxLength: 20 }),
          cost: fc.option(fc.double({ min: 0, max: 1000, noNaN: true })),
          route: fc.option(fc.nat(20)),
        }),
        2000,
      )
      .map(sample => {
        const record = sampleTrace(sample)
        return { tenant: sample.tenant, id: record.trace_id, text: traceText(record) }
      })
    // A full run looks at 100,000.
    const lots = isFull ? 200 : 40
    async function* records() {
      for (let lot = 0; lot < lots; lot++) {
        yield Array.from({ length: 500 }, (_, index) => {
          const sample = random[(lot * 500 + index) % random.length]!
          const text = { ...sample.text, rest: sample.text.rest.replace(sample.id, uuidv7()) }
          const sealed = sealedLine(text, heads.get(sample.tenant), sha256)
          heads.set(sample.tenant, sealed)
          return { text: sealed.body }
        })
      }
    }
    const report = await verifyRecords({ records: records(), sha256 })
    expect(report).toMatchObject({ valid: true, records: lots * 500 })
    expect(report.tenants.every(({ broken_at }) => broken_at === null)).toBe(true)
  })
})

describe('verify of a store', () => {
  let folder: Awaited<ReturnType<typeof storeFolder>>
  let db: Db
  beforeAll(async () => {
    folder = await storeFolder()
    db = await folder.open()
    const writer = testWriter(db, { limits: { checkpoint_records: 4 } })
    for (let count = 0; count < 9; count++) writer.enqueue(sampleTrace({ final: { response_id: `msg_${count}` } }))
    await writer.close()
  })
  afterAll(() => folder.remove())

  const check = async () => {
    const report = await verifyRecords({
      records: storedRecords(db),
      checkpoints: await storedCheckpoints(db),
      keys,
      sha256,
    })
    return report.tenants.map(({ broken_at, reason }) => [broken_at, reason])
  }

  it.each([
    ['total_nano = total_nano + 1', 'columns'],
    ["response_id = 'msg_x'", 'columns'],
    ['gates = null', 'columns'],
    ["ts_ms = 0, session_id = 'é'", 'columns'],
    ["body = 'no json'", 'parse'],
    ["body = cast(x'ff41' as text)", 'parse'],
    ['body = replace(body, \'"rung":0\', \'"rung":1\')', 'hash'],
  ])('finds a row changed by %s', async (change, reason) => {
    const before = (await db.execute('select * from traces where seq = 4')).rows[0]!
    expect(await check()).toEqual([[null, null]])
    await db.execute(`update traces set ${change} where seq = 4`)
    expect(await check()).toEqual([[4, reason]])
    const columns = ['total_nano', 'response_id', 'gates', 'ts_ms', 'session_id', 'body'] as const
    await db.execute({
      sql: `update traces set ${columns.map(name => `${name} = ?`).join(', ')} where seq = 4`,
      args: columns.map(name => before[name] ?? null),
    })
    expect(await check()).toEqual([[null, null]])
  })

  it('reports a tenant of which nothing is left but its checkpoints', async () => {
    await db.write(['create table kept as select * from traces', 'delete from traces'])
    expect(await check()).toEqual([[0, 'tail_cut']])
    await db.write(['insert into traces select * from kept', 'drop table kept'])
    expect(await check()).toEqual([[null, null]])
  })
})

describe('a set of trace ids', () => {
  it('is exact for any ids, list by list', () => {
    const anyId = fc.oneof(
      fc.uuid(),
      fc.uuid().map(id => id.toUpperCase()),
      fc.uuid().map(id => id.replace('-', '0')),
      fc.constant('00000000-0000-0000-0000-000000000000'),
      fc.constant('0000000g-0000-0000-0000-000000000001'),
      fc.constant('0000000:-0000-0000-0000-000000000001'),
      fc.string({ maxLength: 3 }),
    )
    fc.assert(
      fc.property(fc.array(fc.array(anyId, { maxLength: 300, size: 'max' }), { maxLength: 20 }), lists => {
        const set = traceIdSet()
        const plain = new Set<string>()
        for (const ids of lists) {
          const list = newTraceIdList()
          for (const id of ids) pushTraceId(list, id)
          const repeated = ids.findIndex((id, at) => plain.has(id) || ids.indexOf(id) < at)
          expect(set.addAll(structuredClone(list)) ?? -1).toBe(repeated)
          for (const id of repeated < 0 ? ids : ids.slice(0, repeated)) plain.add(id)
        }
      }),
      { numRuns: 30 },
    )
  })
})

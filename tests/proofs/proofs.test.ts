import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as formats from '../../shared/proof/members.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { journalHash } from '../../shared/sign/testing/check-journal.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { requireBackend } from '../backends/require.ts'
import { KEY } from '../runtime/api.ts'
import { slice } from '../slice.ts'
import { exportForgeries } from './export-forgeries.ts'
import { overHttp, type Post } from './http-verifier.ts'
import { routerProofs } from './router-proofs.ts'
import { runForgeries } from './run-forgeries.ts'
import { proofService, type RunProof, runtimeProofs } from './runtime-proofs.ts'
import { ELSEWHERE, servedReason } from './served-reasons.ts'
import { inStore } from './stored-export.ts'
import { browser, browserModules, commandLine, EXAMPLE, type Handed, python } from './verifiers.ts'

function hasPython(): boolean {
  const there = spawnSync('python3', ['-c', 'import cryptography']).status === 0
  return requireBackend('python', there, 'apt-get install python3-cryptography, or bash scripts/setup-host.sh')
}

const HAS_PYTHON = hasPython()
let folder: string
let runs: Awaited<ReturnType<typeof runtimeProofs>>
let exports_: Awaited<ReturnType<typeof routerProofs>>
let page: Awaited<ReturnType<typeof browserModules>>
let service: Awaited<ReturnType<typeof proofService>>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-proofs-'))
  ;[runs, exports_, page] = await Promise.all([runtimeProofs(folder), routerProofs(), browserModules(folder)])
  service = await proofService(folder)
})
afterAll(async () => {
  await service.close()
  await rm(folder, { recursive: true, force: true })
})

type Case = Handed & { name: string; reason: string }

const row = (name: string, [cli, page, service, python]: readonly string[]) => ({
  name,
  cli,
  page,
  service,
  python: python ?? 'skipped',
})

const post: Post = (path, body) => {
  const headers = {
    'content-type': 'application/json',
    ...(path.startsWith('/v1') && { authorization: `Bearer ${KEY}` }),
  }
  return service.runtime.fetch(
    new Request(`http://localhost${path}`, { method: 'POST', body: new Uint8Array(body), headers }),
  )
}

/** One line for each case, with what each verifier says of it. */
async function table(cases: readonly Case[]) {
  const third = HAS_PYTHON ? python(cases) : []
  const rows = []
  for (const [at, one] of cases.entries()) {
    const served = 'text' in one ? await inStore(folder, one) : await overHttp(post, one)
    const said = [await commandLine(folder, one), await browser(page, one), served, ...third.slice(at, at + 1)]
    rows.push(row(one.name, said))
  }
  return rows
}

const expected = (cases: readonly Case[]) =>
  cases.map(one => {
    const { name, reason } = one
    return row(name, [reason, reason, servedReason(one), ...(HAS_PYTHON ? [reason] : [])])
  })

const handed = ({ receipt, journal, fingerprint }: RunProof) => ({
  receipt: Buffer.from(receipt),
  journal: Buffer.from(journal),
  fingerprint,
})

/** A receipt over a journal whose only event has this payload. */
async function withPayload(payload: unknown): Promise<Handed> {
  const key = await signer(new Uint8Array(32).fill(7))
  const journal = JSON.parse(runs.succeeded.journal) as JournalExport
  const event = { ...journal.events[0]!, payload } as JournalExport['events'][number]
  const hash = journalHash(journal.genesis, event)
  const whole = { ...journal, head: hash, eventCount: 1, events: [{ ...event, hash }] }
  const signed = (JSON.parse(runs.succeeded.receipt) as Receipt).payload
  const says = { ...signed, keyId: key.keyId, journalHash: hash, eventCount: 1 }
  const receipt = {
    payload: says,
    signature: Buffer.from(await key.sign(Buffer.from(canonicalize(says)))).toString('base64'),
    algorithm: 'Ed25519',
    publicKey: Buffer.from(key.publicKey).toString('base64'),
  }
  return {
    receipt: Buffer.from(JSON.stringify(receipt)),
    journal: Buffer.from(JSON.stringify(whole)),
    fingerprint: createHash('sha256').update(key.publicKey).digest('hex'),
  }
}

describe('the command line, the browser, the service and the example in Python', () => {
  it('accept every proof that is as it was made', async () => {
    const cases: Case[] = [
      ...Object.entries(runs).flatMap(([name, proof]) => [
        { name, reason: 'valid', ...handed(proof) },
        { name: `${name}, the receipt alone`, reason: 'valid', ...handed(proof), journal: undefined },
      ]),
      {
        name: 'in another order, with white space',
        reason: 'valid',
        ...handed(runs.succeeded),
        receipt: Buffer.from(
          JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(runs.succeeded.receipt)).reverse()), null, 2),
        ),
        journal: Buffer.from(JSON.stringify(JSON.parse(runs.succeeded.journal), null, 2)),
      },
      ...Object.entries(exports_).map(([name, { text, keys }]) => ({
        name: `export ${name}`,
        reason: 'valid',
        text: Buffer.from(text),
        keys,
      })),
    ]
    expect(cases.map(({ reason }) => reason)).toHaveLength(23)
    expect(await table(cases)).toEqual(expected(cases))
  })

  it('refuse every forgery, and name the same reason', async () => {
    const cases: Case[] = [...(await runForgeries(runs)), ...(await exportForgeries(exports_))]
    expect(cases.length).toBeGreaterThanOrEqual(60)
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    const names = new Set(cases.map(({ name }) => name))
    expect(Object.keys(ELSEWHERE).filter(name => !names.has(name))).toEqual([])
    const tried = slice('forgeries', cases, 60)
    expect(await table(tried)).toEqual(expected(tried))
    console.log(`${tried.length} of ${cases.length} forgeries`)
  }, 90_000)

  it('follow a journal as far down as it may go', async () => {
    const nested = (opening: string, closing: string) => (levels: number) =>
      JSON.parse(`${opening.repeat(levels)}1${closing.repeat(levels)}`) as unknown
    const shapes = [nested('[', ']'), nested('{"\u2028":', '}')]
    const cases = await Promise.all(
      shapes.map(async (deep, n) => ({ name: `shape ${n}`, reason: 'valid', ...(await withPayload(deep(490))) })),
    )
    // The service knows its own keys alone.
    expect(await table(cases)).toEqual(expected(cases).map(one => ({ ...one, service: 'unknown_key' })))
    // A hostile one is refused, and ends no verifier.
    const reason = 'not_json'
    const deeper = runs.succeeded.journal.replace('"payload":{', `"payload":{"x":${'['.repeat(1e5)}${']'.repeat(1e5)},`)
    const hostile = { ...handed({ ...runs.succeeded, journal: deeper }), name: 'deeper', reason }
    expect(await table([hostile])).toEqual(expected([hostile]))
  })

  it('say it as processes too', async () => {
    const { receipt, journal, fingerprint } = runs.node
    const { text, keys } = exports_.feedback
    const given = {
      'r.json': receipt,
      'j.json': journal,
      'e.jsonl': text,
      'bad.json': receipt.replace('"costUsd":0', '"costUsd":1'),
    }
    for (const [name, content] of Object.entries(given)) await writeFile(join(folder, name), content)
    const key = keys.keys[0]!.public_key
    const main = (part: string) => [
      process.execPath,
      new URL(`../../${part}/cli/main.ts`, import.meta.url).pathname,
      'verify',
    ]
    const commands = [
      [
        [...main('runtime'), 'r.json', 'j.json', '--fingerprint', fingerprint],
        [...main('runtime'), 'bad.json', '--fingerprint', fingerprint],
      ],
      [
        [...main('router'), '--file', 'e.jsonl', '--key', key],
        [...main('router'), '--file', 'r.json', '--key', key],
      ],
      ...(HAS_PYTHON
        ? [
            [
              ['python3', '-B', EXAMPLE, 'receipt', '--fingerprint', fingerprint, 'r.json', 'j.json'],
              ['python3', '-B', EXAMPLE, 'receipt', '--fingerprint', fingerprint, 'bad.json'],
            ],
            [
              ['python3', '-B', EXAMPLE, 'export', '--key', key, 'e.jsonl'],
              ['python3', '-B', EXAMPLE, 'export', '--key', key, 'r.json'],
            ],
          ]
        : []),
    ]
    for (const pair of commands) {
      const codes = pair.map(
        ([command, ...args]) => spawnSync(command!, args, { cwd: folder, env: { PATH: process.env.PATH } }).status,
      )
      expect(codes, pair[0]!.join(' ')).toEqual([0, 1])
    }
  })
})

describe('the specification', () => {
  it('lists the members that the verifiers know', async () => {
    const listed: unknown = JSON.parse(await readFile(new URL('../../docs/spec/members.json', import.meta.url), 'utf8'))
    expect(listed).toEqual({
      receipt: formats.RECEIPT,
      journal: formats.JOURNAL,
      runtime_keys: formats.RUNTIME_KEYS,
      record: formats.TRACE,
      feedback: formats.FEEDBACK,
      checkpoint: formats.CHECKPOINT,
      keys: formats.ROUTER_KEYS,
    })
  })

  it('is kept by an example of under 100 lines', async () => {
    expect((await readFile(EXAMPLE, 'utf8')).trimEnd().split('\n').length).toBeLessThan(100)
  })
})

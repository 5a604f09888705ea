import { createHash, createPublicKey, verify as nodeVerify } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkStore } from '../../runtime/host/check-receipts.ts'
import { clearRecords } from '../../runtime/vault/records.ts'
import { fromBase64 } from '../../shared/sign/bytes.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, ReceiptKeys, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { isFull } from '../slice.ts'
import { type Api, api, KEY } from './api.ts'

const masterKey = new Uint8Array(32).fill(7)
let on: Api

beforeAll(async () => {
  on = await api({ masterKey })
  await on.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo', tools: ['wait'] } })
})
afterAll(() => on.close())

async function ended(input: unknown = { prompt: 'hello' }): Promise<Run> {
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input })
  const stream = await on.call('GET', `/v1/runs/${id}/events`)
  await stream.text()
  return on.json<Run>(200, 'GET', `/v1/runs/${id}`)
}

const receiptOf = (run: Run) => on.json<Receipt>(200, 'GET', `/v1/runs/${run.id}/receipt`)
const journalOf = (run: Run) => on.json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
const verify = (body: unknown) => on.json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', body)
const hash = (text: string) => createHash('sha256').update(text).digest('hex')

describe('the receipt of a run', () => {
  it('is there with its end, says what the run says, and verifies with tools that are not ours', async () => {
    const run = await ended({ prompt: 'é<&>', n: [1e21, 0.1, -0] })
    const receipt = await receiptOf(run)
    const { payload, signature, publicKey } = receipt
    expect(payload).toMatchObject({
      runId: run.id,
      status: 'succeeded',
      tokensIn: run.tokensIn,
      tokensOut: run.tokensOut,
      costUsd: run.costUsd,
      models: ['demo/echo'],
      isolation: 'shared',
      finishedAt: run.finishedAt,
      createdAt: run.createdAt,
      inputHash: hash(canonicalize(run.input)),
      outputHash: hash(canonicalize(run.output)),
    })
    const raw = Buffer.from(publicKey, 'base64')
    const fingerprint = createHash('sha256').update(raw).digest('hex')
    const { keys, keyFingerprint } = await on.json<ReceiptKeys>(200, 'GET', '/.well-known/platform-receipts')
    expect(keyFingerprint).toBe(fingerprint)
    expect(keys).toHaveLength(1)
    expect(payload.keyId).toBe(fingerprint.slice(0, 16))
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }, format: 'jwk' })
    expect(nodeVerify(null, Buffer.from(canonicalize(payload)), key, Buffer.from(signature, 'base64'))).toBe(true)
    const journal = await journalOf(run)
    expect(payload).toMatchObject({ journalHash: journal.head, eventCount: journal.eventCount })
    expect(await verify(receipt)).toEqual({
      valid: true,
      runId: run.id,
      tenantId: 'default',
      issuedAt: payload.issuedAt,
      keyId: payload.keyId,
      checks: { signature: 'ok', journal: 'ok', record: 'ok' },
    })
    expect(await verify({ receipt, journal })).toMatchObject({ valid: true })
  })

  it('is the same however often it is asked for', async () => {
    const run = await ended()
    const first = await receiptOf(run)
    expect(await on.json(200, 'POST', `/v1/runs/${run.id}/receipt`, {})).toEqual(first)
    expect(await receiptOf(run)).toEqual(first)
  })

  it('is there for runs that failed and that were cancelled, and not before the end', async () => {
    await on.json(201, 'POST', '/v1/agents', {
      name: 'strict',
      manifest: { model: 'demo/echo', outputSchema: { type: 'object', required: ['x'] }, outputRepairs: 0 },
    })
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'strict', input: { prompt: 'no' } })
    await (await on.call('GET', `/v1/runs/${id}/events`)).text()
    const failed = await on.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
    expect(failed.payload).toMatchObject({ status: 'failed', outputHash: hash('{}') })
    expect(await verify(failed)).toMatchObject({ valid: true, checks: { record: 'ok' } })

    const waiting = await on.json<Run>(201, 'POST', '/v1/runs', {
      agentName: 'echo',
      input: { prompt: '/call wait {"seconds":3600}' },
    })
    const early = await on.call('GET', `/v1/runs/${waiting.id}/receipt`)
    expect([early.status, ((await early.json()) as { code: string }).code]).toEqual([409, 'run_not_terminal'])
    await on.json(200, 'POST', `/v1/runs/${waiting.id}/cancel`, {})
    const cancelled = await on.json<Receipt>(200, 'GET', `/v1/runs/${waiting.id}/receipt`)
    expect(cancelled.payload.status).toBe('cancelled')
    expect(await verify(cancelled)).toMatchObject({ valid: true, checks: { record: 'ok' } })
  })

  it('outlives its run', async () => {
    const run = await ended()
    const receipt = await receiptOf(run)
    expect((await on.call('DELETE', `/v1/runs/${run.id}`)).status).toBe(204)
    expect(await receiptOf(run)).toEqual(receipt)
    expect(await verify(receipt)).toMatchObject({
      valid: true,
      checks: { signature: 'ok', journal: 'not_checked', record: 'not_checked' },
    })
  })

  it('is checked for whoever has no key, and a bad key is still refused', async () => {
    const receipt = await receiptOf(await ended())
    const ask = (headers: Record<string, string>) =>
      on.runtime.fetch(
        new Request('http://localhost/receipts/verify', {
          method: 'POST',
          body: JSON.stringify(receipt),
          headers: { 'content-type': 'application/json', ...headers },
        }),
      )
    const open = (await (await ask({})).json()) as VerifyResult
    expect(open).toMatchObject({ valid: true, checks: { signature: 'ok', record: 'not_checked' } })
    expect(open.tenantId).toBeUndefined()
    expect((await ask({ authorization: `Bearer wb_live_${'x'.repeat(43)}` })).status).toBe(401)
    expect((await ask({ authorization: 'Basic eA==' })).status).toBe(401)
  })

  it('is refused in another algorithm, cut short, or as something else', async () => {
    const receipt = await receiptOf(await ended())
    for (const body of [{ ...receipt, algorithm: 'RS256' }, {}, [], { receipt: { payload: 1 } }, { payload: {} }]) {
      expect((await on.call('POST', '/v1/runs/receipts/verify', body)).status).toBe(400)
    }
    expect(await verify({ ...receipt, signature: receipt.signature.slice(0, -8) })).toMatchObject({
      reason: 'signature_invalid',
    })
  })
})

describe('a receipt that was tampered with', () => {
  it('does not verify, whichever member was changed', async () => {
    const receipt = await receiptOf(await ended())
    for (const [member, value] of Object.entries(receipt.payload)) {
      const other = typeof value === 'number' ? value + 1 : Array.isArray(value) ? ['x'] : `${value}0`
      const changed = { ...receipt, payload: { ...receipt.payload, [member]: other } }
      const reason = member === 'keyId' ? 'unknown_key' : 'signature_invalid'
      expect(await verify(changed), member).toMatchObject({ valid: false, reason, checks: { signature: 'failed' } })
      const { [member as 'runId']: _, ...less } = receipt.payload
      expect(await verify({ ...receipt, payload: less }), `without ${member}`).toMatchObject({ valid: false, reason })
    }
    expect(await verify({ ...receipt, payload: { ...receipt.payload, more: 1 } })).toMatchObject({
      reason: 'unknown_member',
    })
  })

  it('does not verify where its text says two things, and the reason is named', async () => {
    const receipt = await receiptOf(await ended())
    const text = JSON.stringify(receipt)
    const spelled: [string, string][] = [
      ['duplicate_member', text.replace('"status":', '"status":"failed","status":')],
      ['duplicate_member', text.replace('"status":', '"\\u0073tatus":"failed","status":')],
      ['number_form', text.replace('"tokensIn":', '"tokensIn":0.0,"x":')],
      ['lone_surrogate', text.replace('"status":', '"\\ud800":1,"status":')],
    ]
    for (const [reason, body] of spelled) {
      for (const path of ['/v1/runs/receipts/verify', '/receipts/verify']) {
        const answer = await on.runtime.fetch(
          new Request(`http://localhost${path}`, {
            method: 'POST',
            body,
            headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
          }),
        )
        expect([answer.status, await answer.json()]).toMatchObject([200, { valid: false, reason }])
      }
    }
  })

  it('does not verify with any byte of its signature changed', async () => {
    const receipt = await receiptOf(await ended())
    const bytes = fromBase64(receipt.signature)
    await fc.assert(
      fc.asyncProperty(fc.nat(63), fc.integer({ min: 1, max: 255 }), async (at, by) => {
        const signature = Buffer.from(bytes.with(at, bytes[at]! ^ by)).toString('base64')
        expect(await verify({ ...receipt, signature })).toMatchObject({ valid: false, reason: 'signature_invalid' })
      }),
      { numRuns: 60 },
    )
  })
})

describe('a journal that was tampered with', () => {
  const tamperings: [string, (events: JournalExport['events']) => JournalExport['events'], object][] = [
    [
      'edited',
      ([a, ...rest]) => [{ ...a!, at: '2020-01-01T00:00:00.000Z' }, ...rest],
      { reason: 'chain_broken', brokenAt: 1 },
    ],
    ['swapped', ([a, b, ...rest]) => [b!, a!, ...rest], { reason: 'chain_broken', brokenAt: 1 }],
    ['without its beginning', events => events.slice(1), { reason: 'chain_broken', brokenAt: 1 }],
    ['with a member more', ([a, ...rest]) => [{ ...a!, output: 'FORGED' }, ...rest], { reason: 'unknown_member' }],
    ['cut', events => events.slice(0, -1), { reason: 'event_count_mismatch' }],
    ['empty', () => [], { reason: 'event_count_mismatch' }],
  ]

  it.each(tamperings)('is found when handed over %s', async (_, tamper, expected) => {
    const run = await ended()
    const journal = await journalOf(run)
    const found = await verify({
      receipt: await receiptOf(run),
      journal: { ...journal, events: tamper(journal.events) },
    })
    expect(found).toMatchObject({ valid: false, checks: { signature: 'ok', journal: 'failed' }, ...expected })
  })

  it('is found by what its head says of it', async () => {
    const run = await ended()
    const [receipt, journal] = [await receiptOf(run), await journalOf(run)]
    const zeros = '0'.repeat(64)
    for (const said of [{ eventCount: 99 }, { head: zeros }, { genesis: zeros }, { sealed: false }, { runId: 'x' }]) {
      expect(await verify({ receipt, journal: { ...journal, ...said } })).toMatchObject({
        valid: false,
        reason: 'journal_header_mismatch',
        checks: { signature: 'ok', journal: 'failed' },
      })
    }
  })

  const stored: [string, string, object][] = [
    [
      'edited',
      `update events set body = substr(body, 1, 40) || char(unicode(substr(body, 41, 1)) + 1) || substr(body, 42)
        where run_id = ? and seq = 1`,
      { reason: 'chain_broken', brokenAt: 1 },
    ],
    [
      'replaced by one in clear',
      `update events set body = '{"attempt":1,"kind":"step_started","seq":1}' where run_id = ? and seq = 1`,
      { reason: 'chain_broken', brokenAt: 1 },
    ],
    [
      'moved within its run',
      `update events set body = (select body from events where run_id = ?1 and seq = 1) where run_id = ?1 and seq = 2`,
      { reason: 'chain_broken', brokenAt: 2 },
    ],
    [
      'with another hash',
      `update events set hash = '${'0'.repeat(64)}' where run_id = ? and seq = 2`,
      { reason: 'chain_broken', brokenAt: 2 },
    ],
    [
      'without its end',
      `delete from events where run_id = ?1 and seq = (select max(seq) from events where run_id = ?1)`,
      { reason: 'event_count_mismatch' },
    ],
    [
      'without its beginning',
      `delete from events where run_id = ? and seq = 1`,
      { reason: 'chain_broken', brokenAt: 1 },
    ],
  ]
  it.each(stored)('is found in the store %s', async (_, sql, expected) => {
    const run = await ended()
    const receipt = await receiptOf(run)
    await on.db.execute({ sql, args: [run.id] })
    expect(await verify(receipt)).toMatchObject({
      valid: false,
      checks: { signature: 'ok', journal: 'failed' },
      ...expected,
    })
  })

  const records: [string, string, object][] = [
    ['status', `update runs set status = 'failed' where id = ?`, { reason: 'record_mismatch' }],
    ['tokens', `update runs set tokens_out = tokens_out + 1 where id = ?`, { reason: 'record_mismatch' }],
    ['cost', `update runs set cost_nano = cost_nano + 1 where id = ?`, { reason: 'record_mismatch' }],
    ['version', `update runs set agent_name = 'other' where id = ?`, { reason: 'record_mismatch' }],
    ['input', `update run_data set input = '{"prompt":"other"}' where run_id = ?`, { reason: 'input_hash_mismatch' }],
    [
      'output',
      `update run_data set output = '{"result":"other"}' where run_id = ?`,
      { reason: 'output_hash_mismatch' },
    ],
  ]
  it.each(records)('and so is a changed %s', async (_, sql, expected) => {
    const run = await ended()
    const receipt = await receiptOf(run)
    await on.db.execute({ sql, args: [run.id] })
    expect(await verify(receipt)).toMatchObject({
      valid: false,
      checks: { journal: 'ok', record: 'failed' },
      ...expected,
    })
  })
})

describe('a run of which a part is gone', () => {
  it.each([
    ['its own row', 'delete from runs where id = ?'],
    ['its texts', 'delete from run_data where run_id = ?'],
    ['its agent version', 'delete from agent_versions where id = (select version_id from runs where id = ?)'],
  ])('is named where its receipt would be taken for one of a run that was deleted: %s', async (_, sql) => {
    const name = `of-${crypto.randomUUID()}`
    await on.json(201, 'POST', '/v1/agents', { name, manifest: { model: 'demo/echo' } })
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: name, input: { prompt: 'hello' } })
    await (await on.call('GET', `/v1/runs/${id}/events`)).text()
    const receipt = await on.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
    await on.db.execute({ sql, args: [id] })
    const answer = await on.call('POST', '/v1/runs/receipts/verify', receipt)
    expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining(`run ${id} is damaged`)])
    const { broken } = await checkStore(on.db, clearRecords, { runIds: [id] })
    expect(broken).toEqual([expect.stringContaining(`run ${id} is damaged`)])
  })
})

it('a key in the store that is damaged is named, not its receipts', async () => {
  const own = await api({ masterKey })
  await own.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const { id } = await own.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input: {} })
  await (await own.call('GET', `/v1/runs/${id}/events`)).text()
  const receipt = await own.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
  await own.db.execute("update receipt_keys set public_key = '~' || substr(public_key, 2)")
  const answer = await own.call('POST', '/v1/runs/receipts/verify', receipt)
  expect([answer.status, await answer.text()]).toEqual([500, expect.stringMatching(/the receipt key \w+ is damaged/)])
  await own.close()
})

describe('a service without a master key', () => {
  it('says why there is no receipt', async () => {
    const bare = await api()
    try {
      await bare.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
      const { id } = await bare.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input: {} })
      await (await bare.call('GET', `/v1/runs/${id}/events`)).text()
      const answer = await bare.call('GET', `/v1/runs/${id}/receipt`)
      expect(answer.status).toBe(404)
      expect(await answer.text()).toContain('master key')
      expect((await bare.call('GET', '/.well-known/platform-receipts')).status).toBe(404)
    } finally {
      await bare.close()
    }
  })
})

describe('a service that gets its master key later', () => {
  it('ends its runs all the same, and makes their receipts once there is one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-receipts-'))
    const url = join(folder, 'waybill.db')
    const ids: string[] = []
    for (const [at, key] of [undefined, masterKey].entries()) {
      const one = await api({ url, masterKey: key })
      if (at === 0) await one.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
      const { id } = await one.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input: {} })
      await (await one.call('GET', `/v1/runs/${id}/events`)).text()
      ids.push(id)
      expect((await one.json<Run>(200, 'GET', `/v1/runs/${id}`)).status).toBe('succeeded')
      const answer = await one.call('GET', `/v1/runs/${id}/receipt`)
      expect(answer.status).toBe(at === 0 ? 404 : 200)
      if (at === 1) {
        const late = await one.json<Receipt>(200, 'GET', `/v1/runs/${ids[0]}/receipt`)
        expect(await one.json(200, 'POST', '/v1/runs/receipts/verify', late)).toMatchObject({ valid: true })
      }
      await one.close()
    }
    // What is sealed now is not touched by a service with another key.
    await expect(api({ url, masterKey: new Uint8Array(32).fill(8) })).rejects.toThrow(/master key/)
    await rm(folder, { recursive: true, force: true })
  })
})

describe('any run', () => {
  it('has a receipt that verifies: many random ones', async () => {
    const prompt = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.integer({ min: 1, max: 4 }).map(times => `/call*${times} wait {"seconds":0}`),
    )
    const inputs = fc.sample(fc.record({ prompt, more: fc.jsonValue({ maxDepth: 2 }) }), {
      numRuns: isFull ? 1000 : 200,
      seed: 11,
    })
    const before = performance.now()
    for (let at = 0; at < inputs.length; at += 50) {
      const found = await Promise.all(
        inputs.slice(at, at + 50).map(async input => {
          const run = await ended(input)
          return verify({ receipt: await receiptOf(run), journal: await journalOf(run) })
        }),
      )
      for (const one of found) {
        expect(one).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
      }
    }
    console.log(`${inputs.length} runs, their receipts verified, in ${Math.round(performance.now() - before)} ms`)
  })
})

describe('a clock that is set back', () => {
  it('leaves receipts that verify, from before and from after', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-clock-'))
    const life = async (aheadMs: number) => {
      const clock = { ...systemClock, now: () => new Date(Date.now() + aheadMs) }
      on = await api({ url: join(folder, 'runtime.db'), masterKey, clock })
    }
    const before = on
    try {
      await life(86_400_000)
      await on.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
      const early = await receiptOf(await ended())
      await on.close()
      await life(0)
      const late = await receiptOf(await ended())
      expect(await verify(late)).toMatchObject({ valid: true })
      expect(await verify(early)).toMatchObject({ valid: true })
    } finally {
      await on.close()
      on = before
      await rm(folder, { recursive: true, force: true })
    }
  })
})

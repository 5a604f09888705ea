import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'

interface Event {
  seq: number
  hash: string
  body: string
}

let on: Api
beforeAll(async () => {
  on = await api({ masterKey: new Uint8Array(32).fill(7) })
  await on.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo', tools: ['wait'] } })
})
afterAll(() => on.close())

async function longRun(): Promise<{ id: string; events: Event[] }> {
  const input = { prompt: '/call*20 wait {"seconds":0}' }
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input })
  await (await on.call('GET', `/v1/runs/${id}/events`)).text()
  const { rows } = await on.db.execute({
    sql: 'select seq, hash, body from events where run_id = ? order by seq',
    args: [id],
  })
  return { id, events: rows as unknown as Event[] }
}

async function put(runId: string, events: readonly Event[]): Promise<void> {
  await on.db.write([
    { sql: 'delete from events where run_id = ?', args: [runId] },
    ...events.map(({ seq, hash, body }) => ({
      sql: 'insert into events (run_id, seq, hash, body) values (?, ?, ?, ?)',
      args: [runId, seq, hash, body],
    })),
  ])
}

const verify = (receipt: Receipt) => on.json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', receipt)
const changed = (text: string, at: number) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)

/** Each changes the events at a place, as `by` says, and tells where the journal is broken then. */
type Tampering = (events: Event[], at: number, by: number) => number
const another = (events: readonly Event[], at: number, by: number) =>
  (at + 1 + (by % (events.length - 1))) % events.length

const tamperings: Record<string, Tampering> = {
  // The last letter may hold bits that are not read.
  edited: (events, at, by) => {
    const { body } = events[at]!
    const start = body.lastIndexOf('.') + 1
    events[at]!.body = changed(body, start + (by % (body.length - start - 1)))
    return at
  },
  'with another tag': (events, at, by) => {
    const { body } = events[at]!
    events[at]!.body = changed(body, body.length - 2 - (by % 18))
    return at
  },
  cut: (events, at, by) => {
    events[at]!.body = events[at]!.body.slice(0, -1 - (by % 40))
    return at
  },
  'with another hash': (events, at, by) => {
    events[at]!.hash = changed(events[at]!.hash, by % 64)
    return at
  },
  'at a second place': (events, at, by) => {
    events[at]!.body = events[another(events, at, by)]!.body
    return at
  },
  exchanged: (events, at, by) => {
    const from = another(events, at, by)
    const [one, other] = [events[at]!, events[from]!]
    ;[one.body, other.body] = [other.body, one.body]
    return Math.min(at, from)
  },
  'left out': (events, at) => {
    events.splice(at, 1)
    return at
  },
  appended: (events, at) => events.push({ ...events[at]!, seq: events.length + 1 }) - 1,
}

it('a change in the store is found at its place, whichever of many events it was', async () => {
  const { id, events } = await longRun()
  expect(events.length).toBeGreaterThan(40)
  const foreign = await longRun()
  const kinds: Record<string, Tampering> = {
    ...tamperings,
    'from another run': (events, at) => {
      events[at]!.body = foreign.events[at]!.body
      return at
    },
  }
  const receipt = await on.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...Object.keys(kinds)),
      fc.nat(events.length - 1),
      fc.nat(),
      async (kind, at, by) => {
        const tampered = events.map(({ seq, hash, body }) => ({ seq, hash, body }))
        const broken = kinds[kind]!(tampered, at, by)
        await put(id, tampered)
        const cut = kind === 'left out' && at === events.length - 1
        expect(await verify(receipt), kind).toMatchObject({
          valid: false,
          checks: { signature: 'ok', journal: 'failed' },
          ...(cut ? { reason: 'event_count_mismatch' } : { reason: 'chain_broken', brokenAt: broken + 1 }),
        })
      },
    ),
    { numRuns: 300 },
  )
  await put(id, events)
  expect(await verify(receipt)).toMatchObject({ valid: true, checks: { journal: 'ok' } })
})

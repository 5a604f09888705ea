import { verifyOffline } from '../../runtime/receipts/verify-offline.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { claimedJournal } from '../../shared/wire/runtime/journal.ts'
import { claimedReceipt } from '../../shared/wire/runtime/receipt.ts'
import { KEY } from '../runtime/api.ts'
import { type CountedDb, countedDb } from './counted-db.ts'
import type { Work } from './work.ts'

type Call = (method: string, path: string, body?: object) => Promise<string>
interface Hands {
  call: Call
  store: CountedDb
}

const END = 'insert into "receipts"'

/** What the runtime does for a few fixed things, each in a life of its own on one store: from its start to its end. */
export async function runtimeWork(path: string): Promise<Record<string, Work>> {
  let fetches = 0
  /** What stood still cannot differ: nothing becomes due in between, and no duration has another number of digits. */
  const clock = manualClock(new Date('2026-01-02T03:04:05.678Z'))

  async function life(act: (hands: Hands) => Promise<unknown>, maxConcurrent = 16): Promise<Work> {
    const store = await countedDb(path)
    const runtime = createRuntime({
      db: store.db,
      bootstrapKey: KEY,
      cipher: nativeCipher,
      sha256: nativeSha256,
      clock,
      limits: { maxConcurrent },
      masterKey: new Uint8Array(32).fill(7),
      receiptSeed: new Uint8Array(32).fill(9),
      egress: {
        fetch: () => Promise.reject(new Error(`nothing is called here (${++fetches})`)),
        problem: async () => undefined,
        close: async () => undefined,
      },
    })
    try {
      await runtime.ready()
      const before = fetches
      const bytesBefore = await journalBytes(store)
      await store.taken()
      const began = performance.now()
      await act({
        store,
        async call(method, path, body) {
          const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
          const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
          const answer = await runtime.fetch(new Request(`http://localhost${path}`, init))
          const text = await answer.text()
          if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
          return text
        },
      })
      await runtime.close(5000)
      const { texts, ...counted } = await store.taken()
      const journal = (await journalBytes(store)) - bytesBefore
      const ms = performance.now() - began
      return { counts: { ...counted, journalBytes: journal, fetches: fetches - before }, texts, ms }
    } finally {
      await runtime.close(0)
      store.close()
    }
  }

  async function create({ call }: Hands, turns: number): Promise<string> {
    const prompt = turns === 0 ? 'hello' : `/call*${turns} wait {"seconds":0}`
    const made = await call('POST', '/v1/runs', { agentName: 'noop', input: { prompt } })
    return (JSON.parse(made) as { id: string }).id
  }

  async function run(hands: Hands, turns: number): Promise<string> {
    const ended = hands.store.executed(END)
    const id = await create(hands, turns)
    await ended
    return id
  }

  let id = ''
  await life(async hands => {
    const limits = { maxTurns: 500, maxSteps: 1000 }
    const anomalies = { steps: 100_000, loopIterations: 100_000 }
    const manifest = { model: 'demo/echo', tools: ['wait'], limits, anomalies }
    await hands.call('POST', '/v1/agents', { name: 'noop', manifest })
    for (let made = 0; made < 60; made++) id = await run(hands, 0)
  })
  const work: Record<string, Work> = {
    'runtime: a start and a stop': await life(async () => undefined),
    'runtime: a run of one model call': await life(hands => run(hands, 0)),
    'runtime: a run of ten no-op steps': await life(hands => run(hands, 10)),
    'runtime: a page of 50 runs': await life(({ call }) => call('GET', '/v1/runs?limit=50')),
    'runtime: one run is read': await life(({ call }) => call('GET', `/v1/runs/${id}`)),
    'runtime: the events of an ended run as SSE': await life(({ call }) => call('GET', `/v1/runs/${id}/events`)),
  }

  let [receipt, journal, keys] = ['', '', '']
  await life(async hands => {
    const long = await run(hands, 249)
    receipt = await hands.call('GET', `/v1/runs/${long}/receipt`)
    journal = await hands.call('GET', `/v1/runs/${long}/journal`)
    keys = await hands.call('GET', '/.well-known/platform-receipts')
  })
  // Last: a life after it would execute what it leaves.
  work['runtime: a run is created, and left to others'] = await life(hands => create(hands, 0), 0)
  work['runtime verify: a receipt with a journal of 998 events'] = await verified(receipt, journal, keys)
  return work
}

async function journalBytes({ db }: CountedDb): Promise<number> {
  const { rows } = await db.execute('select sum(length(body) + length(hash)) as n from events')
  return Number(rows[0]?.n ?? 0)
}

/** Offline there is no store: the work is hashing. */
async function verified(receiptText: string, journalText: string, keys: string): Promise<Work> {
  let [hashes, hashedBytes] = [0, 0]
  const receipt = claimedReceipt.parse(JSON.parse(receiptText))
  const journal = claimedJournal.parse(JSON.parse(journalText))
  const { keyFingerprint } = JSON.parse(keys) as { keyFingerprint: string }
  const result = await verifyOffline({ receipt, journal, fingerprint: keyFingerprint }, bytes => {
    hashes++
    hashedBytes += bytes.length
    return nativeSha256(bytes)
  })
  if (!result.valid) throw new Error(`the receipt does not hold: ${result.explanation}`)
  return { counts: { events: journal.events.length, hashes, hashedBytes }, texts: [] }
}

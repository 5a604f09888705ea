import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { recordChainChecker } from '../../shared/sign/record-chain.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import { isFull, slice } from '../slice.ts'
import { standstills } from '../standstills.ts'
import { type Exchange, faultsOf, MAX_RESPONSE, TIMES, whole } from '../upstream/faults.ts'
import { type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { play, type Received } from '../upstream/wire.ts'
import { ask, CANARIES, type Failed } from './fault-client.ts'
import { type Case, dueTries, notRelayed, notRouted, observedAs, observedDue, SECOND, tried } from './fault-oracle.ts'
import { type ServedOptions, type ServedRouter, servedRouter } from './served-routers.ts'

const EXCHANGES: readonly Exchange[] = (['messages', 'chat', 'responses'] as const).flatMap(dialect => [
  { dialect, stream: false },
  { dialect, stream: true },
])
const EVERY: readonly Case[] = EXCHANGES.flatMap(exchange =>
  faultsOf(exchange.dialect).map(fault => ({ fault, exchange })),
).map((one, ix) => ({ ...one, id: `f${ix}` }))
/** Of each group of faults as large a part as of the whole. */
const CASES = Object.entries(Object.groupBy(EVERY, ({ fault }) => fault.group)).flatMap(([group, cases]) =>
  slice(`faults: ${group}`, cases, Math.ceil(cases.length / 8)),
)
const BY_ID = new Map(CASES.map(one => [one.id, one]))
const PATHS = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' }
const OTHER = { messages: 'chat', chat: 'messages', responses: 'messages' } as const

const lines = <T>(list: readonly T[], line: (one: T) => string) => list.map(line).join('\n  ')

/**
 * Each case has a first rung at a provider of its own, so that no breaker stands between a fault and its test. The
 * second rung is sound.
 */
const config =
  (cases: readonly Case[], second: ((exchange: Exchange) => string) | undefined, defaults = '') =>
  (origin: string) =>
    `
limits = { first_byte_ms = ${TIMES.firstByte}, idle_ms = ${TIMES.idle}, total_ms = 20000, max_response_bytes = ${MAX_RESPONSE} }
stream = { keepalive_after_ms = ${TIMES.keepAlive}, keepalive_every_ms = 1000 }
defaults = { mode = "enforce", gates = ["non-empty"]${defaults} }
price = [
  ${lines([...cases.map(({ id }) => `${id}/cheap`), 'messages/best', 'chat/best', 'responses/best'], model => `{ model = "${model}", input_per_mtok = 3, output_per_mtok = 15 },`)}
]
provider = [
  { id = "messages", dialect = "messages", base_url = "${origin}/second" },
  { id = "chat", dialect = "chat", base_url = "${origin}/second" },
  { id = "responses", ${speaks('responses')}, base_url = "${origin}/second" },
  ${lines(cases, one => `{ id = "${one.id}", ${speaks(one.exchange.dialect)}, base_url = "${origin}", timeouts = { ${timeouts(one)} } },`)}
]
${cases
  .map(
    ({ id, exchange }) => `[[route]]
match = { header = { x-case = "${id}" } }
ladder = ["${id}/cheap"${second ? `, "${second(exchange)}/best"` : ''}]`,
  )
  .join('\n')}
`

const speaks = (dialect: Exchange['dialect']) =>
  dialect === 'responses' ? 'dialect = "chat", responses = true' : `dialect = "${dialect}"`

/** A fault that takes the machine long is none of time. */
const timeouts = (one: Case) =>
  isHeavy(one) ? 'first_byte_ms = 20000, idle_ms = 20000, total_ms = 20000' : `total_ms = ${TIMES.total}`

interface Mode {
  /** 0 for observe. */
  rungs: 0 | 1 | 2
  cases: readonly Case[]
  options: (origin: string, cases: readonly Case[]) => ServedOptions
}

const observing = (direct: boolean): Mode => ({
  rungs: 0,
  cases: CASES,
  options: origin => ({
    direct,
    timeouts: { connectMs: 1000, firstByteMs: TIMES.firstByte, idleMs: TIMES.idle },
    env: { ROUTER_UPSTREAM_MESSAGES: origin, ROUTER_UPSTREAM_CHAT: origin },
  }),
})
const enforcing = (rungs: 1 | 2, second?: (exchange: Exchange) => string, cases = CASES, defaults = ''): Mode => {
  return { rungs, cases, options: (origin, asked) => ({ config: config(asked, second, defaults)(origin) }) }
}
const isHeavy = ({ fault }: Case) => fault.heavy === true

const KNOWN_LATE: ReadonlySet<string> = new Set(['a refusal', 'a content filter', 'gaps in the indexes of calls'])

const MODES: readonly [name: string, mode: Mode][] = [
  ['observe on the Node host', observing(true)],
  ['observe on the portable relay', observing(false)],
  ['enforce with a sound second rung', enforcing(2, ({ dialect }) => dialect)],
  [
    'enforce with a sound second rung of the other dialect',
    enforcing(
      2,
      ({ dialect }) => OTHER[dialect],
      // Several choices and token odds have no counterpart, so the second rung would not be eligible.
      CASES.filter(one => one.fault.request === undefined && !isHeavy(one)),
    ),
  ],
  [
    'enforce with nothing else to try',
    enforcing(
      1,
      undefined,
      CASES.filter(one => !isHeavy(one)),
    ),
  ],
  [
    'enforce with nothing else to try, released early',
    enforcing(
      1,
      undefined,
      // What is seen only when frames have gone cannot be taken back: a refusal, or indexes that no client reads.
      CASES.filter(one => !isHeavy(one) && one.exchange.stream && !KNOWN_LATE.has(one.fault.name)),
      ', early_release = true',
    ),
  ],
]

interface Ended {
  one: Case
  got: Received | Failed
  /** How long the machine stood still while it was under way. */
  stoodStillMs: number
  /** Upstream calls of this case that were open a second after the client had its answer. */
  open: number
}

/** What one router did with some of the cases. */
interface Round {
  ended: readonly Ended[]
  receipts: readonly TraceRecord[]
  store: Buffer
  logs: readonly string[]
}

/** Less than lies between any two times that a case tells apart. */
const STANDSTILL_MS = 100
/** Side by side in the first round, and in those of the cases that a standstill of the machine disturbed. */
const LANES = [64, 8, 2, 2, 2]

async function playRound(options: Mode['options'], cases: readonly Case[], lanes: number): Promise<Round> {
  const upstream = await scriptedUpstream()
  const watch = standstills()
  try {
    const calls = openCalls(upstream)
    const router: ServedRouter = await servedRouter(options(upstream.origin, cases))
    const run = async (one: Case): Promise<Ended> => {
      const fromMs = performance.now()
      const got = await ask(router.origin + PATHS[one.exchange.dialect], one)
      const open = await calls.after(one.id, 1000)
      return { one, got, stoodStillMs: watch.longest(fromMs, performance.now()), open }
    }
    const [heavy, light] = [cases.filter(isHeavy), cases.filter(one => !isHeavy(one))]
    const ended = [...(await inParallel(light, lanes, run)), ...(await inParallel(heavy, 2, run))]
    return { ended, ...(await router.stop()), logs: router.logs }
  } finally {
    watch.stop()
    await upstream.close()
  }
}

const isDisturbed = ({ stoodStillMs, one }: Ended) => stoodStillMs > STANDSTILL_MS && !isHeavy(one)

describe.each(MODES.map(([name, mode]) => [mode.cases.length, name, mode] as const))(
  '%i faults in %s',
  (_count, _name, { rungs, cases, options }) => {
    let rounds: Round[]
    /** Of each case, from the last round that it was in. */
    let ended: (Ended & { receipt: TraceRecord | undefined })[]
    const said: string[] = []
    beforeAll(async () => {
      // A library below us would speak to the console when a stream breaks; what went wrong is one line of our log.
      vi.spyOn(console, 'error').mockImplementation((...parts) => void said.push(inspect(parts, { depth: 9 })))
      rounds = []
      const last = new Map<string, Ended & { receipt: TraceRecord | undefined }>()
      let due = cases
      for (const lanes of LANES) {
        if (due.length === 0) break
        const round = await playRound(options, due, lanes)
        rounds.push(round)
        const by = new Map(round.receipts.map(receipt => [receipt.final.client_request_id, receipt]))
        for (const one of round.ended) last.set(one.one.id, { ...one, receipt: by.get(one.one.id) })
        due = round.ended.filter(isDisturbed).map(({ one }) => one)
      }
      ended = [...last.values()]
    }, 180_000)
    afterAll(() => void vi.restoreAllMocks())

    it('gives each client a whole answer or an error of its dialect, and never a shortened success', async () => {
      const problems = ended.map(async ({ one, got }) => {
        const problem = rungs === 0 ? notRelayed(one, got) : await notRouted(one, got, rungs)
        return problem && `${label(one)}: ${problem}`
      })
      expect((await Promise.all(problems)).filter(problem => problem !== undefined)).toEqual([])
    })

    it('leaves exactly one receipt of each request, in a chain that holds', () => {
      expect(ended).toHaveLength(cases.length)
      for (const { receipts, ended } of rounds) {
        const ids = receipts.map(({ final }) => final.client_request_id)
        expect(ids.toSorted()).toEqual(ended.map(({ one }) => one.id).toSorted())
        const chain = recordChainChecker()
        for (const receipt of receipts) expect(chain.push(receipt)).toBeUndefined()
        expect(new Set(receipts.map(({ mode }) => mode))).toEqual(new Set([rungs === 0 ? 'observe' : 'enforce']))
      }
    })

    it('says in the receipt what was tried, why it failed, and what the client got', () => {
      const problems = ended.map(({ one, got, receipt }) => {
        if (receipt === undefined) return `${label(one)}: no receipt`
        const told = rungs === 0 ? observedAs(receipt) : tried(receipt).join(', ')
        const due = rungs === 0 ? observedDue(one) : dueTries(one, rungs, got).join(', ')
        return told === due ? undefined : `${label(one)}: ${told} instead of ${due}`
      })
      expect(problems.filter(problem => problem !== undefined)).toEqual([])
    })

    it('adds attempts and gates up to the total', () => {
      const nano = (usd: number | null) => (usd === null ? Number.NaN : Math.round(usd * 1e9))
      const receipts = ended.map(({ receipt }) => receipt!)
      for (const { attempts, final } of receipts) {
        const costs = attempts.flatMap(({ cost, gates }) => [cost, ...gates.map(gate => gate.cost)])
        const sum = costs.reduce<number>((total, cost) => total + nano(cost), 0)
        expect(nano(final.total_cost_usd), final.client_request_id).toBe(sum)
      }
      const priced = receipts.filter(({ final }) => (final.total_cost_usd ?? 0) > 0)
      expect(priced.length).toBeGreaterThan(cases.length / 4)
    })

    it('leaves no upstream call open a second after the client has its answer', () => {
      expect(ended.filter(({ open }) => open > 0).map(({ one }) => label(one))).toEqual([])
    })

    it('says nothing beside its log', () => {
      expect(said).toEqual([])
    })

    it('lets no key and no word of prompt or answer into receipts, store or log', () => {
      const kept = [
        ...rounds.flatMap(({ receipts, store, logs }) => [
          JSON.stringify(receipts),
          store.toString('latin1'),
          logs.join('\n'),
        ]),
        said.join('\n'),
      ]
      for (const canary of [...CANARIES, SECOND])
        for (const text of kept) expect(text.includes(canary), canary).toBe(false)
      expect(rounds[0]!.store.length).toBeGreaterThan(isFull ? 100_000 : cases.length * 250)
    })
  },
)

const label = ({ fault, exchange }: Case) =>
  `${fault.name} (${exchange.dialect}, ${exchange.stream ? 'stream' : 'JSON'})`

/** Plays the fault of each call that names one, and the plain answer of the second rung. */
function openCalls(upstream: ScriptedUpstream) {
  const open = new Map<string, Set<Promise<void>>>()
  upstream.always(async (response, { rawHeaders, url }) => {
    const id = rawHeaders[rawHeaders.findIndex(name => name.toLowerCase() === 'x-case') + 1] ?? ''
    const { fault, exchange } = BY_ID.get(id)!
    const calls = open.get(id) ?? new Set()
    open.set(id, calls)
    const closed = new Promise<void>(resolve => response.once('close', resolve)).then(() => void calls.delete(closed))
    calls.add(closed)
    const dialect = (Object.keys(PATHS) as Exchange['dialect'][]).find(name => url.endsWith(PATHS[name]))!
    await play(url.startsWith('/second/') ? whole({ ...exchange, dialect }, SECOND) : fault.wire(exchange), response)
  })
  return {
    /** How many calls of a case are open when all have closed or so many milliseconds have passed. */
    async after(id: string, ms: number): Promise<number> {
      const calls = open.get(id) ?? new Set()
      let timer: ReturnType<typeof setTimeout> | undefined
      const late = new Promise(resolve => {
        timer = setTimeout(resolve, ms)
      })
      await Promise.race([Promise.all(calls), late])
      clearTimeout(timer)
      return calls.size
    },
  }
}

async function inParallel<T, R>(list: readonly T[], width: number, work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const lane = async () => {
    while (next < list.length) {
      const at = next++
      results[at] = await work(list[at]!)
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  return results
}

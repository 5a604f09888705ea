import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Tokens } from '../../shared/dialects/candidate.ts'
import { attemptCost, classPrices, inputTokens } from '../../shared/prices/price.ts'
import { afterTurn, type CacheLedger, type CachingRung, stayForCache } from './cache-stay.ts'

const rungOf = (
  rung: number,
  input: number,
  output: number,
  dialect: CachingRung['dialect'] = 'messages',
): CachingRung => ({
  rung,
  dialect,
  price: { base: classPrices({ input, output }, dialect), tiers: [] },
})
const cheap = rungOf(0, 1, 5)
const dear = rungOf(1, 3, 15)
const NONE: Tokens = { uncached: 0, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 0 }
const call = (rung: CachingRung, tokens: Partial<Tokens>, startedAt: number) => {
  const whole = { ...NONE, ...tokens }
  return { rung, tokens: whole, cost: attemptCost(rung.price!, whole), startedAt }
}
const first = (tokens: Partial<Tokens>, on = dear) => {
  const served = call(on, tokens, 0)
  return afterTurn(undefined, {
    calls: [served],
    served,
    insteadOf: undefined,
    now: 0,
    bodyBytes: 400_000,
    messages: 3,
  })
}
const turn = { now: 60_000, bodyBytes: 404_000, messages: 5 }

describe('stayForCache', () => {
  it('stays where the other rung would fill its cache anew, with the figures', () => {
    const ledger = first({ cache_write_5m: 100_000, output: 1000 })!
    expect(stayForCache(ledger, { on: dear, to: cheap, turn })).toEqual({
      from: 1,
      to: 0,
      stays: true,
      cachedTokens: 100_000,
      cachedForMs: 240_000,
      // 100,000 read at 0.30, 1,000 written at 3.75, 1,000 put out at 15.
      stayCost: 48_750_000,
      // 101,000 written at 1.25, 1,000 put out at 5.
      goCost: 131_250_000,
      withoutCost: 131_250_000,
      balance: 0,
    })
  })

  it.each([
    ['the other rung has it in its cache too', { cache_write_5m: 100_000, output: 1000 }, {}, true],
    ['the answer is long and the prefix short', { cache_write_5m: 1000, output: 50_000 }, {}, false],
  ])('goes where %s', (_, tokens, over, warm) => {
    const served = call(dear, tokens, 0)
    const calls = warm ? [call(cheap, tokens, 0), served] : [served]
    const ledger = afterTurn(undefined, {
      calls,
      served,
      insteadOf: undefined,
      now: 0,
      bodyBytes: 400_000,
      messages: 3,
    })!
    expect(stayForCache(ledger, { on: dear, to: cheap, turn: { ...turn, ...over } })?.stays).toBe(false)
  })

  it.each([
    ['its cache has ended', { now: 300_000 }],
    ['the conversation was cut', { bodyBytes: 300_000 }],
    ['messages were taken out', { messages: 1 }],
  ])('does not look at a session whose prefix is gone, because %s', (_, over) => {
    const ledger = first({ cache_write_5m: 100_000, output: 1000 })!
    expect(stayForCache(ledger, { on: dear, to: cheap, turn: { ...turn, ...over } })).toBeUndefined()
  })

  it('keeps a prefix that was paid for an hour that long, also while it is only read', () => {
    const written = first({ cache_write_1h: 100_000, output: 1000 })!
    expect(stayForCache(written, { on: dear, to: cheap, turn: { ...turn, now: 3_000_000 } })?.cachedForMs).toBe(600_000)
    const served = call(dear, { cache_read: 100_000, uncached: 1000, output: 1000 }, 1_000_000)
    const read = afterTurn(written, { ...turn, calls: [served], served, insteadOf: undefined, now: 1_000_000 })!
    expect(stayForCache(read, { on: dear, to: cheap, turn: { ...turn, now: 4_000_000 } })?.cachedForMs).toBe(600_000)
  })

  it('counts no cache at a rung of another dialect that was never seen to have one', () => {
    const chat = rungOf(0, 0.4, 1.6, 'chat')
    const ledger = first({ cache_write_5m: 100_000, output: 100 })!
    // 101,000 at 0.40 there.
    expect(stayForCache(ledger, { on: dear, to: chat, turn })).toMatchObject({ stays: true, goCost: 40_560_000 })
  })

  it('remembers nothing of a session that no provider caches', () => {
    expect(first({ uncached: 100_000, output: 1000 })).toBeUndefined()
  })

  it('goes after what it saved is used up, so that a session that never ends pays for one cache too many and no more', () => {
    const { stayed, withIt, without } = play(
      { growth: Array(20).fill(1000), outputs: Array(20).fill(500), gaps: Array(20).fill(30_000), prefix: 100_000 },
      [cheap, dear],
    )
    expect(stayed).toBeGreaterThan(1)
    expect(stayed).toBeLessThan(8)
    expect(withIt - without).toBeLessThanOrEqual(
      attemptCost(cheap.price!, { ...NONE, cache_write_5m: 125_000, output: 500 }),
    )
  })
})

interface Play {
  prefix: number
  growth: readonly number[]
  outputs: readonly number[]
  gaps: readonly number[]
  /** Turns on which the cheap rung cannot be called. */
  away?: readonly boolean[]
}

/** In messages what is new is written to the cache, elsewhere it is cached by itself. */
const billed = (
  { dialect }: CachingRung,
  { read, rest, output }: { read: number; rest: number; output: number },
): Tokens =>
  dialect === 'messages'
    ? { ...NONE, cache_read: read, cache_write_5m: rest, output }
    : { ...NONE, cache_read: read, uncached: rest, output }

/** A session as its providers bill it, with staying and without: the first turn is on the dear rung, and answers of the cheap one pass. */
function play({ prefix, growth, outputs, gaps, away = [] }: Play, [low, high]: readonly [CachingRung, CachingRung]) {
  const money = { withIt: 0, without: 0 }
  const caches = {
    withIt: new Map<number, { tokens: number; until: number }>(),
    without: new Map<number, { tokens: number; until: number }>(),
  }
  let dearest = 0
  let now = 0
  let size = prefix
  let ledger: CacheLedger | undefined
  let stayed = 0
  const bill = (who: 'withIt' | 'without', rung: CachingRung, output: number): Tokens => {
    const held = caches[who].get(rung.rung)
    const read = held !== undefined && held.until > now ? Math.min(held.tokens, size) : 0
    caches[who].set(rung.rung, { tokens: size, until: now + 300_000 })
    const tokens = billed(rung, { read, rest: size - read, output })
    money[who] += attemptCost(rung.price!, tokens)
    dearest = Math.max(dearest, attemptCost(low.price!, billed(low, { read: 0, rest: size, output })))
    return tokens
  }
  let worstTurn = 0
  for (const [index, output] of outputs.entries()) {
    const isAway = index === 0 || away[index] === true
    const at = { now, bodyBytes: size * 4, messages: index * 2 + 1 }
    const stay =
      isAway || ledger === undefined || ledger.last.rung !== high.rung
        ? undefined
        : stayForCache(ledger, { on: high, to: low, turn: at })
    const rung = isAway || stay?.stays ? high : low
    if (stay?.stays) stayed++
    const served = call(rung, bill('withIt', rung, output), now)
    worstTurn = Math.max(worstTurn, attemptCost(high.price!, billed(high, { read: 0, rest: size, output })))
    ledger = afterTurn(ledger, { ...at, calls: [served], served, insteadOf: stay?.stays ? low : undefined })
    bill('without', isAway ? high : low, output)
    now += gaps[index] ?? 0
    size += growth[index] ?? 0
    expect(inputTokens(served.tokens)).toBeLessThanOrEqual(size)
  }
  return { ...money, stayed, dearest, worstTurn }
}

const prices = fc.record({
  low: fc.integer({ min: 1, max: 40 }),
  high: fc.integer({ min: 1, max: 200 }),
  times: fc.integer({ min: 2, max: 8 }),
})
const session = (turns: number, outputs: fc.Arbitrary<number[]>) =>
  fc.record({
    prefix: fc.integer({ min: 0, max: 200_000 }),
    growth: fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: turns, maxLength: turns }),
    gaps: fc.array(fc.integer({ min: 0, max: 400_000 }), { minLength: turns, maxLength: turns }),
    away: fc.array(fc.boolean(), { minLength: turns, maxLength: turns }),
    outputs,
  })
type Dialects = readonly [CachingRung['dialect'], CachingRung['dialect']]
const chatRung = (rung: number, input: number, output: number): CachingRung => ({
  rung,
  dialect: 'chat',
  price: {
    base: classPrices({ input, output, cacheRead: Math.round(input * 250_000) / 1_000_000 }, 'chat'),
    tiers: [],
  },
})
const ladder = ({ low, high, times }: { low: number; high: number; times: number }, [one, other]: Dialects) => {
  const made = (dialect: CachingRung['dialect']) => (dialect === 'messages' ? rungOf : chatRung)
  return [made(one)(0, low / 10, (low / 10) * times), made(other)(1, high / 10, (high / 10) * times)] as const
}
const DIALECTS: Dialects[] = [
  ['messages', 'messages'],
  ['chat', 'chat'],
  ['chat', 'messages'],
  ['messages', 'chat'],
]

describe('a session that may stay', () => {
  it.each(DIALECTS)(
    'from %s to %s is never dearer than one that does not, but for one cache that it fills, where turns are as long as they are taken to be',
    (...dialects) => {
      fc.assert(
        fc.property(
          prices,
          session(
            25,
            fc.integer({ min: 0, max: 8000 }).map(output => Array<number>(25).fill(output)),
          ),
          (price, one) => {
            const { withIt, without, dearest } = play(one, ladder(price, dialects))
            expect(withIt - without).toBeLessThanOrEqual(dearest)
          },
        ),
        { numRuns: 500 },
      )
    },
  )

  it.each(DIALECTS)(
    'from %s to %s is dearer by one turn more at most, where answers are longer than the ones before',
    (...dialects) => {
      fc.assert(
        fc.property(
          prices,
          session(25, fc.array(fc.integer({ min: 0, max: 16_000 }), { minLength: 25, maxLength: 25 })),
          (price, one) => {
            const { withIt, without, dearest, worstTurn } = play(one, ladder(price, dialects))
            expect(withIt - without).toBeLessThanOrEqual(dearest + worstTurn)
          },
        ),
        { numRuns: 500 },
      )
    },
  )
})

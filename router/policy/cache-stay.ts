import { type DialectName, NO_TOKENS, type Tokens } from '../../shared/dialects/candidate.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import { attemptCost, inputTokens, type Price } from '../../shared/prices/price.ts'

/** A rung as far as its price and its provider's cache go. */
export interface CachingRung {
  readonly rung: number
  readonly dialect: DialectName
  readonly price: Price | null
}

/** What a provider holds of a conversation, until when, in milliseconds on the clock that never jumps. */
export interface CachedPrefix {
  readonly tokens: number
  readonly until: number
  /** How long it is kept from a use on. */
  readonly lifeMs: number
  /** It was not called: this is what its cache would be. */
  readonly isSupposed?: true
}

/** What is kept of a session's caches and money: numbers alone. */
export interface CacheLedger {
  readonly byRung: ReadonlyMap<number, CachedPrefix>
  /** The same of the rungs that the session would have been on without staying. */
  readonly without: ReadonlyMap<number, CachedPrefix>
  /** What the session has cost, less what it would have cost without staying: below 0 it has saved. */
  readonly balance: NanoUsd
  readonly last: Served
}

/** The answer of the turn before, and the request that it came to. */
export interface Served {
  readonly rung: number
  readonly dialect: DialectName
  readonly tokens: Tokens
  readonly bodyBytes: number
  readonly messages: number
}

export interface Turn {
  readonly now: number
  readonly bodyBytes: number
  readonly messages: number
}

/** The figures of the decision, as the receipt has them. */
export interface Stay {
  readonly from: number
  readonly to: number
  readonly stays: boolean
  readonly cachedTokens: number
  readonly cachedForMs: number
  /** The next turn on the rung that it is on, and on the one that it would go to. */
  readonly stayCost: NanoUsd
  readonly goCost: NanoUsd
  /** The same turn there, had the session gone there before. */
  readonly withoutCost: NanoUsd
  readonly balance: NanoUsd
}

/**
 * Whether a conversation stays on the dearer rung that it is on. It does while that is cheaper than to go, and while the session as a
 * whole costs no more than if it had never stayed: so what it saves by not filling another cache is all that staying may cost.
 */
export function stayForCache(
  ledger: CacheLedger,
  { on, to, turn }: { on: CachingRung; to: CachingRung; turn: Turn },
): Stay | undefined {
  const held = ledger.byRung.get(on.rung)
  // Fewer messages, or a shorter body, are another conversation under the same name, or one that was cut.
  const goesOn = turn.messages >= ledger.last.messages && turn.bodyBytes >= ledger.last.bodyBytes
  if (held === undefined || held.until <= turn.now || !goesOn || on.price === null || to.price === null)
    return undefined
  const next = nextTokens(ledger.last, turn)
  const costOn = (rung: CachingRung, caches: ReadonlyMap<number, CachedPrefix>, atBest = false) =>
    attemptCost(rung.price!, billedOn(rung, next, { ledger, caches, now: turn.now, atBest }))
  const stayCost = costOn(on, ledger.byRung)
  const goCost = costOn(to, ledger.byRung)
  const withoutCost = costOn(to, ledger.without, true)
  return {
    from: on.rung,
    to: to.rung,
    stays: stayCost < goCost && ledger.balance + stayCost <= withoutCost,
    cachedTokens: held.tokens,
    cachedForMs: held.until - turn.now,
    stayCost,
    goCost,
    withoutCost,
    balance: ledger.balance,
  }
}

/** The input grows by what the body grew by, at four bytes a token; the answer is as long as the one before. */
function nextTokens({ tokens, bodyBytes }: Served, turn: Turn): Tokens {
  const grown = Math.floor(Math.max(0, turn.bodyBytes - bodyBytes) / 4)
  const { uncached, output } = tokens
  const reused = inputTokens(tokens) - uncached
  return { ...NO_TOKENS, ...tokensOfKind(kindOf(tokens), reused + grown), uncached, output }
}

const tokensOfKind = (kind: 'cache_write_5m' | 'cache_write_1h', count: number) => ({ [kind]: count })

const kindOf = ({ cache_write_1h }: Tokens) => (cache_write_1h > 0 ? 'cache_write_1h' : 'cache_write_5m')

interface Billing {
  ledger: Pick<CacheLedger, 'byRung' | 'last'>
  caches: ReadonlyMap<number, CachedPrefix>
  now: number
  /** A rung of whose cache nothing is known is taken to have the best one: the comparison is with the least that it can have cost. */
  atBest?: boolean
}

/** The tokens of one turn as a rung would bill them, by what its provider has in its cache. */
function billedOn(rung: CachingRung, tokens: Tokens, { ledger, caches, now, atBest = false }: Billing): Tokens {
  const known = styleOf(rung, ledger)
  const style = known === 'none' && atBest ? 'automatic' : known
  const all = inputTokens(tokens)
  if (style === 'none') return { ...NO_TOKENS, uncached: all, output: tokens.output }
  const prefix = caches.get(rung.rung)
  const alive = prefix !== undefined && prefix.until > now ? prefix.tokens : 0
  if (style === 'automatic') {
    const read = Math.min(alive, all)
    return { ...NO_TOKENS, uncached: all - read, cache_read: read, output: tokens.output }
  }
  const marked = all - tokens.uncached
  const read = Math.min(alive, marked)
  return {
    ...NO_TOKENS,
    ...tokensOfKind(kindOf(tokens), marked - read),
    uncached: tokens.uncached,
    cache_read: read,
    output: tokens.output,
  }
}

/** Whether a provider caches what the client has marked, or by itself; what nothing was seen of does not. */
function styleOf({ rung, dialect }: CachingRung, { byRung, last }: Billing['ledger']): 'marked' | 'automatic' | 'none' {
  const reuses = inputTokens(last.tokens) > last.tokens.uncached
  const isMessages = (name: DialectName) => name === 'messages'
  if (isMessages(dialect)) return isMessages(last.dialect) && reuses ? 'marked' : 'none'
  const seen = (byRung.get(rung)?.tokens ?? 0) > 0
  return seen || (!isMessages(last.dialect) && reuses) ? 'automatic' : 'none'
}

/** Vendors keep a prefix for five minutes from its last use, or for the hour that was paid for. */
const SHORT_MS = 300_000
const LONG_MS = 3_600_000

function heldAfter(
  before: CachedPrefix | undefined,
  tokens: number,
  { billed, startedAt }: { billed: Tokens; startedAt: number },
): CachedPrefix {
  const { cache_write_1h: long, cache_write_5m: short } = billed
  const lifeMs = long > 0 ? LONG_MS : short > 0 ? SHORT_MS : (before?.lifeMs ?? SHORT_MS)
  return { tokens, until: startedAt + lifeMs, lifeMs }
}

/** One call of a turn, as its provider has counted it. */
export interface CountedCall {
  readonly rung: CachingRung
  readonly tokens: Tokens
  readonly cost: NanoUsd
  /** The cache counts from the beginning of a call. */
  readonly startedAt: number
}

export interface EndedTurn extends Turn {
  readonly calls: readonly CountedCall[]
  readonly served: CountedCall
  /** The rung on which the session would have been without staying; undefined where it did not stay. */
  readonly insteadOf: CachingRung | undefined
}

/** The ledger after a turn; undefined while no provider has cached anything of the session. */
export function afterTurn(before: CacheLedger | undefined, ended: EndedTurn): CacheLedger | undefined {
  const { calls, served, insteadOf, bodyBytes, messages } = ended
  if (before === undefined && !calls.some(({ tokens }) => cachedBy(tokens) > 0)) return undefined
  const byRung = new Map(before?.byRung)
  for (const { rung, tokens, startedAt } of calls)
    byRung.set(rung.rung, heldAfter(byRung.get(rung.rung), cachedBy(tokens), { billed: tokens, startedAt }))
  const last: Served = {
    rung: served.rung.rung,
    dialect: served.rung.dialect,
    tokens: served.tokens,
    bodyBytes,
    messages,
  }
  const ledger = { byRung, last, without: new Map(before?.without), balance: before?.balance ?? 0 }
  return insteadOf === undefined ? afterGoing(ledger, ended) : afterStaying(ledger, ended, insteadOf)
}

type Ledger = CacheLedger & { without: Map<number, CachedPrefix> }

/** The session would have been called on the other rung, whose answer would have passed: that is the least it can have cost. */
function afterStaying(ledger: Ledger, { calls, served, now }: EndedTurn, other: CachingRung): CacheLedger {
  if (other.price === null) return ledger
  const { without } = ledger
  const billed = billedOn(other, served.tokens, { ledger, caches: without, now, atBest: true })
  const style = styleOf(other, ledger)
  const kept = style === 'marked' ? cachedBy(billed) : inputTokens(billed)
  const { startedAt } = served
  const before = style === 'none' ? { tokens: 0, until: 0, lifeMs: LONG_MS } : without.get(other.rung)
  without.set(other.rung, { ...heldAfter(before, kept, { billed, startedAt }), isSupposed: true })
  const spent = calls.reduce((sum, { cost }) => sum + cost, 0)
  return { ...ledger, balance: ledger.balance + spent - attemptCost(other.price, billed) }
}

/** A call to a rung whose cache would be fuller pays for filling it now. */
function afterGoing(ledger: Ledger, { calls, now }: EndedTurn): CacheLedger {
  let { balance } = ledger
  const { without } = ledger
  for (const { rung, tokens, cost, startedAt } of calls) {
    if (rung.price !== null && without.get(rung.rung)?.isSupposed) {
      const billed = billedOn(rung, tokens, { ledger, caches: without, now, atBest: true })
      balance += Math.max(0, cost - attemptCost(rung.price, billed))
    }
    // In messages the usage says all that is held. Elsewhere a provider may hold what it has not been asked for again.
    const held = ledger.byRung.get(rung.rung)!
    const best = { tokens: inputTokens(tokens), until: startedAt + LONG_MS, lifeMs: LONG_MS }
    without.set(rung.rung, rung.dialect === 'messages' ? held : best)
  }
  return { ...ledger, balance }
}

const cachedBy = ({ cache_read, cache_write_5m, cache_write_1h }: Tokens) =>
  cache_read + cache_write_5m + cache_write_1h

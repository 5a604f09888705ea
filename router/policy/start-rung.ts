import { type Override, overrides as overrideOrder } from '../../shared/wire/router/trace.ts'
import type { Route } from '../config/routing-config.ts'
import type { CacheLedger, Stay } from './cache-stay.ts'
import type { Knobs } from './knobs.ts'

export interface Session {
  readonly lastServedRung: number
  readonly idleS: number
  /** Number of this request in its session, counted from 1. */
  readonly turn: number
  /** Mean of what its requests read from a provider's cache. */
  readonly cacheReadTokens?: number
  /** What providers have cached of it. */
  readonly cache?: CacheLedger | undefined
}

/** A learned start (§7.5): which rung was drawn, and the chance that each rung had. */
export interface Draw {
  readonly rung: number
  readonly chances: readonly number[]
  readonly explored: boolean
}

export interface StartInput {
  readonly route: Pick<
    Route,
    'ladder' | 'minRungTools' | 'minRungImages' | 'modelHint' | 'thinkingPolicy' | 'stickyTtlS' | 'startRung'
  >
  readonly knobs: Knobs
  readonly profileByHeader: boolean
  readonly eligible: readonly number[]
  readonly hasTools: boolean
  readonly hasImages: boolean
  readonly hasThinkingHistory: boolean
  /** The rung that holds the conversation of the request. */
  readonly held?: number | undefined
  readonly requestedModel: string | undefined
  readonly session: Session | undefined
  readonly breakerOpen: (rung: number) => boolean
  readonly draw?: Draw | undefined
  /** What it costs to stay on the rung that served last, in place of a cheaper one. */
  readonly stay?: ((to: number) => Stay | undefined) | undefined
}

export interface Start {
  /** null when no eligible rung lies between floor and ceiling. */
  readonly rung: number | null
  /** No attempt of this request goes below it. */
  readonly floor: number
  /** No attempt goes above it. */
  readonly ceiling: number
  readonly overrides: readonly Override[]
  readonly propensity: number
  readonly explored: boolean
  /** It was drawn from what was learned. */
  readonly drawn: boolean
  /** A header or a floor decided, whatever was drawn. */
  readonly forced: boolean
  /** Where it was weighed whether the session stays for what is cached. */
  readonly stay?: Stay | undefined
}

/** Every fifth turn of a sticky session tries one rung lower. */
const PROBE_EVERY = 5

/** docs/spec/router.md §4, step 4. */
export function startRung(input: StartInput): Start {
  const bounds = boundsOf(input)
  const draw = input.knobs.learned !== null && bounds.hinted === null ? input.draw : undefined
  const { rung, overrides, stay } = place(input, bounds, draw?.rung)
  const pinned = input.hasThinkingHistory && input.route.thinkingPolicy === 'pin'
  return {
    rung,
    floor: bounds.floor,
    ceiling: pinned && rung !== null ? rung : bounds.ceiling,
    overrides: overrideOrder.filter(name => overrides.has(name)),
    propensity: draw === undefined ? 1 : chanceOf(input, bounds, draw, rung),
    explored: draw?.explored === true,
    drawn: draw !== undefined,
    forced: overrides.has('header') || overrides.has('thinking_floor') || overrides.has('conversation'),
    ...(stay && { stay }),
  }
}

interface Bounds {
  readonly floor: number
  readonly ceiling: number
  readonly tools: number
  readonly images: number
  readonly thinking: number
  readonly held: number
  /** The rung of the model the client asked for, where the route listens to that. */
  readonly hinted: number | null
}

function boundsOf(input: StartInput): Bounds {
  const { route, hasTools, hasImages, hasThinkingHistory, requestedModel, session, held = 0 } = input
  const top = route.ladder.length - 1
  const requested = rungOfModel(route.ladder, requestedModel)
  const hinted = route.modelHint === 'ignore' ? null : requested
  // A client that is given the model it asks for gets that model and no other.
  if (route.modelHint === 'pin' && hinted !== null)
    return { floor: hinted, ceiling: hinted, tools: 0, images: 0, thinking: 0, held: 0, hinted }
  const tools = hasTools ? route.minRungTools : 0
  const images = hasImages ? route.minRungImages : 0
  const thinks = hasThinkingHistory && route.thinkingPolicy !== 'strip'
  const thinking = thinks ? Math.min(top, servedBefore(session) ?? requested ?? top) : 0
  return {
    floor: Math.min(top, Math.max(tools, images, thinking, held)),
    ceiling: top,
    tools,
    images,
    thinking,
    held,
    hinted,
  }
}

const servedBefore = (session: Session | undefined): number | null =>
  session !== undefined && session.lastServedRung >= 0 ? session.lastServedRung : null

/** The rung that serves a model when a client names it, with or without its provider. */
function rungOfModel(ladder: Route['ladder'], model: string | undefined): number | null {
  if (model === undefined) return null
  const found = ladder.find(
    rung =>
      rung.model === model || rung.upstreamModel === model || rung.model.slice(rung.model.indexOf('/') + 1) === model,
  )
  return found?.rung ?? null
}

interface Placed {
  rung: number | null
  overrides: Set<Override>
  stay?: Stay | undefined
}

/** The start that a draw leads to, with what moved it there. */
function place(input: StartInput, bounds: Bounds, drawn: number | undefined): Placed {
  const { route, knobs, profileByHeader, breakerOpen } = input
  const { floor, ceiling, hinted } = bounds
  const overrides = new Set<Override>()
  const base = hinted ?? Math.min(route.startRung, route.ladder.length - 1)
  let rung = base
  const move = (to: number, because: Override) => {
    if (to !== rung) overrides.add(because)
    rung = to
  }
  const within = (to: number) => Math.min(ceiling, Math.max(floor, to))

  const { learned } = knobs
  if (learned !== null && drawn !== undefined) rung = Math.min(learned.most, Math.max(learned.least, drawn))
  if (RAISING.has(knobs.profile)) move(Math.max(rung, knobs.start), profileByHeader ? 'header' : 'profile')
  if (bounds.tools > rung) move(bounds.tools, 'tools')
  if (bounds.images > rung) move(bounds.images, 'images')
  const sticky = stickyRung(input, base)
  if (sticky !== null) move(Math.max(rung, sticky), 'sticky')
  if (bounds.thinking > rung) move(bounds.thinking, 'thinking_floor')
  if (bounds.held > rung) move(bounds.held, 'conversation')
  rung = within(rung)

  const eligible = input.eligible.filter(one => one >= floor && one <= ceiling)
  const stay = sticky === null ? weighed(input, eligible, nearest(eligible, rung)) : undefined
  if (stay?.stays) move(stay.from, 'cache')
  const first = nearest(eligible, rung)
  if (first !== null && breakerOpen(first)) {
    const closed = eligible.filter(one => !breakerOpen(one))
    move(nearest(closed, first) ?? rung, 'breaker')
  }
  if (profileByHeader && RAISING.has(knobs.profile)) {
    rung = within(knobs.start)
    overrides.add('header')
    overrides.delete('sticky')
    overrides.delete('cache')
    overrides.delete('breaker')
    return { rung: nearest(eligible, rung), overrides }
  }
  return { rung: nearest(eligible, rung), overrides, stay }
}

/** Whether the session stays above the rung that it would start on; only on one that can be called. */
function weighed({ session, stay, breakerOpen }: StartInput, eligible: readonly number[], to: number | null) {
  const last = servedBefore(session)
  if (stay === undefined || to === null || last === null || last <= to) return undefined
  return eligible.includes(last) && !breakerOpen(last) ? stay(to) : undefined
}

/** Where a sticky session goes on: its last rung, and one lower on every fifth turn. */
function stickyRung({ route, session }: StartInput, base: number): number | null {
  const last = servedBefore(session)
  if (route.stickyTtlS === 0 || session === undefined || last === null || session.idleS > route.stickyTtlS) return null
  const rung = Math.min(last, route.ladder.length - 1)
  return rung > base ? rung - (session.turn % PROBE_EVERY === 0 ? 1 : 0) : null
}

/** Profiles that open above the route's own start; asked for by header, they decide. */
const RAISING: ReadonlySet<string> = new Set(['quality', 'max'])

/** The rung itself or the next above it, else the next below. */
function nearest(rungs: readonly number[], from: number): number | null {
  return rungs.find(rung => rung >= from) ?? rungs.findLast(rung => rung < from) ?? null
}

/** The chance of this start under the whole policy: of all draws that lead to it. */
function chanceOf(input: StartInput, bounds: Bounds, draw: Draw, rung: number | null): number {
  const possible = draw.chances.map((chance, from) => ({ chance, from })).filter(({ chance }) => chance > 0)
  const leading = possible.filter(({ from }) => place(input, bounds, from).rung === rung)
  if (leading.length === possible.length) return 1
  return Math.min(
    1,
    leading.reduce((sum, { chance }) => sum + chance, 0),
  )
}

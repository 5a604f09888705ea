import { type Override, overrides as overrideOrder } from '../../shared/wire/router/trace.ts'
import type { Route } from '../config/routing-config.ts'
import type { Knobs } from './knobs.ts'

export interface Session {
  readonly lastServedRung: number
  readonly idleS: number
  /** Number of this request in its session, counted from 1. */
  readonly turn: number
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
  readonly requestedModel: string | undefined
  readonly session: Session | undefined
  readonly breakerOpen: (rung: number) => boolean
  readonly draw?: Draw | undefined
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
  /** A header or a floor decided, whatever was drawn. */
  readonly forced: boolean
}

/** Every fifth turn of a sticky session tries one rung lower. */
const PROBE_EVERY = 5

/** Router contract §4, step 4. */
export function startRung(input: StartInput): Start {
  const bounds = boundsOf(input)
  const served = place(input, bounds, input.draw?.rung)
  const learned = usesDraw(input)
  const propensity = learned && input.draw ? chanceOf(input, bounds, input.draw, served.rung) : 1
  return {
    rung: served.rung,
    floor: bounds.floor,
    ceiling: bounds.ceiling,
    overrides: overrideOrder.filter(name => served.overrides.has(name)),
    propensity,
    explored: learned && input.draw?.explored === true,
    forced: served.overrides.has('header') || served.overrides.has('thinking_floor'),
  }
}

interface Bounds {
  floor: number
  ceiling: number
  tools: number
  images: number
  thinking: number
  pinned: number | null
}

function boundsOf({ route, hasTools, hasImages, hasThinkingHistory, requestedModel, session }: StartInput): Bounds {
  const top = route.ladder.length - 1
  const requested = rungOfModel(route.ladder, requestedModel)
  const pinned = route.modelHint === 'pin' ? requested : null
  const tools = hasTools ? route.minRungTools : 0
  const images = hasImages ? route.minRungImages : 0
  const held = hasThinkingHistory && route.thinkingPolicy !== 'strip'
  const thinking = held ? Math.min(top, session?.lastServedRung ?? requested ?? top) : 0
  // A client that is given the model it asks for gets that model and no other.
  if (pinned !== null) return { floor: pinned, ceiling: pinned, tools: 0, images: 0, thinking: 0, pinned }
  const floor = Math.min(top, Math.max(tools, images, thinking))
  const ceiling = held && route.thinkingPolicy === 'pin' ? Math.max(floor, thinking) : top
  return { floor, ceiling, tools, images, thinking, pinned }
}

/** The rung that serves a model when a client names it, with or without its provider. */
export function rungOfModel(ladder: Route['ladder'], model: string | undefined): number | null {
  if (model === undefined) return null
  const found = ladder.find(
    rung =>
      rung.model === model || rung.upstreamModel === model || rung.model.slice(rung.model.indexOf('/') + 1) === model,
  )
  return found?.rung ?? null
}

/** The start that a draw leads to, with what moved it there. */
function place(
  input: StartInput,
  bounds: Bounds,
  drawn: number | undefined,
): { rung: number | null; overrides: Set<Override> } {
  const { route, knobs, profileByHeader, session, breakerOpen } = input
  const overrides = new Set<Override>()
  let rung = Math.min(route.startRung, route.ladder.length - 1)
  const move = (to: number, because: Override) => {
    if (to !== rung) overrides.add(because)
    rung = to
  }

  if (route.modelHint !== 'ignore') rung = rungOfModel(route.ladder, input.requestedModel) ?? rung
  const hinted = rung
  const { learned } = knobs
  if (bounds.pinned === null) {
    if (learned !== null && drawn !== undefined) rung = Math.min(learned.most, Math.max(learned.least, drawn))
    // A profile that opens higher than the route does; the hint of a client is never lowered by it.
    move(Math.max(rung, knobs.start), profileByHeader ? 'header' : 'profile')
  }
  if (bounds.tools > rung) move(bounds.tools, 'tools')
  if (bounds.images > rung) move(bounds.images, 'images')
  if (route.stickyTtlS > 0 && session !== undefined && session.idleS <= route.stickyTtlS && bounds.pinned === null) {
    const last = Math.min(session.lastServedRung, route.ladder.length - 1)
    const probe = session.turn % PROBE_EVERY === 0 ? 1 : 0
    if (last > hinted) move(Math.max(rung, last - probe, bounds.floor), 'sticky')
  }
  if (bounds.thinking > rung) move(bounds.thinking, 'thinking_floor')
  rung = Math.min(bounds.ceiling, Math.max(bounds.floor, rung))

  const eligible = input.eligible.filter(one => one >= bounds.floor && one <= bounds.ceiling)
  if (breakerOpen(rung)) {
    const closed = nearest(
      eligible.filter(one => !breakerOpen(one)),
      rung,
    )
    if (closed !== null) move(closed, 'breaker')
  }
  if (profileByHeader && FORCING.has(knobs.profile)) {
    const forced = Math.min(bounds.ceiling, Math.max(bounds.floor, knobs.start))
    overrides.add('header')
    if (forced !== rung) overrides.delete('breaker')
    rung = forced
  }
  return { rung: nearest(eligible, rung), overrides }
}

/** Profiles that say which rung to open on when a header asks for them. */
const FORCING: ReadonlySet<string> = new Set(['quality', 'max'])

/** The rung itself or the next above it, else the next below. */
function nearest(rungs: readonly number[], from: number): number | null {
  return rungs.find(rung => rung >= from) ?? rungs.findLast(rung => rung < from) ?? null
}

const usesDraw = ({ knobs, draw }: StartInput) => knobs.learned !== null && draw !== undefined

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

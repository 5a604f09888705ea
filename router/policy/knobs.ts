import { type Profile, profiles } from '../../shared/wire/router/conventions.ts'
import type { Learning, Route } from '../config/routing-config.ts'

/** What a profile means for one route (docs/spec/router.md §6.7). */
export interface Knobs {
  readonly profile: Profile
  /** Start without a learned draw. */
  readonly start: number
  /** Bounds of a learned start, both included; null where none is used. */
  readonly learned: { readonly least: number; readonly most: number } | null
  /** Share of starts drawn to learn from. */
  readonly epsilon: number
  readonly threshold: 'off' | { readonly atLeast: number }
  /** Rungs called ahead of a verdict that is close. */
  readonly speculation: number
  readonly band: number
  readonly maxEscalations: number
}

const QUALITY_THRESHOLD = 0.8
const BAND = 0.15

type KnobRoute = Pick<Route, 'ladder' | 'startRung' | 'strongRung' | 'maxEscalations'>

export function resolveKnobs(profile: Profile, route: KnobRoute, learning: Learning, byHeader: boolean): Knobs {
  const top = Math.max(0, route.ladder.length - 1)
  const on = learning.algorithm !== 'off'
  const up = (rung: number) => Math.min(top, rung)
  const step = { least: up(route.startRung), most: up(route.startRung + learning.maxStep) }
  const plain: Knobs = {
    profile,
    start: up(route.startRung),
    learned: null,
    epsilon: 0,
    threshold: { atLeast: 0 },
    speculation: 0,
    band: 0,
    maxEscalations: route.maxEscalations,
  }
  switch (profile) {
    case 'cost':
      return { ...plain, threshold: 'off' }
    case 'balanced':
      return { ...plain, learned: on ? step : null, epsilon: on ? learning.epsilon : 0 }
    case 'latency':
      return { ...plain, learned: on ? step : null, epsilon: on ? learning.epsilon : 0, speculation: 1, band: BAND }
    case 'quality': {
      const start = up(byHeader ? route.strongRung : route.startRung + 1)
      const learned = on && !byHeader ? { least: start, most: top } : null
      return { ...plain, start, learned, threshold: { atLeast: QUALITY_THRESHOLD } }
    }
    case 'max':
      return { ...plain, start: top }
  }
}

/**
 * The score below which an answer is not served; null applies none. `calibrated` is the route's own threshold, null
 * while it has none. A route that lost its certificate is held to its threshold in `cost` as well (§7.4).
 */
export function serveThreshold(knobs: Knobs, calibrated: number | null, lostCertificate: boolean): number | null {
  if (knobs.threshold === 'off') return lostCertificate ? calibrated : null
  const { atLeast } = knobs.threshold
  if (calibrated === null) return atLeast > 0 ? atLeast : null
  return Math.max(calibrated, atLeast)
}

const DESCRIPTIONS: Record<Profile, string> = {
  cost: 'Opens on the cheapest rung and climbs only when a gate fails.',
  balanced: 'Opens on the start rung; a learned start may open one step higher.',
  quality: 'Opens above the start rung and serves only answers with a high score; by header on the strong rung.',
  latency:
    'As balanced, and calls the next rung while slow gates still judge, unless a score or what was learned makes the verdict clear.',
  max: 'Opens at the top of the ladder.',
}

export interface ModeDescription {
  name: Profile
  description: string
  knobs: Record<string, string | number | boolean>
}

/** The five profiles as capabilities, `router modes` and the audit server print them. */
export function describeModes(learning: Learning): ModeDescription[] {
  const on = learning.algorithm !== 'off'
  const start: Record<Profile, string> = {
    cost: 'start_rung',
    balanced: 'start_rung',
    quality: 'start_rung + 1, by header strong_rung',
    latency: 'start_rung',
    max: 'top rung',
  }
  return profiles.map(name => {
    const learns = on && name !== 'cost' && name !== 'max'
    const speculates = name === 'latency'
    return {
      name,
      description: DESCRIPTIONS[name],
      knobs: {
        start: start[name],
        threshold:
          name === 'cost' ? 'not applied' : name === 'quality' ? `at least ${QUALITY_THRESHOLD}` : 'calibrated',
        learned: learns,
        explore: learns && name !== 'quality' ? learning.epsilon : 0,
        speculation: speculates ? 1 : 0,
        band: speculates ? BAND : 0,
        max_escalations: name === 'max' ? 'none needed' : 'of the route',
      },
    }
  })
}

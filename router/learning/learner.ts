import { utf8 } from '../../shared/sign/bytes.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Features } from '../../shared/wire/router/trace.ts'
import type { Learning, Route } from '../config/routing-config.ts'
import type { Knobs } from '../policy/knobs.ts'
import type { Draw, Session } from '../policy/start-rung.ts'
import { xoshiro128 } from '../policy/xoshiro128.ts'
import { type Experience, type Lesson, learned, NO_EXPERIENCE, rungOf } from './experience.ts'
import { drawStart } from './start-draw.ts'

/** Everything known of one route of one tenant, by context. */
export type RouteExperience = Readonly<Record<string, Experience>>

export interface StoredExperience {
  readonly tenantId: string
  readonly routeFp: string
  readonly contexts: RouteExperience
}

/** Contexts kept of a route, and routes of all tenants: the ones that were quiet longest are forgotten. */
const MAX_CONTEXTS = 200
const MAX_ROUTES = 2000
const UINT32 = 4_294_967_296

export interface DrawAsk {
  readonly traceId: string
  readonly tenantId: string
  readonly route: Route
  readonly knobs: Knobs
  readonly eligible: readonly number[]
  readonly features: Features
  readonly session: Session | undefined
  readonly settings: Learning
}

export type ChanceAsk = Pick<DrawAsk, 'tenantId' | 'route' | 'features' | 'settings'>

export type Learner = ReturnType<typeof learner>

export interface LearnerOptions {
  sha256: Sha256
  /** With it, and the id of a trace, its owner can make the same draw again. */
  secret: Uint8Array
  /** There is something to be stored. */
  changed?: () => void
}

/** What was learned of start rungs, and draws from it (docs/spec/router.md §7.5). */
export function learner({ sha256, secret, changed = () => undefined }: LearnerOptions) {
  const routes = new Map<string, { tenantId: string; routeFp: string; contexts: Map<string, Experience> }>()
  let unsaved = new Set<string>()
  const keyOf = (tenantId: string, routeFp: string) => `${tenantId} ${routeFp}`

  function roomOf(tenantId: string, routeFp: string) {
    const key = keyOf(tenantId, routeFp)
    const room = routes.get(key) ?? { tenantId, routeFp, contexts: new Map<string, Experience>() }
    makeNewest(routes, key, room, MAX_ROUTES)
    return { key, contexts: room.contexts }
  }

  /** Of this context, or of the route where that is too little. */
  function known(contexts: Map<string, Experience> | undefined, features: Features, settings: Learning) {
    const found = [contextOf(features), WHOLE_ROUTE].map(context => contexts?.get(context))
    return found.find(one => one !== undefined && one.seen >= settings.minObservations)
  }

  return {
    /** Undefined where too little is known, so that the request starts where its route says. */
    draw({ traceId, tenantId, route, knobs, eligible, features, session, settings }: DrawAsk): Draw | undefined {
      if (knobs.learned === null) return undefined
      const contexts = routes.get(keyOf(tenantId, route.fingerprint))?.contexts
      const experience = known(contexts, features, settings)
      if (experience === undefined) return undefined
      const sticks = session !== undefined && session.lastServedRung >= 0 && session.idleS <= route.stickyTtlS
      const next = xoshiro128(seedOf(traceId))
      return drawStart({
        ladder: route.ladder,
        eligible,
        bounds: knobs.learned,
        experience,
        settings,
        epsilon: knobs.epsilon,
        session: sticks ? { rung: session.lastServedRung, cacheReadTokens: session.cacheReadTokens ?? 0 } : undefined,
        uniform: () => next() / UINT32,
      })
    },

    /** How likely an answer of a rung passes; undefined where too little is known. */
    passChance({ tenantId, route, features, settings }: ChanceAsk, rung: number): number | undefined {
      const contexts = routes.get(keyOf(tenantId, route.fingerprint))?.contexts
      const experience = known(contexts, features, settings)
      if (experience === undefined) return undefined
      const { pass, fail } = rungOf(experience, rung)
      return pass + fail === 0 ? undefined : (1 + pass) / (2 + pass + fail)
    },

    learn(tenantId: string, routeFp: string, features: Features, lessons: readonly Lesson[], discount: number): void {
      if (lessons.length === 0) return
      const { key, contexts } = roomOf(tenantId, routeFp)
      for (const context of [contextOf(features), WHOLE_ROUTE]) {
        const before = contexts.get(context) ?? NO_EXPERIENCE
        const after = lessons.reduce((from, lesson) => learned(from, lesson, discount), before)
        makeNewest(contexts, context, after, MAX_CONTEXTS)
      }
      unsaved.add(key)
      changed()
    },

    load(stored: Iterable<StoredExperience>): void {
      for (const { tenantId, routeFp, contexts } of stored) {
        routes.set(keyOf(tenantId, routeFp), { tenantId, routeFp, contexts: new Map(Object.entries(contexts)) })
      }
    },

    /** What changed since the last call. */
    takeUnsaved(): StoredExperience[] {
      const taken = [...unsaved].flatMap(key => {
        const room = routes.get(key)
        return room ? [{ ...room, contexts: Object.fromEntries(room.contexts) }] : []
      })
      unsaved = new Set()
      return taken
    },

    /** What could not be stored is stored with the next change. */
    returnUnsaved(taken: readonly StoredExperience[]): void {
      for (const { tenantId, routeFp } of taken) unsaved.add(keyOf(tenantId, routeFp))
    },
  }

  function seedOf(traceId: string): number {
    const label = utf8(`start\0${traceId}`)
    const bytes = new Uint8Array(secret.length + label.length)
    bytes.set(secret)
    bytes.set(label, secret.length)
    const hash = sha256(bytes)
    return new DataView(hash.buffer, hash.byteOffset).getUint32(0)
  }
}

function makeNewest<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > most) map.delete(map.keys().next().value!)
}

type Seen = Pick<Features, 'agent' | 'size_bucket' | 'tool_count' | 'image_count'>

/** What a policy sees of a request, beside its route (docs/spec/router.md §7.5). */
export function contextOf({ agent, size_bucket, tool_count, image_count }: Seen): string {
  return JSON.stringify([agent, Math.floor(size_bucket / 2), tool_count > 0, image_count > 0])
}

/** All requests of a route: what stands in for a context that was seen too rarely. */
const WHOLE_ROUTE = ''

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { profiles } from '../../shared/wire/router/conventions.ts'
import type { Route } from '../config/routing-config.ts'
import { resolveKnobs } from './knobs.ts'
import { type StartInput, startRung } from './start-rung.ts'
import { configOf, routeOf } from './testing/route-of.ts'

const off = configOf('').learning
const on = configOf('[learning]\nalgorithm = "thompson"\nmax_step = 15\n').learning

interface Over extends Partial<Omit<StartInput, 'route' | 'knobs' | 'breakerOpen'>> {
  profile?: (typeof profiles)[number]
  learning?: typeof on
  open?: readonly number[]
}

const start = (route: Route, { profile = 'balanced', learning = off, open = [], ...over }: Over = {}) =>
  startRung({
    route,
    knobs: resolveKnobs(profile, route, learning, over.profileByHeader ?? false),
    profileByHeader: false,
    eligible: route.ladder.map(rung => rung.rung),
    hasTools: false,
    hasImages: false,
    hasThinkingHistory: false,
    requestedModel: undefined,
    session: undefined,
    breakerOpen: rung => open.includes(rung),
    ...over,
  })
const short = (route: Route, over?: Over) => {
  const { rung, overrides } = start(route, over)
  return [rung, ...overrides]
}

describe('startRung', () => {
  const route = routeOf(4)

  it('opens on the start rung of the route', () => {
    expect(start(route)).toEqual({
      rung: 0,
      floor: 0,
      ceiling: 3,
      overrides: [],
      propensity: 1,
      explored: false,
      drawn: false,
      forced: false,
    })
    expect(short(routeOf(4, 'start_rung = 2'))).toEqual([2])
  })

  it('opens higher as the profile says', () => {
    expect(short(route, { profile: 'quality' })).toEqual([1, 'profile'])
    expect(short(route, { profile: 'max' })).toEqual([3, 'profile'])
    expect(short(route, { profile: 'cost' })).toEqual([0])
    expect(short(route, { profile: 'quality', profileByHeader: true })).toEqual([3, 'header'])
    expect(short(routeOf(4, 'strong_rung = 2'), { profile: 'quality', profileByHeader: true })).toEqual([2, 'header'])
    expect(start(route, { profile: 'max', profileByHeader: true }).forced).toBe(true)
  })

  it('keeps requests with tools or images at their minimum', () => {
    const minimum = routeOf(4, 'min_rung_tools = 1\nmin_rung_images = 2')
    expect(short(minimum, { hasTools: true })).toEqual([1, 'tools'])
    expect(short(minimum, { hasImages: true })).toEqual([2, 'images'])
    expect(short(minimum, { hasTools: true, hasImages: true })).toEqual([2, 'tools', 'images'])
    expect(short(minimum)).toEqual([0])
    expect(short(minimum, { hasTools: true, eligible: [0] })).toEqual([null, 'tools'])
  })

  it('goes on where a sticky session was, and tries one lower every fifth turn', () => {
    const sticky = routeOf(4, 'sticky_ttl_s = 300')
    const session = { lastServedRung: 2, idleS: 300, turn: 4 }
    expect(short(sticky, { session })).toEqual([2, 'sticky'])
    expect(short(sticky, { session: { ...session, turn: 5 } })).toEqual([1, 'sticky'])
    expect(short(sticky, { session: { ...session, idleS: 301 } })).toEqual([0])
    expect(short(sticky, { session: { ...session, lastServedRung: -1 } })).toEqual([0])
    expect(short(route, { session })).toEqual([0])
    const floored = routeOf(4, 'sticky_ttl_s = 300\nmin_rung_tools = 2')
    expect(short(floored, { session: { ...session, turn: 5 }, hasTools: true })[0]).toBe(2)
  })

  it('never starts below the rung whose thinking is in the history', () => {
    const thinking = { hasThinkingHistory: true }
    const session = { lastServedRung: 2, idleS: 9e9, turn: 2 }
    expect(short(route, { ...thinking, session })).toEqual([2, 'thinking_floor'])
    expect(short(route, { ...thinking, requestedModel: 'm1' })).toEqual([1, 'thinking_floor'])
    expect(short(route, thinking)).toEqual([3, 'thinking_floor'])
    expect(short(route, { ...thinking, session, eligible: [0, 1, 3] })).toEqual([3, 'thinking_floor'])
    expect(short(route, { ...thinking, session, eligible: [0, 1] })).toEqual([null, 'thinking_floor'])
    expect(short(routeOf(4, 'thinking_policy = "strip"'), { ...thinking, session })).toEqual([0])
    expect(start(routeOf(4, 'thinking_policy = "pin"'), { ...thinking, session })).toMatchObject({
      rung: 2,
      ceiling: 2,
    })
  })

  it('starts where the client’s model is when the route listens to that', () => {
    expect(short(routeOf(4, 'model_hint = "start"'), { requestedModel: 'anthropic/m2' })).toEqual([2])
    expect(short(routeOf(4, 'model_hint = "start"'), { requestedModel: 'auto' })).toEqual([0])
    expect(short(routeOf(4, 'model_hint = "start"\nstart_rung = 2'), { requestedModel: 'm0' })).toEqual([0])
    const pin = routeOf(4, 'model_hint = "pin"\nmin_rung_tools = 3')
    expect(start(pin, { requestedModel: 'm1', hasTools: true })).toMatchObject({ rung: 1, floor: 1, ceiling: 1 })
    expect(start(pin, { requestedModel: 'm1', eligible: [0, 2] }).rung).toBeNull()
  })

  it('walks around an open breaker unless a header forces the rung', () => {
    expect(short(route, { open: [0] })).toEqual([1, 'breaker'])
    expect(short(routeOf(4, 'start_rung = 3'), { open: [3] })).toEqual([2, 'breaker'])
    expect(short(route, { open: [0, 1, 2, 3] })).toEqual([0])
    expect(short(route, { open: [3], profile: 'max', profileByHeader: true })).toEqual([3, 'header'])
    expect(short(route, { open: [1], eligible: [1, 2] })).toEqual([2, 'breaker'])
  })

  it('takes the nearest eligible rung above, else below', () => {
    expect(short(route, { eligible: [2, 3] })).toEqual([2])
    expect(short(routeOf(4, 'start_rung = 3'), { eligible: [0, 1] })).toEqual([1])
    expect(short(route, { eligible: [] })).toEqual([null])
  })

  it('gives a learned start the chance of all draws that lead to it', () => {
    const learning = configOf('[learning]\nalgorithm = "thompson"\n').learning
    const draw = { rung: 3, chances: [0.1, 0.2, 0.3, 0.4], explored: true }
    // At most one step above the start: draws of 1, 2 and 3 all open on rung 1.
    expect(start(route, { learning, draw })).toMatchObject({ rung: 1, explored: true })
    expect(start(route, { learning, draw }).propensity).toBeCloseTo(0.9, 12)
    expect(start(route, { learning, draw: { ...draw, rung: 0 } }).propensity).toBeCloseTo(0.1, 12)
    expect(start(route, { learning, draw, profile: 'cost' })).toMatchObject({ rung: 0, propensity: 1, explored: false })
    expect(start(route, { learning, draw, hasThinkingHistory: true })).toMatchObject({ rung: 3, propensity: 1 })
  })

  const anyInput = fc.integer({ min: 1, max: 8 }).chain(size => {
    const rung = fc.nat(size - 1)
    return fc.record({
      size: fc.constant(size),
      keys: fc.record({
        start_rung: rung,
        strong_rung: rung,
        min_rung_tools: rung,
        min_rung_images: rung,
        sticky_ttl_s: fc.constantFrom(0, 300),
        thinking_policy: fc.constantFrom('"floor"', '"pin"', '"strip"'),
        model_hint: fc.constantFrom('"ignore"', '"start"', '"pin"'),
      }),
      eligible: fc.subarray(Array.from({ length: size }, (_, i) => i)),
      open: fc.subarray(Array.from({ length: size }, (_, i) => i)),
      profile: fc.constantFrom(...profiles),
      profileByHeader: fc.boolean(),
      hasTools: fc.boolean(),
      hasImages: fc.boolean(),
      hasThinkingHistory: fc.boolean(),
      requestedModel: fc.option(fc.constantFrom('m0', 'm1', 'm7', 'auto'), { nil: undefined }),
      session: fc.option(
        fc.record({ lastServedRung: fc.integer({ min: -1, max: 9 }), idleS: fc.nat(600), turn: fc.nat(20) }),
        { nil: undefined },
      ),
      draw: fc.option(
        fc.record({
          rung,
          weights: fc.array(fc.nat(10), { minLength: size, maxLength: size }),
          explored: fc.boolean(),
        }),
        { nil: undefined },
      ),
    })
  })
  const routes = new Map<string, Route>()
  const cachedRoute = (size: number, keys: Record<string, unknown>) => {
    const text = Object.entries(keys)
      .map(([key, value]) => `${key} = ${value}`)
      .join('\n')
    const route = routes.get(size + text) ?? routeOf(size, text)
    routes.set(size + text, route)
    return route
  }

  it('is never below a floor, never above a ceiling, never ineligible, and null only if nothing is left', () => {
    fc.assert(
      fc.property(anyInput, ({ size, keys, draw, ...over }) => {
        const route = cachedRoute(size, keys)
        const found = start(route, { ...over, learning: on, draw: draw && { ...draw, chances: draw.weights } })
        expect(found.floor).toBeLessThanOrEqual(found.ceiling)
        const left = over.eligible.filter(rung => rung >= found.floor && rung <= found.ceiling)
        if (found.rung === null) expect(left).toEqual([])
        else {
          expect(left).toContain(found.rung)
          const pinned = keys.model_hint === '"pin"' && found.ceiling === found.floor
          if (over.hasTools && !pinned) expect(found.rung).toBeGreaterThanOrEqual(keys.min_rung_tools)
          if (over.hasImages && !pinned) expect(found.rung).toBeGreaterThanOrEqual(keys.min_rung_images)
          const served = over.session && over.session.lastServedRung >= 0 ? over.session.lastServedRung : undefined
          if (over.hasThinkingHistory && keys.thinking_policy !== '"strip"' && served !== undefined && !pinned)
            expect(found.rung).toBeGreaterThanOrEqual(Math.min(size - 1, served))
        }
      }),
      { numRuns: 600 },
    )
  })

  it('shares out all chances over the starts that a draw can lead to', () => {
    fc.assert(
      fc.property(anyInput, ({ size, keys, draw, ...over }) => {
        const weights = draw?.weights ?? []
        const total = weights.reduce((sum, weight) => sum + weight, 0)
        if (total === 0 || over.eligible.length === 0) return
        const route = cachedRoute(size, keys)
        const chances = weights.map(weight => weight / total)
        const byStart = new Map<number | null, number>()
        chances.forEach((chance, rung) => {
          if (chance === 0) return
          const found = start(route, { ...over, learning: on, draw: { rung, chances, explored: false } })
          if (byStart.has(found.rung)) expect(found.propensity).toBe(byStart.get(found.rung))
          byStart.set(found.rung, found.propensity)
        })
        const sum = [...byStart.values()].reduce((all, chance) => all + chance, 0)
        expect(sum).toBeCloseTo(1, 9)
      }),
      { numRuns: 300 },
    )
  })
})

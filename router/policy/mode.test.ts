import { describe, expect, it } from 'vitest'
import { profiles } from '../../shared/wire/router/conventions.ts'
import { resolveMode } from '../proxy/decide-call.ts'
import { describeModes, resolveKnobs, serveThreshold } from './knobs.ts'
import { configOf, routeOf } from './testing/route-of.ts'

const enforced = routeOf(3, 'profile = "cost"')
const observed = { ...enforced, mode: 'observe' as const }
const bare = configOf('[[route]]\n').routes[0]!

describe('resolveMode', () => {
  it('lets a header beat the route, and the route beat nothing', () => {
    expect(resolveMode(undefined, enforced)).toEqual({ mode: 'enforce', profile: 'cost', byHeader: null })
    expect(resolveMode(undefined, observed)).toEqual({ mode: 'observe', profile: 'none', byHeader: null })
    expect(resolveMode(undefined, undefined)).toEqual({ mode: 'observe', profile: 'none', byHeader: null })
    expect(resolveMode('observe', enforced)).toEqual({ mode: 'observe', profile: 'none', byHeader: 'mode' })
    expect(resolveMode(' ENFORCE ', observed)).toEqual({ mode: 'enforce', profile: 'cost', byHeader: 'mode' })
    expect(resolveMode('Quality', observed)).toEqual({ mode: 'enforce', profile: 'quality', byHeader: 'profile' })
  })

  it('stays in observe for a profile without a ladder, and refuses enforce there', () => {
    expect(resolveMode('quality', bare)).toEqual({ mode: 'observe', profile: 'none', byHeader: null })
    expect(resolveMode('max', undefined)).toMatchObject({ mode: 'observe' })
    for (const route of [bare, undefined]) {
      expect(resolveMode('enforce', route)).toEqual({
        error: 'x-router-mode: enforce needs a route with a ladder, and no such route matches this request',
      })
    }
  })

  it('refuses what is no mode, and what the route does not take', () => {
    expect(resolveMode('fast', enforced)).toEqual({
      error: 'x-router-mode takes observe, enforce, cost, balanced, quality, latency or max',
    })
    expect(resolveMode('observe, enforce', enforced)).toHaveProperty('error')
    const narrow = routeOf(2, 'header_modes = ["cost", "balanced"]')
    expect(resolveMode('max', narrow)).toEqual({ error: 'this route takes cost or balanced in x-router-mode, not max' })
    expect(resolveMode('cost', narrow)).toMatchObject({ profile: 'cost' })
    expect(resolveMode('cost', routeOf(2, 'header_modes = []'))).toEqual({
      error: 'this route takes no value in x-router-mode, not cost',
    })
  })
})

describe('resolveKnobs', () => {
  const off = configOf('').learning
  const on = configOf('[learning]\nalgorithm = "thompson"\nepsilon = 0.1\n').learning
  const route = routeOf(5, 'start_rung = 1\nstrong_rung = 3\nmax_escalations = 2')

  it('gives each profile its row of the table', () => {
    const row = (profile: (typeof profiles)[number], byHeader = false) => {
      const { start, learned, epsilon, threshold, speculation, band } = resolveKnobs(profile, route, on, byHeader)
      return { start, learned, epsilon, threshold, speculation, band }
    }
    const plain = { learned: null, epsilon: 0, speculation: 0, band: 0 }
    const step = { least: 1, most: 2 }
    expect(row('cost')).toEqual({ ...plain, start: 1, threshold: 'off' })
    expect(row('balanced')).toEqual({ ...plain, start: 1, learned: step, epsilon: 0.1, threshold: { atLeast: 0 } })
    expect(row('quality')).toEqual({ ...plain, start: 2, learned: { least: 2, most: 4 }, threshold: { atLeast: 0.8 } })
    expect(row('quality', true)).toEqual({ ...plain, start: 3, threshold: { atLeast: 0.8 } })
    expect(row('latency')).toMatchObject({ start: 1, learned: step, epsilon: 0.1, speculation: 1, band: 0.15 })
    expect(row('max')).toEqual({ ...plain, start: 4, threshold: { atLeast: 0 } })
  })

  it('learns nothing while learning is off, and never opens above the top', () => {
    for (const profile of profiles) expect(resolveKnobs(profile, route, off, false).learned).toBeNull()
    expect(resolveKnobs('quality', routeOf(1), off, false).start).toBe(0)
  })

  it('applies the threshold of the route as the profile says', () => {
    const at = (profile: (typeof profiles)[number], t: number | null, lost = false) =>
      serveThreshold(resolveKnobs(profile, route, on, false), t, lost)
    expect([at('cost', 0.6), at('balanced', 0.6), at('quality', 0.6), at('quality', 0.9), at('max', 0.6)]).toEqual([
      null,
      0.6,
      0.8,
      0.9,
      0.6,
    ])
    expect([at('balanced', null), at('quality', null), at('cost', 0.6, true)]).toEqual([null, 0.8, 0.6])
  })

  it('describes all five for people and for capabilities', () => {
    const modes = describeModes(on)
    expect(modes.map(mode => mode.name)).toEqual([...profiles])
    expect(modes[1]?.knobs).toMatchObject({ start: 'start_rung', learned: true, explore: 0.1 })
    expect(modes[0]?.knobs).toMatchObject({ threshold: 'not applied', learned: false, explore: 0 })
    expect(describeModes(off).every(mode => mode.knobs.learned === false)).toBe(true)
  })
})

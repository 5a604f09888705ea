import { describe, expect, it } from 'vitest'
import { toUsd } from '../../shared/money/money.ts'
import type { Attempt, TraceRecord } from '../../shared/wire/router/trace.ts'
import { loadConfig } from '../config/load-config.ts'
import type { RoutingConfig } from '../config/routing-config.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { rehearsedRoute } from './rehearsed-route.ts'
import { replay } from './replay.ts'

const MODELS = ['a/small', 'a/middle', 'b/large']

function configOf(route: object, rest: object = {}): RoutingConfig {
  const loaded = loadConfig(
    {
      price: MODELS.map(model => ({ model, input_per_mtok: 1, output_per_mtok: 2 })),
      provider: ['a', 'b'].map(id => ({ id, dialect: 'messages', base_url: 'http://127.0.0.1:9', auth: 'none' })),
      gate: [{ id: 'strict', kind: 'length', min_chars: 1, on_abstain: 'fail-closed' }],
      route: [{ match: {}, mode: 'enforce', profile: 'cost', ladder: MODELS, gates: ['non-empty'], ...route }],
      ...rest,
    },
    { hostHasProcesses: false, builtinPrices: { find: () => undefined } },
  )
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join('\n'))
  return loaded.config
}

type Said = Partial<Attempt> & { said?: Record<string, 'pass' | 'fail' | 'abstain' | number> }

/** An attempt as a cascade logged it; each gate cost a tenth of a cent. */
function attempt(model: string, { said = { 'non-empty': 'pass' }, ...over }: Said = {}): Attempt {
  const [first] = sampleTrace().attempts
  return {
    ...first!,
    model,
    provider: model.split('/')[0]!,
    rung: MODELS.indexOf(model),
    cost: 0.01,
    gates: Object.entries(said).map(([gate_id, verdict]) => ({
      gate_id,
      kind: 'length',
      cost: 0.001,
      latency_ms: 1,
      ...(typeof verdict === 'number' ? { verdict: 'pass' as const, score: verdict } : { verdict }),
    })),
    ...over,
  }
}

const failed = (model: string, cost = 0.01) => attempt(model, { said: { 'non-empty': 'fail' }, verdict: 'fail', cost })
const broke = (model: string, error_class: Attempt['error_class'] = 'upstream_5xx', over: Said = {}) =>
  attempt(model, { said: {}, gate: 'error', verdict: 'error', cost: 0, ...(error_class && { error_class }), ...over })

const traceOf = (attempts: readonly Attempt[], over: Partial<TraceRecord> = {}): TraceRecord => {
  const sample = sampleTrace()
  const final = { ...sample.final, served_model: attempts.at(-1)?.model ?? null }
  return { ...sample, seq: 0, prev_hash: '', hash: '', attempts: [...attempts], final, ...over } as TraceRecord
}

function walk(attempts: readonly Attempt[], route: object = {}, threshold: number | null = null) {
  const config = configOf(route)
  const trace = traceOf(attempts)
  const walked = replay(trace, rehearsedRoute(trace, config)!, { gates: config.gates, threshold })
  return walked.kind === 'missing' ? walked.what : [toUsd(walked.cost), walked.servedModel]
}

describe('the direct replay of a ladder', () => {
  const climbed = [failed('a/small', 0.01), attempt('a/middle', { cost: 0.03 })]

  it('comes to what was logged when the config is the same', () => {
    expect(walk(climbed)).toEqual([0.042, 'a/middle'])
  })

  it('leaves out the rungs that another ladder does not have, and stops where it would', () => {
    expect(walk(climbed, { ladder: ['a/middle', 'b/large'] })).toEqual([0.031, 'a/middle'])
    expect(walk(climbed, { start_rung: 1 })).toEqual([0.031, 'a/middle'])
    expect(walk(climbed, { max_escalations: 0 })).toEqual([0.011, 'a/small'])
    expect(walk(climbed, { max_escalations: 0, on_exhausted: 'error' })).toEqual([0.011, null])
  })

  it('says what is missing, and guesses nothing', () => {
    expect(walk(climbed, { ladder: ['b/large'] })).toBe('attempt')
    expect(walk([failed('a/small')], {})).toBe('attempt')
    expect(walk(climbed, { gates: ['non-empty', 'json-valid'] })).toBe('gate')
    expect(walk([attempt('a/small', { cost: null })])).toBe('price')
    const cut = attempt('a/small', { verdict: 'cancelled', error_class: 'client_abort' })
    expect(walk([cut])).toBe('attempt')
  })

  it('asks only the gates of the config, and pays only those', () => {
    const both = attempt('a/small', { said: { 'non-empty': 'pass', strict: 'fail' }, verdict: 'fail' })
    expect(walk([both, attempt('a/middle')], { gates: ['non-empty'] })).toEqual([0.011, 'a/small'])
    expect(walk([both, attempt('a/middle', { said: { strict: 'pass' } })], { gates: ['strict'] })).toEqual([
      0.022,
      'a/middle',
    ])
    expect(walk([attempt('a/small', { said: {} })], { gates: [] })).toEqual([0.01, 'a/small'])
  })

  it('counts an abstention as the config says, and a gate that was not run as none', () => {
    const silent = attempt('a/small', { said: { strict: 'abstain' }, verdict: 'fail' })
    const second = attempt('a/middle', { said: { strict: 'pass' } })
    expect(walk([silent, second], { gates: ['strict'] })).toEqual([0.022, 'a/middle'])
    const cancelled = attempt('a/small', { said: { 'non-empty': 'fail', strict: 'abstain' }, verdict: 'fail' })
    cancelled.gates[1]!.reason = 'cancelled'
    expect(walk([cancelled, second], { gates: ['strict'] })).toBe('gate')
    expect(walk([cancelled, second], { gates: ['non-empty', 'strict'], max_escalations: 0 })).toEqual([
      0.012,
      'a/small',
    ])
  })

  it('withholds what failed a gate that must pass', () => {
    const all = MODELS.map(model => failed(model))
    expect(walk(all)).toEqual([0.033, 'b/large'])
    expect(walk(all, { must_pass: true })).toEqual([0.033, null])
  })

  it('holds answers to the threshold, and serves the best when none reaches it', () => {
    const scored = [0.6, 0.4, 0.5].map((score, i) => attempt(MODELS[i]!, { said: { 'non-empty': score } }))
    expect(walk(scored, {}, 0.5)).toEqual([0.011, 'a/small'])
    expect(walk(scored, {}, 0.7)).toEqual([0.033, 'a/small'])
  })

  it('fails over as the router does: another provider first, a retry only where one was made', () => {
    expect(walk([broke('a/small'), attempt('b/large')])).toEqual([0.011, 'b/large'])
    expect(walk([broke('a/small'), attempt('a/middle')])).toBe('attempt')
    expect(walk([broke('a/small', 'context_overflow'), attempt('a/middle')])).toEqual([0.011, 'a/middle'])
    const again = [broke('a/small', 'rate_limited'), attempt('a/small', { cause: 'retry' })]
    expect(walk(again, { ladder: ['a/small'] })).toEqual([0.011, 'a/small'])
    expect(walk(again.slice(0, 1), { ladder: ['a/small'] })).toEqual([0, null])
    expect(walk([broke('a/small', 'upstream_4xx')])).toEqual([0, null])
    // Of a model that the request did not name, a refusal of the request sends it on.
    const refused = broke('a/small', 'upstream_4xx', { status: 400 })
    expect(walk([refused, attempt('a/middle')])).toEqual([0.011, 'a/middle'])
    expect(walk([broke('a/small', 'untranslatable', { status: 200 }), attempt('a/middle')])).toEqual([
      0.011,
      'a/middle',
    ])
  })

  it.each(['pause_turn', 'compaction'])('takes a turn that paused as it was (%s)', finish => {
    expect(walk([attempt('a/small', { said: {}, finish })])).toEqual([0.01, 'a/small'])
  })
})

describe('where a config would route a logged request', () => {
  const start = (config: RoutingConfig, over: Partial<TraceRecord> = {}) => {
    const found = rehearsedRoute(traceOf([attempt('a/small')], over), config)
    return found && [found.route.ix, found.start.rung]
  }

  it('is decided by what the record holds of it', () => {
    const routes = [
      { match: { agent: 'codex' }, mode: 'enforce', ladder: MODELS, start_rung: 2 },
      { match: { min_body_bytes: 5000 }, mode: 'enforce', ladder: MODELS, start_rung: 1 },
      { match: { header: { 'x-team': '*' } }, mode: 'enforce', ladder: MODELS },
      { match: { has_tools: true }, mode: 'enforce', profile: 'cost', ladder: MODELS, min_rung_tools: 1 },
    ]
    expect(start(configOf({}, { route: routes }))).toEqual([3, 1])
    const { request } = sampleTrace()
    const other = { request: { ...request, features: { ...request.features, agent: 'codex' } } }
    expect(start(configOf({}, { route: routes }), other)).toEqual([0, 2])
  })

  it('is nowhere when the config would only observe it', () => {
    expect(start(configOf({ mode: 'observe' }))).toBeUndefined()
    expect(start(configOf({ match: { agent: 'nobody' } }))).toBeUndefined()
  })

  it('obeys a profile that the client asked for by header', () => {
    const { policy } = sampleTrace()
    const asked = { policy: { ...policy, mode_profile: 'max' as const, overrides: ['header' as const] } }
    expect(start(configOf({}), asked)).toEqual([0, 2])
    expect(start(configOf({}))).toEqual([0, 0])
  })
})

import { describe, expect, it } from 'vitest'
import { check } from '../issues.ts'
import { checkpoint } from './checkpoint.ts'
import { traceRecord, unsealedTrace } from './trace.ts'
import { traceListQuery } from './traces.ts'

const hex = 'b'.repeat(64)

const attempt = {
  rung: 0,
  provider: 'anthropic',
  model: 'anthropic/claude-haiku-4-5',
  gate: 'pass',
  verdict: 'pass',
  cost: 0.0023,
  gates: [{ gate_id: 'non-empty', kind: 'non-empty', verdict: 'pass', score: 1, cost: 0, latency_ms: 0.012 }],
  score: 1,
  tokens: { uncached: 1200, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 220 },
  usage_source: 'provider',
  latency_ms: 812.345,
  ttfb_ms: 300.001,
  status: 200,
  finish: 'end_turn',
  cause: 'start',
}

const unsealed = {
  v: 1,
  trace_id: '0197f0a0-0000-7000-8000-000000000000',
  tenant_id: 'default',
  ts: '2026-01-02T03:04:05.678Z',
  session_id: `d_${'c'.repeat(32)}`,
  mode: 'enforce',
  route_ix: 0,
  request: {
    api: 'messages',
    prompt_hash: hex,
    body_sha256_in: hex,
    body_sha256_out: null,
    features: {
      requested_model: 'auto',
      agent: 'claude-code',
      tool_count: 2,
      image_count: 0,
      has_thinking_history: false,
      stream: true,
      body_bytes: 4096,
      size_bucket: 12,
      message_count: 3,
      n: 1,
    },
  },
  policy: {
    id: 'static-ladder@1',
    start_rung: 0,
    propensity: 1,
    mode_profile: 'balanced',
    explore: false,
    config_hash: hex,
    price_table_hash: hex,
    overrides: ['tools'],
  },
  attempts: [attempt],
  final: {
    served_rung: 0,
    served_model: 'anthropic/claude-haiku-4-5',
    served_from: 'attempt',
    status: 200,
    total_cost_usd: 0.0023,
    gate_cost_usd: 0,
    baseline_same_token_usd: 0.0115,
    savings_usd: 0.0092,
    escalations: 0,
    failovers: 0,
    wall_ms: 820.1,
    overhead_ms: 0.9,
  },
}
const GENESIS_HASH = '0'.repeat(64)
const record = { ...unsealed, seq: 0, prev_hash: GENESIS_HASH, hash: hex }

describe('trace record v1', () => {
  it('reads a record exactly, before and after it is sealed', () => {
    expect(check(traceRecord, record)).toEqual({ ok: true, value: record })
    expect(check(unsealedTrace, unsealed)).toEqual({ ok: true, value: unsealed })
  })

  it.each<[string, object, string]>([
    ['another member', { extra: 1 }, 'extra'],
    ['another version', { v: 2 }, 'v'],
    ['a trace id that is not version 7', { trace_id: '11111111-1111-4111-8111-111111111111' }, 'trace_id'],
    ['a time without milliseconds', { ts: '2026-01-02T03:04:05Z' }, 'ts'],
    ['a tenant with a slash', { tenant_id: 'a/b' }, 'tenant_id'],
    ['a short hash', { hash: 'ab' }, 'hash'],
    ['a negative seq', { seq: -1 }, 'seq'],
    [
      'an attempt that failed without a class',
      { attempts: [{ ...attempt, verdict: 'error', gate: 'error' }] },
      'attempts.0.error_class',
    ],
    ['an error class on a pass', { attempts: [{ ...attempt, error_class: 'timeout' }] }, 'attempts.0.error_class'],
    [
      'half a token',
      { attempts: [{ ...attempt, tokens: { ...attempt.tokens, output: 0.5 } }] },
      'attempts.0.tokens.output',
    ],
    ['a propensity over 1', { policy: { ...unsealed.policy, propensity: 1.5 } }, 'policy.propensity'],
    ['an unknown override', { policy: { ...unsealed.policy, overrides: ['whim'] } }, 'policy.overrides.0'],
  ])('refuses %s', (_, change, path) => {
    const result = check(traceRecord, { ...record, ...change })
    expect(result.ok ? [] : result.details.map(found => found.path)).toContain(path)
  })

  it('takes a refusal before any call, an unknown price and a negative saving', () => {
    const refused = {
      ...record,
      attempts: [],
      final: { ...record.final, served_rung: -1, served_model: null, served_from: 'error' },
    }
    expect(check(traceRecord, refused).ok).toBe(true)
    const unpriced = {
      ...record,
      attempts: [{ ...attempt, cost: null }],
      final: { ...record.final, total_cost_usd: null, savings_usd: -0.5 },
    }
    expect(check(traceRecord, unpriced).ok).toBe(true)
  })
})

describe('trace list', () => {
  it('takes 1 to 500 with 50 as the default', () => {
    expect(check(traceListQuery, { mode: 'undefined' })).toEqual({ ok: true, value: { limit: 50 } })
    for (const limit of ['0', '501', 'x', '']) expect(check(traceListQuery, { limit }).ok, limit).toBe(false)
    expect(check(traceListQuery, { since: '2026-01-02', until: 'later' })).toMatchObject({
      details: [{ path: 'until' }],
    })
    expect(check(traceListQuery, { since: '2026-01-02T03:04Z', until: '2026-01-02T03:05+02:00' })).toMatchObject({
      ok: true,
    })
    expect(check(traceListQuery, { since: '2026-02-30', until: '2028-02-29' })).toMatchObject({
      details: [{ path: 'since' }],
    })
  })
})

describe('checkpoint', () => {
  const body = {
    v: 1,
    kind: 'head',
    tenant_id: 'default',
    seq: 255,
    hash: hex,
    feedback_seq: -1,
    feedback_hash: GENESIS_HASH,
    ts: '2026-01-02T03:04:05.678Z',
    key_id: 'a'.repeat(16),
    prev_checkpoint: GENESIS_HASH,
  }

  it('needs a signature of 64 bytes', () => {
    expect(check(checkpoint, { ...body, sig: 'A'.repeat(86) }).ok).toBe(true)
    expect(check(checkpoint, { ...body, sig: 'A'.repeat(88) })).toMatchObject({ details: [{ path: 'sig' }] })
    expect(check(checkpoint, body)).toMatchObject({ details: [{ path: 'sig', message: 'Required' }] })
  })
})

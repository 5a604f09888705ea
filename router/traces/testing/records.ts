import { uuidv7 } from '../../../shared/ids/uuid-v7.ts'
import type { Sha256 } from '../../../shared/sign/sha256.ts'
import type { UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import { type ChainHead, sealedRun, type TraceText } from '../canonical-trace.ts'

const hex = 'b'.repeat(64)

export interface Sample {
  tenant?: string
  at?: number
  session?: string
  mode?: 'observe' | 'enforce'
  route?: number | null
  model?: string
  cost?: number | null
  final?: Partial<UnsealedTrace['final']>
}

/** A record as a cascade of one attempt makes it: about 1.9 kB in canonical form. */
export function sampleTrace(sample: Sample = {}): UnsealedTrace {
  const { tenant = 'default', at = Date.UTC(2026, 0, 2, 3, 4, 5), session = `d_${'c'.repeat(32)}` } = sample
  const { mode = 'enforce', route = 0, model = 'anthropic/claude-haiku-4-5', cost = 0.0023 } = sample
  return {
    v: 1,
    trace_id: uuidv7(at),
    tenant_id: tenant,
    ts: new Date(at).toISOString(),
    session_id: session,
    mode,
    route_ix: route,
    request: {
      api: 'messages',
      prompt_hash: hex,
      body_sha256_in: hex,
      body_sha256_out: hex,
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
    attempts: [
      {
        rung: 0,
        provider: 'anthropic',
        model,
        gate: 'pass',
        verdict: 'pass',
        cost,
        gates: [{ gate_id: 'non-empty', kind: 'non-empty', verdict: 'pass', score: 1, cost: 0, latency_ms: 0.012 }],
        score: 1,
        tokens: { uncached: 1200, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 220 },
        usage_source: 'provider',
        latency_ms: 812.345,
        ttfb_ms: 300.001,
        status: 200,
        finish: 'end_turn',
        cause: 'start',
      },
    ],
    final: {
      served_rung: 0,
      served_model: model,
      served_from: mode === 'observe' ? 'passthrough' : 'attempt',
      status: 200,
      total_cost_usd: cost,
      gate_cost_usd: 0,
      baseline_same_token_usd: cost === null ? null : 0.0115,
      savings_usd: cost === null ? null : 0.0092,
      escalations: 0,
      failovers: 0,
      wall_ms: 820.1,
      overhead_ms: 0.9,
      ...sample.final,
    },
  }
}

/** One sealed record as the line that is stored. */
export function sealedLine(
  text: TraceText,
  previous: ChainHead | undefined,
  sha256: Sha256,
): ChainHead & { body: string } {
  const run = sealedRun(sha256)
  const { seq, hash } = run.add(text, previous)
  return { seq, hash, body: new TextDecoder().decode(run.bytes()) }
}

import type { TraceRecord } from '../../shared/wire/router/trace.ts'

/** What a policy sees of a request, beside its route (router contract §7.5). */
export function contextOf({ request: { features } }: TraceRecord): string {
  const { agent, size_bucket, tool_count, image_count } = features
  return JSON.stringify([agent, Math.floor(size_bucket / 2), tool_count > 0, image_count > 0])
}

/** A routed request that got as far as a call: only such a start has a cost or an outcome. */
export function hasStart({ mode, attempts, policy }: TraceRecord): boolean {
  return mode === 'enforce' && attempts.length > 0 && policy.propensity > 0
}

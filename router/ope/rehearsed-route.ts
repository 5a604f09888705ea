import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import type { Route, RoutingConfig } from '../config/routing-config.ts'
import { type Knobs, resolveKnobs } from '../policy/knobs.ts'
import { matchRoute } from '../policy/match-route.ts'
import { type Start, startRung } from '../policy/start-rung.ts'
import { resolveMode } from '../proxy/decide-call.ts'

/** Where a config would route a logged request, and where it would start. */
export interface Rehearsed {
  readonly route: Route
  readonly knobs: Knobs
  readonly eligible: readonly number[]
  readonly start: Start & { readonly rung: number }
}

/**
 * What another config would decide before the first call, from what the record holds of the request: its features. A record holds
 * no headers, keys or sessions, so a match by header never holds, every rung has a credential, and no session sticks. Undefined where the
 * request would only be observed or no rung could take it.
 */
export function rehearsedRoute(trace: TraceRecord, config: RoutingConfig): Rehearsed | undefined {
  const { features, api } = trace.request
  if (api !== 'messages' && api !== 'chat') return undefined
  const hasTools = features.tool_count > 0
  const hasImages = features.image_count > 0
  const route = matchRoute(config.routes, {
    api,
    tenant: trace.tenant_id,
    agent: features.agent,
    subagent: features.subagent,
    task: features.task,
    language: features.language,
    model: features.requested_model,
    hasTools,
    hasImages,
    stream: features.stream,
    bodyBytes: features.body_bytes,
    header: () => undefined,
  })
  const { mode_profile, overrides } = trace.policy
  // A client that asked for a profile by header would have asked the other config for it too.
  const asked = overrides.includes('header') && mode_profile !== 'none' ? mode_profile : undefined
  const resolved = resolveMode(asked, route)
  if (route === undefined || 'error' in resolved || resolved.profile === 'none') return undefined
  const profileByHeader = resolved.byHeader === 'profile'
  const knobs = resolveKnobs(resolved.profile, route, config.learning, profileByHeader)
  const able = route.ladder.filter(one => (one.tools || !hasTools) && (one.images || !hasImages))
  const eligible = able.map(({ rung }) => rung)
  const start = startRung({
    route,
    knobs,
    profileByHeader,
    eligible,
    hasTools,
    hasImages,
    hasThinkingHistory: features.has_thinking_history,
    requestedModel: features.requested_model,
    session: undefined,
    breakerOpen: () => false,
  })
  return start.rung === null ? undefined : { route, knobs, eligible, start: { ...start, rung: start.rung } }
}

import { dialects } from '../../shared/dialects/dialects.ts'
import type { RequestFacts } from '../../shared/dialects/request-facts.ts'
import { heldByRequest } from '../../shared/dialects/responses/held.ts'
import { ApiError } from '../../shared/http/api-error.ts'
import type { InboundApi, Profile } from '../../shared/wire/router/conventions.ts'
import { requestHeaders } from '../../shared/wire/router/headers.ts'
import type { ActiveConfig } from '../active-config.ts'
import { spokenTo } from '../config/model.ts'
import type { Route } from '../config/routing-config.ts'
import type { EnforceInput } from '../enforce/enforce.ts'
import type { Target } from '../observe/target.ts'
import { matchRoute } from '../policy/match-route.ts'
import { resolveMode } from '../policy/mode.ts'
import { agentOfHeaders } from '../receipt/request-part.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'

/** More choices than this multiply cost beyond what anyone wants gated. */
const MAX_CHOICES = 8

/** A call whose body has been read. */
export interface ReadCall {
  traceId: string
  /** Path and query, as they came. */
  target: string
  headers: HeaderList
  body: Uint8Array
  arrivedAt: Date
  /** On the clock that never jumps. */
  arrived: number
}

/** Whether a call is passed on as it is, under which route, or goes up a ladder; throws what the caller has to mend. */
export function decideCall(
  call: ReadCall,
  to: Target,
  active: ActiveConfig,
  { tenantId }: { tenantId: string },
): { observe: number | null } | { enforce: EnforceInput } {
  const { headers, body } = call
  const dialect: InboundApi = to.api === 'responses' || to.compacts ? 'responses' : to.dialect
  const scan = dialects[dialect].scan(body)
  const facts = scan.ok ? scan.facts : undefined
  const route = facts && routeFor(facts, call, dialect, active, tenantId)
  const resolved = resolveMode(headerValue(headers, requestHeaders.mode), route)
  if ('error' in resolved) throw new ApiError('bad_request', resolved.error)
  if (resolved.mode === 'observe' || facts?.background === true) {
    // An observed body need not parse; but where routes wait for it, a malformed body is the caller's to mend.
    if (!scan.ok && resolved.byHeader === null)
      throw new ApiError('bad_request', `the body is not JSON: ${scan.message}`)
    return { observe: route?.ix ?? null }
  }
  if (!facts?.model) throw new ApiError('bad_request', 'model is required: name a model, or "auto"')
  if (facts.n > MAX_CHOICES)
    throw new ApiError('bad_request', `n is ${facts.n}, and at most ${MAX_CHOICES} choices are routed`)
  return {
    enforce: {
      traceId: call.traceId,
      tenantId,
      inbound: {
        dialect,
        target: call.target,
        headers,
        body,
        facts: { ...facts, model: facts.model },
        held: dialect === 'responses' ? heldByRequest(body) : undefined,
      },
      // Enforce is only ever resolved for a route that has a ladder.
      route: dialect === 'responses' ? speaking(route!, dialect) : route!,
      profile: resolved.profile as Profile,
      profileByHeader: resolved.byHeader === 'profile',
      arrivedAt: call.arrivedAt,
      arrived: call.arrived,
    },
  }
}

/** A route whose models are called in the client's own words, where their providers take them. */
function speaking(route: Route, client: InboundApi): Route {
  return { ...route, ladder: route.ladder.map(rung => spokenTo(rung, client)) }
}

function routeFor(
  facts: RequestFacts,
  { headers, body }: ReadCall,
  dialect: InboundApi,
  { config }: ActiveConfig,
  tenant: string,
): Route | undefined {
  return matchRoute(config.routes, {
    api: dialect,
    tenant,
    agent: agentOfHeaders(headers),
    subagent: headerValue(headers, requestHeaders.subagent),
    task: headerValue(headers, requestHeaders.task),
    language: headerValue(headers, requestHeaders.language),
    model: facts.model?.value,
    hasTools: facts.toolCount > 0,
    hasImages: facts.imageCount > 0,
    stream: facts.stream,
    bodyBytes: body.length,
    header: name => headerValue(headers, name),
  })
}

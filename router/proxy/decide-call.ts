import { dialects } from '../../shared/dialects/dialects.ts'
import type { RequestFacts } from '../../shared/dialects/request-facts.ts'
import { heldByRequest } from '../../shared/dialects/responses/held.ts'
import { ApiError } from '../../shared/http/api-error.ts'
import type { InboundApi, Mode, Profile } from '../../shared/wire/router/conventions.ts'
import { modeValues, readMode, requestHeaders } from '../../shared/wire/router/headers.ts'
import type { ActiveConfig } from '../active-config.ts'
import { modelForClient } from '../config/model.ts'
import type { Route } from '../config/routing-config.ts'
import type { EnforceInput } from '../enforce/enforce.ts'
import type { Target } from '../observe/target.ts'
import { matchRoute } from '../policy/match-route.ts'
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
): { observe: number | null } | { enforce: Omit<EnforceInput, 'held'> } {
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
    throw new ApiError('bad_request', `n has to be a number, and at most ${MAX_CHOICES} choices are routed`)
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
  return { ...route, ladder: route.ladder.map(rung => modelForClient(rung, client)) }
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

interface Resolved {
  readonly mode: Mode
  /** `none` when the request is only observed. */
  readonly profile: Profile | 'none'
  /** What the header decided: it names a profile, a mode, or nothing that counted. */
  readonly byHeader: 'mode' | 'profile' | null
}

type ModeRoute = Pick<Route, 'ladder' | 'mode' | 'profile' | 'headerModes'>

/** docs/spec/router.md §6.9: header before route before ROUTER_MODE, which the route's mode has taken in already. */
export function resolveMode(header: string | undefined, route: ModeRoute | undefined): Resolved | { error: string } {
  if (header === undefined) return route?.mode === 'enforce' ? enforce(route.profile, null) : observe(null)
  const asked = readMode(header)
  if (asked === undefined) return { error: `${requestHeaders.mode} takes ${either(modeValues)}` }
  if (route !== undefined && !route.headerModes.includes(asked))
    return { error: `this route takes ${either(route.headerModes)} in ${requestHeaders.mode}, not ${asked}` }
  if (asked === 'observe') return observe('mode')
  const ladder = route !== undefined && route.ladder.length > 0
  if (asked === 'enforce') {
    return ladder
      ? enforce(route.profile, 'mode')
      : { error: `${requestHeaders.mode}: enforce needs a route with a ladder, and no such route matches this request` }
  }
  return ladder ? enforce(asked, 'profile') : observe(null)
}

const observe = (byHeader: 'mode' | null): Resolved => ({ mode: 'observe', profile: 'none', byHeader })

const enforce = (profile: Profile, byHeader: Resolved['byHeader']): Resolved => ({ mode: 'enforce', profile, byHeader })

function either(values: readonly string[]): string {
  if (values.length === 0) return 'no value'
  return values.length === 1 ? values[0]! : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`
}

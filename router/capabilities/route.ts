import { VERSION } from '../../shared/version.ts'
import type { Capabilities } from '../../shared/wire/router/capabilities.ts'
import { inboundApis, modes } from '../../shared/wire/router/conventions.ts'
import { auditEndpoints } from '../../shared/wire/router/endpoints/audit.ts'
import { outcomes, verdicts } from '../../shared/wire/router/feedback.ts'
import { requestHeaders } from '../../shared/wire/router/headers.ts'
import type { Caller } from '../auth/access.ts'
import type { HasSource } from '../config/credential.ts'
import { describeConfig } from '../config/describe.ts'
import type { RoutingConfig } from '../config/routing-config.ts'
import { type Operation, operation } from '../http/operation.ts'
import { describeModes } from '../policy/knobs.ts'
import { globMatches } from '../policy/match-route.ts'

export interface CapabilitiesDeps {
  config: () => RoutingConfig
  env: Readonly<Record<string, string | undefined>>
  hasSource: HasSource
  breakerOf: (provider: string) => Capabilities['providers'][number]['breaker']
  isGateDisabled: (tenant: string, gate: string) => boolean
  /** Where the thresholds of the routes stand for this tenant. */
  calibration: (tenant: string) => Promise<Capabilities['calibration']>
  /** Whether outcomes can be reported: they need a store. */
  takesFeedback: boolean
  receipts: Capabilities['receipts']
  authRequired: boolean
}

const OFFBOARDING =
  'Run `router offboard`, or point the base URLs of your clients back at the providers and stop this process; nothing else was changed.'

export function capabilitiesOperations(deps: CapabilitiesDeps): Operation[] {
  return [operation(auditEndpoints.capabilities, ({ context }) => describe(deps, context.get('caller')))]
}

/** A route as one tenant may know it: who else it is for is not told. */
function routeFor(tenant: string, route: Capabilities['routes'][number]): Capabilities['routes'] {
  const { match } = route
  if (!Array.isArray(match.tenant)) return [route]
  const own = match.tenant.some(glob => globMatches(String(glob), tenant))
  return own ? [{ ...route, match: { ...match, tenant: [tenant] } }] : []
}

/** docs/spec/router.md §2.5: no secret, no full address, only the caller's tenant. */
async function describe(deps: CapabilitiesDeps, { tenantId, admin }: Caller): Promise<Capabilities> {
  const config = deps.config()
  const described = describeConfig(config, {
    env: deps.env,
    hasSource: deps.hasSource,
    breakerOf: deps.breakerOf,
    isDisabled: gate => deps.isGateDisabled(tenantId, gate),
  })
  return {
    service: 'router',
    version: VERSION,
    config_path_set: Boolean(deps.env.ROUTER_CONFIG),
    ...described,
    ...(!admin && { routes: described.routes.flatMap(route => routeFor(tenantId, route)) }),
    modes: [...modes],
    routing_modes: describeModes(config.learning).map(({ name, knobs }) => ({ name, knobs })),
    apis: [...inboundApis],
    calibration: await deps.calibration(tenantId),
    feedback: deps.takesFeedback
      ? { path: auditEndpoints.feedback.path, outcomes: [...outcomes], verdicts: [...verdicts] }
      : { path: '', outcomes: [], verdicts: [] },
    receipts: deps.receipts,
    auth: { required: deps.authRequired, header: requestHeaders.key },
    offboarding: OFFBOARDING,
  }
}

import { Hono } from 'hono'
import { VERSION } from '../../shared/version.ts'
import type { Capabilities } from '../../shared/wire/router/capabilities.ts'
import { inboundApis, modes } from '../../shared/wire/router/conventions.ts'
import { requestHeaders } from '../../shared/wire/router/headers.ts'
import type { Caller, CallerEnv } from '../auth/access.ts'
import { describeConfig } from '../config/describe.ts'
import type { RoutingConfig } from '../config/routing-config.ts'
import { describeModes } from '../policy/knobs.ts'

export interface CapabilitiesDeps {
  config: () => RoutingConfig
  env: Readonly<Record<string, string | undefined>>
  breakerOf: (provider: string) => Capabilities['providers'][number]['breaker']
  isGateDisabled: (tenant: string, gate: string) => boolean
  receipts: Capabilities['receipts']
  authRequired: boolean
}

const OFFBOARDING =
  'Point the base URLs of your clients back at the providers and stop this process; nothing else was changed.'

export function capabilitiesRoute(deps: CapabilitiesDeps) {
  return new Hono<CallerEnv>().get('/v1/capabilities', c => c.json(describe(deps, c.get('caller'))))
}

/** Router contract §2.5: no secret, no full address, only the caller's tenant. */
function describe(deps: CapabilitiesDeps, { tenantId }: Caller): Capabilities {
  const config = deps.config()
  return {
    service: 'router',
    version: VERSION,
    config_path_set: Boolean(deps.env.ROUTER_CONFIG),
    ...describeConfig(config, {
      env: deps.env,
      breakerOf: deps.breakerOf,
      isDisabled: gate => deps.isGateDisabled(tenantId, gate),
    }),
    modes: [...modes],
    routing_modes: describeModes(config.learning).map(({ name, knobs }) => ({ name, knobs })),
    apis: [...inboundApis],
    calibration: [],
    // An empty path: this version takes no feedback.
    feedback: { path: '', outcomes: [], verdicts: [] },
    receipts: deps.receipts,
    auth: { required: deps.authRequired, header: requestHeaders.key },
    offboarding: OFFBOARDING,
  }
}

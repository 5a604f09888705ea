import { ApiError } from '../../shared/http/api-error.ts'
import { VERSION } from '../../shared/version.ts'
import { inboundApis, modes } from '../../shared/wire/router/conventions.ts'
import type { AuditReads } from '../audit/reads.ts'
import { describeConfig } from '../config/describe.ts'
import type { RoutingConfig } from '../config/routing-config.ts'
import { describeModes } from '../policy/knobs.ts'
import type { AuditDeps } from './audit-tools.ts'

export interface ResourceDeps extends Pick<AuditDeps, 'tenant' | 'calibration'> {
  reads: Pick<AuditReads, 'find' | 'latestCheckpoint'>
  /** The routing config that a router with the same variables would use. */
  config: () => Promise<RoutingConfig>
  /** Only asked which variables are set. */
  env: Readonly<Record<string, string | undefined>>
}

const MIME = 'application/json'
const TRACE = 'router://traces/'

/** The answer to `resources/list`. Single traces are read by the template below; `list_traces` names them. */
export const RESOURCES = [
  {
    uri: 'router://capabilities',
    name: 'capabilities',
    description: 'What a router with this configuration offers. What only a running one knows is left out.',
    mimeType: MIME,
  },
  {
    uri: 'router://config',
    name: 'config',
    description: 'The routing config with every default applied; no address, no key, no command line.',
    mimeType: MIME,
  },
  {
    uri: 'router://checkpoints/latest',
    name: 'latest checkpoint',
    description: 'The newest signed checkpoint of the chain: a copy kept elsewhere is an anchor for verify_receipts.',
    mimeType: MIME,
  },
]

/** The answer to `resources/templates/list`. */
export const RESOURCE_TEMPLATES = [
  {
    uriTemplate: `${TRACE}{trace_id}`,
    name: 'trace',
    description: 'The full decision for one request, with the feedback it got.',
    mimeType: MIME,
  },
]

/** The answer to `resources/read`; a resource that is not there is an ApiError. */
export async function readResource(uri: string, deps: ResourceDeps) {
  const text = JSON.stringify(await contentOf(uri, deps))
  return { contents: [{ uri, mimeType: MIME, text }] }
}

async function contentOf(uri: string, deps: ResourceDeps): Promise<object> {
  if (uri === 'router://capabilities') return capabilities(deps)
  if (uri === 'router://config') return redactedConfig(deps)
  if (uri === 'router://checkpoints/latest') {
    const latest = await deps.reads.latestCheckpoint(deps.tenant)
    if (latest !== undefined) return latest
    throw new ApiError('not_found', `the chain of ${deps.tenant} has no checkpoint yet`)
  }
  const id = uri.startsWith(TRACE) ? decoded(uri.slice(TRACE.length)) : undefined
  const found = id === undefined ? undefined : await deps.reads.find(id, deps.tenant)
  if (found !== undefined) return found
  throw new ApiError('not_found', `there is no resource at ${uri}`)
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** `GET /v1/capabilities`, but for what only a running router knows: breakers, disabled gates, its keys. */
async function capabilities({ config, env, calibration }: ResourceDeps) {
  const settings = await config()
  return {
    service: 'router',
    version: VERSION,
    config_path_set: Boolean(env.ROUTER_CONFIG),
    ...described(settings, env),
    modes: [...modes],
    routing_modes: describeModes(settings.learning).map(({ name, knobs }) => ({ name, knobs })),
    apis: [...inboundApis],
    calibration: await calibration(),
  }
}

async function redactedConfig({ config, env }: ResourceDeps) {
  const settings = await config()
  const { learning, calibration, store, stream, pricing } = settings
  return {
    ...described(settings, env),
    calibration,
    learning,
    store,
    stream,
    pricing: { builtin: pricing.builtin, unpriced: pricing.unpriced },
  }
}

function described(config: RoutingConfig, env: ResourceDeps['env']) {
  const { providers, gates, ...rest } = describeConfig(config, {
    env,
    breakerOf: () => 'closed',
    isDisabled: () => false,
  })
  return {
    ...rest,
    providers: providers.map(({ breaker: _, ...provider }) => provider),
    gates: gates.map(({ state: _, ...gate }) => gate),
  }
}

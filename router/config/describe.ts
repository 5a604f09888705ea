import { MODEL_TABLE_VERSION } from '../../shared/models/model-table.ts'
import { toUsd } from '../../shared/money/money.ts'
import type { ClassPrices } from '../../shared/prices/price.ts'
import type { Capabilities } from '../../shared/wire/router/capabilities.ts'
import { type HasSource, heldCredential } from './credential.ts'
import type { ModelPrice } from './model.ts'
import type { Vars } from './resolve-providers.ts'
import type { Budget, Provider, RoutingConfig } from './routing-config.ts'

type Part<K extends keyof Capabilities> = Pick<Capabilities, K>

export interface Live {
  /** Only asked which variables are set. */
  env: Vars
  hasSource?: HasSource
  breakerOf: (provider: string) => Capabilities['providers'][number]['breaker']
  isDisabled: (gate: string) => boolean
}

/** What `GET /v1/capabilities` says about a config (docs/spec/router.md §2.5): no secret, no full address. */
export function describeConfig(
  config: RoutingConfig,
  live: Live,
): Part<
  | 'config_version'
  | 'config_hash'
  | 'price_table'
  | 'model_table'
  | 'mode'
  | 'providers'
  | 'gates'
  | 'routes'
  | 'limits'
> {
  return {
    config_version: config.version,
    config_hash: config.configHash,
    price_table: {
      hash: config.priceTableHash,
      date: config.pricing.builtin ? config.pricing.table : 'none',
      overrides: Object.keys(config.pricing.overrides).length,
    },
    model_table: MODEL_TABLE_VERSION,
    mode: config.mode,
    providers: Object.values(config.providers).map(provider => ({
      id: provider.id,
      dialect: provider.dialect,
      responses: provider.responses,
      auth: provider.auth,
      base_host: new URL(provider.baseUrl).host,
      credential: describeCredential(provider, live),
      breaker: live.breakerOf(provider.id),
    })),
    gates: Object.values(config.gates).map(gate => ({
      id: gate.id,
      kind: gate.kind,
      on_abstain: gate.onAbstain,
      timeout_ms: gate.timeoutMs,
      state: live.isDisabled(gate.id) ? 'disabled' : 'active',
    })),
    routes: config.routes.map(route => ({
      ix: route.ix,
      match: { ...route.match },
      mode: route.mode,
      profile: route.profile,
      ladder: route.ladder.map(({ model, price }) => ({ model, price: price && describePrice(price) })),
      gates: [...route.gates],
      budget: describeBudget(route.budget),
    })),
    limits: describeLimits(config),
  }
}

function describeCredential(
  provider: Provider,
  { env, hasSource }: Live,
): Capabilities['providers'][number]['credential'] {
  return provider.auth === 'passthrough' ? 'passthrough' : heldCredential(provider, env, hasSource)
}

/** A price in the words of `[[price]]`. */
export function describePrice(price: ModelPrice): Record<string, unknown> {
  return {
    ...perMtok(price.base),
    ...(price.call !== undefined && { per_call_usd: toUsd(price.call) }),
    per_web_search_usd: toUsd(price.webSearch),
    ...(price.tiers.length > 0 && {
      tiers: price.tiers.map(tier => ({ above_input_tokens: tier.aboveInputTokens, ...perMtok(tier.prices) })),
    }),
    source: price.source,
  }
}

function perMtok(prices: ClassPrices): Record<string, number> {
  const usd = (pico: bigint) => Number(pico) / 1e6
  return {
    input_per_mtok: usd(prices.uncached),
    output_per_mtok: usd(prices.output),
    cache_write_5m_per_mtok: usd(prices.cache_write_5m),
    cache_write_1h_per_mtok: usd(prices.cache_write_1h),
    cache_read_per_mtok: usd(prices.cache_read),
  }
}

function describeBudget(budget: Budget): Record<string, unknown> | null {
  const caps = {
    per_request_usd: budget.perRequest,
    per_session_usd: budget.perSession,
    per_day_usd: budget.perDay,
    per_tenant_day_usd: budget.perTenantDay,
  }
  const set = Object.entries(caps).flatMap(([key, cap]) => (cap === null ? [] : [[key, toUsd(cap)] as const]))
  return set.length === 0 ? null : Object.fromEntries(set)
}

function describeLimits({ limits, stream }: RoutingConfig): Record<string, number> {
  return {
    max_body_bytes: limits.maxBodyBytes,
    max_response_bytes: limits.maxResponseBytes,
    max_concurrency: limits.maxConcurrency,
    ...(limits.maxHeldBytes !== undefined && { max_held_bytes: limits.maxHeldBytes }),
    connect_ms: limits.connectMs,
    first_byte_ms: limits.firstByteMs,
    idle_ms: limits.idleMs,
    content_ms: limits.contentMs,
    total_ms: limits.totalMs,
    observe_total_ms: limits.observeTotalMs,
    max_retry_wait_s: limits.maxRetryWaitS,
    keepalive_after_ms: stream.keepaliveAfterMs,
    keepalive_every_ms: stream.keepaliveEveryMs,
  }
}

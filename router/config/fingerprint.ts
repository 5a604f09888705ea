import type { Price } from '../../shared/prices/price.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import { type GateConfig, type GateConfigs, type GateKind, gateKinds } from '../gates/gate-kinds.ts'
import { type Named, named } from './frozen.ts'
import type { Model } from './model.ts'
import { isVendor } from './resolve-providers.ts'
import type { Provider, RouteMatch, RoutingConfig } from './routing-config.ts'

/** docs/spec/router.md §6.8: state belongs to a route's match, ladder and gates, wherever the route stands. */
export function routeFingerprint(match: RouteMatch, ladder: readonly string[], gates: readonly string[]): string {
  return sha256Hex(canonicalize({ match, ladder, gates }))
}

/** How a gate is run, and not what it lets through. */
const RUNNING: ReadonlySet<string> = new Set(['timeoutMs', 'cost', 'errorBudget', 'maxParallel'])

/**
 * The same with what stands behind the names: how the gates of the config are set, which model is asked under another name, and where. Outcomes that
 * were reported under other ones say nothing of these. Undefined where the names say all.
 */
export function evidenceFingerprint(
  fingerprint: string,
  gates: readonly GateConfig[],
  ladder: readonly Model[],
  providers: Named<Provider>,
): string | undefined {
  const renamed = ladder.filter(({ model, upstreamModel }) => !model.endsWith(`/${upstreamModel}`)).map(namesOf)
  const asked = [...ladder, ...gates.flatMap(gate => Object.values(modelsOfGate(gate.kind, gate)))]
  const hosts = asked.flatMap(model => {
    const provider = model ? providers[model.provider] : undefined
    return provider === undefined || isVendor(provider) ? [] : [[provider.id, hostOf(provider)] as const]
  })
  if (gates.length === 0 && renamed.length === 0 && hosts.length === 0) return undefined
  const set = gates.map(gate => ({
    ...Object.fromEntries(Object.entries(gate).filter(([name]) => !RUNNING.has(name))),
    ...mapNamed(modelsOfGate(gate.kind, gate), model => model && namesOf(model)),
  }))
  return sha256Hex(canonicalize({ fingerprint, gates: set, models: renamed, hosts: named(hosts) }))
}

const hostOf = ({ baseUrl, region, project, apiVersion }: Provider) => ({ baseUrl, region, project, apiVersion })

const namesOf = ({ model, upstreamModel }: Model) => ({ model, upstreamModel })

type Unhashed = Omit<RoutingConfig, 'configHash' | 'priceTableHash'>

/** JCS hash of a resolved config. Prices have a hash of their own; values of headers may be secrets and stay out. */
export function configHash(config: Unhashed): string {
  const providers = mapNamed(config.providers, provider => ({
    ...provider,
    headers: Object.keys(provider.headers).sort(),
  }))
  const gates = mapNamed(config.gates, gate => ({
    ...gate,
    ...mapNamed(modelsOfGate(gate.kind, gate), model => model && unpriced(model)),
  }))
  const routes = config.routes.map(route => ({ ...route, ladder: route.ladder.map(unpriced) }))
  const { builtin, unpriced: rule } = config.pricing
  return sha256Hex(canonicalize({ ...config, providers, gates, routes, pricing: { builtin, unpriced: rule } }))
}

/** Hash of the prices in use: the name of the bundled table, each `[[price]]`, and each model that the config names. */
export function priceTableHash(config: Unhashed): string {
  const prices = new Map<string, unknown>()
  for (const [model, price] of Object.entries(config.pricing.overrides)) prices.set(model, priceText(price))
  for (const { model, price } of modelsOf(config)) prices.set(model, price && priceText(price))
  return sha256Hex(canonicalize({ table: config.pricing.builtin ? config.pricing.table : null, prices: named(prices) }))
}

function modelsOf({ routes, gates }: Unhashed): Model[] {
  const called = Object.values(gates).flatMap(gate => Object.values(modelsOfGate(gate.kind, gate)))
  return [...routes.flatMap(route => route.ladder), ...called.filter(model => model !== null)]
}

export const modelsOfGate = <K extends GateKind>(kind: K, gate: GateConfigs[K]) => gateKinds[kind].models(gate)

const unpriced = <M extends Model>({ price: _, ...rest }: M): Omit<M, 'price'> => rest

const mapNamed = <T, U>(values: Named<T>, map: (value: T) => U): Named<U> =>
  named(Object.entries(values).map(([name, value]) => [name, map(value)]))

const priceText = (price: Price): unknown =>
  JSON.parse(JSON.stringify(price, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))

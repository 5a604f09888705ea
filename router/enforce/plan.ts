import { fromUsd, type NanoUsd, toUsd } from '../../shared/money/money.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { Profile } from '../../shared/wire/router/conventions.ts'
import type { DroppedRung, Features, Policy } from '../../shared/wire/router/trace.ts'
import type { Budgets, Caps } from '../budget/ledger.ts'
import type { CloudSigner } from '../cloud/cloud-signer.ts'
import { type Credential, credentialFor } from '../config/credential.ts'
import type { Model } from '../config/model.ts'
import type { Budget, Learning, Route, RoutingConfig, Rung } from '../config/routing-config.ts'
import type { Gate } from '../gates/gate.ts'
import type { Learner } from '../learning/learner.ts'
import { isCompaction } from '../observe/target.ts'
import type { Breakers } from '../policy/breakers.ts'
import { type Stay, stayForCache } from '../policy/cache-stay.ts'
import { boundFactors } from '../policy/cost-bound.ts'
import { type Eligibility, eligibleRungs, emptyBecause, estimateInputTokens } from '../policy/eligible.ts'
import { resolveKnobs, serveThreshold } from '../policy/knobs.ts'
import { type Session, type Start, startRung } from '../policy/start-rung.ts'
import type { HeldBody } from '../proxy/exchange.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { CascadePlan } from './cascade-plan.ts'
import { type Holding, heldTokens } from './held-responses.ts'
import { type Inbound, rungBody } from './upstream-request.ts'

export interface PlanDeps {
  config: RoutingConfig
  gates: ReadonlyMap<string, Gate>
  ledger: Budgets
  breakers: Breakers
  learner: Learner
  /** What calibration says about a route of a tenant. */
  calibrated: (tenantId: string, route: Route) => { threshold: number | null; lost: boolean }
  env: Readonly<Record<string, string | undefined>>
  sha256: Sha256
  signer: CloudSigner
}

export interface PlanInput {
  traceId: string
  tenantId: string
  sessionId: string
  /** Who made what the request leaves to its provider to know. */
  holding: Holding | undefined
  /** What is remembered of it on this route. */
  session: Session | undefined
  /** On the clock that never jumps. */
  now: number
  inbound: Inbound
  held: HeldBody
  features: Features
  route: Route
  profile: Profile
  profileByHeader: boolean
}

export type Planned =
  | { ok: true; plan: CascadePlan; policy: Policy; insteadOf: Rung | undefined }
  | { ok: false; error: 'untranslatable' | 'no_credential' | 'bad_request'; message: string; policy: Policy }

/** Everything that is decided before the first call (docs/spec/router.md §4, steps 3 and 4). */
export function planCascade(input: PlanInput, deps: PlanDeps): Planned {
  const { inbound, route, profile, tenantId, holding } = input
  const { config } = deps
  const { facts, headers, dialect } = inbound
  const knobs = resolveKnobs(profile, route, config.learning, input.profileByHeader)
  const hasKey = clientKey(headers) !== undefined
  const credential = (rung: Model): Credential =>
    credentialFor(config.providers[rung.provider]!, { api: dialect, hasKey }, deps.env, deps.signer.has)
  const fingerprint = fingerprints(headers, credential, deps.sha256)
  const eligibility = eligibleRungs(route.ladder, {
    hasTools: facts.toolCount > 0,
    hasImages: facts.imageCount > 0,
    inputTokens: estimateInputTokens({ bytes: inbound.body.length, mediaBytes: facts.mediaBytes }),
    refusals: rung => {
      // In the dialect that it came in a request can always be put: making its body for that would copy it for each rung.
      if (rung.dialect === dialect) return []
      if (isCompaction(inbound.target)) return ['only the Responses API makes a conversation shorter']
      const body = rungBody(inbound, rung, config.providers[rung.provider]!, route)
      return body.ok ? [] : body.refused
    },
    heldBy: rung => holding?.makers.find(({ provider }) => provider !== rung.provider)?.provider,
    credential,
  })
  const { traceId, features, session } = input
  const models = holding?.holders.map(({ model }) => model) ?? []
  const start = startRung({
    route,
    knobs,
    profileByHeader: input.profileByHeader,
    eligible: eligibility.rungs,
    hasTools: facts.toolCount > 0,
    hasImages: facts.imageCount > 0,
    hasThinkingHistory: facts.hasThinkingHistory,
    held: route.ladder.findLast(({ model }) => models.includes(model))?.rung,
    requestedModel: facts.model.value,
    session,
    stay: staying(input),
    draw: deps.learner.draw({
      traceId,
      tenantId,
      route,
      knobs,
      features,
      session,
      eligible: eligibility.rungs,
      settings: config.learning,
    }),
    breakerOpen: rung => {
      const one = route.ladder[rung]!
      return !deps.breakers.isCallable(one.provider, fingerprint(one))
    },
  })
  const policy: Policy = {
    config_hash: config.configHash,
    dropped: eligibility.dropped.length > 0 ? eligibility.dropped.map(sealable) : undefined,
    explore: start.explored,
    id: policyId(start, config.learning, knobs.epsilon),
    mode_profile: profile,
    overrides: [...start.overrides],
    price_table_hash: config.priceTableHash,
    propensity: start.propensity,
    start_rung: start.rung ?? 0,
    stay: start.stay && sealedStay(start.stay),
  }
  if (start.rung === null) return { ...nothingToCall(eligibility), policy }
  const own = ownLimit(headers)
  if (own === 'bad') {
    const message = 'x-router-max-cost-usd takes a number of dollars above 0, such as 0.05'
    return { ok: false, error: 'bad_request', message, policy }
  }
  const calibrated = deps.calibrated(tenantId, route)
  const plan: CascadePlan = {
    traceId,
    tenantId,
    inbound,
    config,
    route,
    knobs,
    threshold: serveThreshold(knobs, calibrated.threshold, calibrated.lost),
    gates: route.gates.flatMap(id => deps.gates.get(id) ?? []),
    start: { ...start, rung: start.rung },
    // A second call would add to the conversation what the first one has added.
    eligible: inbound.held?.appends === true ? [start.rung] : eligibility.rungs,
    passChance: rung => deps.learner.passChance({ tenantId, route, features, settings: config.learning }, rung),
    credential,
    held: input.held,
    heldTokens: model => (holding === undefined ? 0 : heldTokens(holding, model.maxInputTokens)),
    fingerprint,
    account: deps.ledger.open(
      { tenantId, sessionId: input.sessionId, route: route.fingerprint },
      capsFor(config, route, tenantId, own),
    ),
    boundFactors:
      own === null && !hasCaps(config) ? null : boundFactors(config.tenants[tenantId], route.budget, config.budget),
  }
  const { stay } = start
  return { ok: true, plan, policy, insteadOf: stay?.stays ? route.ladder[stay.to] : undefined }
}

/** What it costs a session to stay on its rung; undefined where nothing of it is in a cache, or the route does not weigh it. */
function staying({
  route,
  session,
  inbound,
  features,
  now,
}: PlanInput): ((to: number) => Stay | undefined) | undefined {
  const ledger = session?.cache
  const on = ledger && route.stayForCache && route.ladder[ledger.last.rung]
  if (ledger === undefined || !on || on.rung !== session?.lastServedRung) return undefined
  const turn = { now, bodyBytes: inbound.body.length, messages: features.message_count }
  return to => stayForCache(ledger, { on, to: route.ladder[to]!, turn })
}

const sealedStay = (one: Stay): NonNullable<Policy['stay']> => ({
  from: one.from,
  to: one.to,
  stays: one.stays,
  cached_tokens: one.cachedTokens,
  cached_for_ms: Math.round(one.cachedForMs),
  stay_usd: toUsd(one.stayCost),
  go_usd: toUsd(one.goCost),
  without_usd: toUsd(one.withoutCost),
  balance_usd: toUsd(one.balance),
})

/** As a record may hold it; a request may name as many members in the way as it likes. */
const sealable = (one: DroppedRung): DroppedRung => ({ ...one, because: one.because.slice(0, MAX_SEALED) })
const MAX_SEALED = 512

function policyId({ drawn, forced }: Start, { algorithm }: Learning, epsilon: number): string {
  const id = drawn ? `${algorithm}@1` : 'static-ladder@1'
  if (forced) return `${id}+forced`
  return drawn && epsilon > 0 ? `${id}+eps` : id
}

function nothingToCall(eligibility: Eligibility): {
  ok: false
  error: 'untranslatable' | 'no_credential'
  message: string
} {
  const reasons = eligibility.dropped.map(({ model, because }) => `${model}: ${because}`).join('; ')
  return emptyBecause(eligibility) === 'no_credential'
    ? { ok: false, error: 'no_credential', message: `no model of this route can be called: ${reasons}` }
    : { ok: false, error: 'untranslatable', message: `no model of this route can take this request: ${reasons}` }
}

function clientKey(headers: HeaderList): string | undefined {
  return headerValue(headers, 'authorization') ?? headerValue(headers, 'x-api-key')
}

/** Names a credential without holding it, so that one caller's refused key keeps no other caller out. */
function fingerprints(headers: HeaderList, credential: (rung: Model) => Credential, hash: Sha256) {
  let own: string | undefined
  return (rung: Model): string => {
    if (credential(rung) !== 'passthrough') return 'router'
    own ??= sha256Hex(utf8(clientKey(headers) ?? ''), hash).slice(0, 16)
    return own
  }
}

/** The caller's own cap, which can only lower the others. */
function ownLimit(headers: HeaderList): NanoUsd | null | 'bad' {
  const text = headerValue(headers, 'x-router-max-cost-usd')?.trim()
  if (text === undefined) return null
  return /^\d{1,6}(?:\.\d+)?$/.test(text) && Number(text) > 0 ? fromUsd(Number(text)) : 'bad'
}

/**
 * The caps of one request, each on the account that it speaks of: what the process spends in a day, what this tenant does, and what
 * goes over this route. Of one request, and of a session, the smallest cap wins.
 */
export function capsFor(config: RoutingConfig, route: Route, tenantId: string, ownLimit: NanoUsd | null): Caps {
  const tenant = config.tenants[tenantId]
  const budgets: readonly Budget[] = [config.budget, route.budget, tenant].filter(budget => budget !== undefined)
  const smallest = (...caps: (NanoUsd | null | undefined)[]) => {
    const given = caps.filter(cap => cap != null)
    return given.length === 0 ? null : Math.min(...given)
  }
  return {
    request: smallest(...budgets.map(({ perRequest }) => perRequest), ownLimit),
    session: smallest(...budgets.map(({ perSession }) => perSession)),
    day: config.budget.perDay,
    tenant_day: smallest(config.budget.perTenantDay, tenant?.perTenantDay, tenant?.perDay),
    route_day: route.budget.perDay,
    route_tenant_day: route.budget.perTenantDay,
  }
}

const capped = new WeakMap<RoutingConfig, boolean>()

/** Whether a config has any cap. Accounts are shared, so a call without a cap counts in another one's. */
export function hasCaps(config: RoutingConfig): boolean {
  let known = capped.get(config)
  if (known === undefined) {
    const budgets = [config.budget, ...config.routes.map(({ budget }) => budget), ...Object.values(config.tenants)]
    known = budgets.some(
      budget => (budget?.perRequest ?? budget?.perSession ?? budget?.perDay ?? budget?.perTenantDay ?? null) !== null,
    )
    capped.set(config, known)
  }
  return known
}

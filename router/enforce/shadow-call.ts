import type { Tokens } from '../../shared/dialects/candidate.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import type { CascadeDeps, CascadePlan } from './cascade-plan.ts'
import { pricedCall } from './priced-call.ts'
import { refusedOf } from './refused-settings.ts'
import { rungBody, upstreamHeaders, upstreamUrl } from './upstream-request.ts'

/** The same request to the top rung, on the account and with the key of who asked: no tokens where it gave no answer, which may have a cost all the same. */
export async function askTop(
  plan: CascadePlan,
  deps: CascadeDeps,
  signal: AbortSignal,
): Promise<{ tokens: Tokens | null; cost: NanoUsd }> {
  const { inbound, route, config } = plan
  const top = route.ladder.at(-1)!
  const provider = config.providers[top.provider]!
  const credential = plan.credential(top)
  const refused = refusedOf(deps.refusedSettings, top, plan, deps.clock.monotonic())
  const made = rungBody(inbound, top, provider, route, refused)
  if (credential === 'missing' || !made.ok) return NONE
  const { body, headers } = made
  const { mediaBytes, mediaCount, n } = inbound.facts
  const maxTokens = made.maxTokens ?? inbound.facts.maxTokens ?? top.maxOutputTokens
  const asked = await pricedCall(
    {
      model: top,
      provider,
      body,
      url: upstreamUrl(inbound, provider, top),
      headers: key =>
        upstreamHeaders({ ...inbound, headers }, provider, key, { credential, bytes: body.length, first: false }),
      size: { mediaBytes, mediaCount, maxTokens, n, heldTokens: plan.heldTokens(top) },
    },
    plan,
    { ...deps, limits: config.limits },
    signal,
  )
  if (!asked.ok) return NONE
  const { call, tokens, cost } = asked
  return { tokens: call.kind === 'answered' && cost !== null ? tokens : null, cost: cost ?? 0 }
}

const NONE = { tokens: null, cost: 0 }

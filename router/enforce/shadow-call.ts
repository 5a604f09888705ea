import type { Tokens } from '../../shared/dialects/candidate.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import { askRung } from './cascade.ts'
import type { CascadeDeps, CascadePlan } from './cascade-plan.ts'
import { refusedOf } from './refused-settings.ts'

/** The same request to the top rung, on the account and with the key of who asked: no tokens where it gave no answer, which may have a cost all the same. */
export async function askTop(
  plan: CascadePlan,
  deps: CascadeDeps,
  signal: AbortSignal,
): Promise<{ tokens: Tokens | null; cost: NanoUsd }> {
  const top = plan.route.ladder.at(-1)!
  if (plan.credential(top) === 'missing') return NONE
  const refused = refusedOf(deps.refusedSettings, top, plan, deps.clock.monotonic())
  const held = plan.held.another()
  const asked = await askRung(top, { ...plan, held }, deps, { refused, first: false, stop: signal })?.made
  held.free()
  if (!asked?.ok) return NONE
  const { call, tokens, cost } = asked
  return { tokens: call.kind === 'answered' && cost !== null ? tokens : null, cost: cost ?? 0 }
}

const NONE = { tokens: null, cost: 0 }

import { refusedSetting } from '../../shared/dialects/adapt/refused-setting.ts'
import { isAdapted } from './adapted-body.ts'
import { BETAS } from './advisory-betas.ts'
import type { CascadePlan } from './cascade-plan.ts'
import type { Tried } from './receipt.ts'
import { rungBody } from './upstream-request.ts'

/** The advisory setting that a rung refused, where the request can be put to it without. */
export function settingToLeaveOut(
  { rung, call, sent }: Tried,
  { inbound, route, config }: CascadePlan,
  refused: ReadonlySet<string>,
): string | undefined {
  if (call.kind !== 'refused' || call.errorClass !== 'upstream_4xx' || !isAdapted(inbound, rung, route))
    return undefined
  const setting = refusedSetting(call.status, call.body)
  if (setting === undefined || refused.has(setting)) return undefined
  const without = rungBody(inbound, rung, config.providers[rung.provider]!, route, new Set([...refused, setting]))
  const differs =
    without.ok && (without.body.length !== sent.length || without.changes.some(({ path }) => path === BETAS))
  return differs ? setting : undefined
}

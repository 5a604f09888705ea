import { refusedSetting } from '../../shared/dialects/adapt/refused-setting.ts'
import { refusalKey, valueUnder } from '../../shared/dialects/adapt/refused-value.ts'
import { asObject, tryParse } from '../../shared/dialects/json-value.ts'
import { isAdapted } from './adapted-body.ts'
import type { CascadePlan } from './cascade-plan.ts'
import type { Tried } from './receipt.ts'
import { BETAS, rungBody } from './upstream-request.ts'

/** A host that refuses more of one request is not asked without them one by one. */
export const MOST_LEFT_OUT = 3

/** The advisory setting that a rung refused, or its value, where the request can be put to it without. */
export function settingToLeaveOut(
  { rung, call, sent }: Tried,
  { inbound, route, config }: CascadePlan,
  refused: ReadonlySet<string>,
): string | undefined {
  if (call.kind !== 'refused' || call.errorClass !== 'upstream_4xx' || !isAdapted(inbound, rung, route))
    return undefined
  const found = refusedSetting(call.status, call.body)
  if (found === undefined || refused.has(found.setting)) return undefined
  const { setting, ofValue } = found
  const body = ofValue ? asObject(tryParse(new TextDecoder().decode(sent))) : {}
  const key = ofValue
    ? refusalKey(
        setting,
        valueUnder(setting, name => body[name]),
      )
    : setting
  // Where the table has put the value there, or it is no word, the setting goes as a whole.
  return [key, setting].find(one => {
    if (refused.has(one)) return false
    const without = rungBody(inbound, rung, config.providers[rung.provider]!, route, new Set([...refused, one]))
    return without.ok && (without.body.length !== sent.length || without.changes.some(({ path }) => path === BETAS))
  })
}

import { html } from 'hono/html'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { Html } from './page.ts'
import { agentChoice } from './parts.ts'

/** The fields of a schedule, empty or of one that exists. */
export function scheduleFields(names: readonly string[], schedule?: Schedule): Html {
  const option = (value: string, chosen: string | undefined, words: string) =>
    html`<option value="${value}"${value === chosen ? html` selected` : ''}>${words}</option>`
  const sealed = schedule?.dataAvailable === false
  // What is emptied is taken away; a new schedule has nothing to take away.
  const clears = schedule === undefined ? '' : html` data-as="text-or-null"`
  return html`<label>Agent ${agentChoice(names, schedule?.agentName)}</label>
<label>Name <input name="name"${clears} maxlength="256" value="${schedule?.name ?? ''}"></label>
<label>When, as a cron expression <input name="cronExpr" required maxlength="256" value="${schedule?.cronExpr ?? '0 9 * * MON-FRI'}" spellcheck="false" class="mono"></label>
<label>Zone <input name="timezone"${clears} maxlength="64" value="${schedule?.timezoneSource === 'schedule' ? schedule.timezone : ''}" placeholder="as the deployment, such as Europe/Berlin" spellcheck="false"></label>
<div id="fires" role="status"></div>
<label>Input, as JSON <textarea class="code" name="config.input" data-as="json" rows="3" spellcheck="false"${sealed ? html` placeholder="Sealed to the agent's pool. Leave this empty to keep it, or enter a new input."` : html` required`}>${sealed ? '' : JSON.stringify(schedule?.config.input ?? { prompt: '' })}</textarea></label>
<label>When the one before still runs <select name="overlap">${option('allow', schedule?.overlap, 'start another')}${option('skip', schedule?.overlap, 'skip this one')}${option('queue', schedule?.overlap, 'start it afterwards, at most one')}</select></label>
<label>What was missed while no process was running <select name="catchUp">${option('one', schedule?.catchUp, 'start the newest')}${option('none', schedule?.catchUp, 'leave it')}${option('all', schedule?.catchUp, 'start all, up to the limit')}</select></label>`
}

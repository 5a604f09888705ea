import { html } from 'hono/html'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import type { Fire, PreviewItem, Schedule } from '../../../shared/wire/runtime/schedule.ts'
import {
  action,
  agentChoice,
  badge,
  card,
  facts,
  form,
  live,
  nameShown,
  nothing,
  pager,
  table,
  when,
} from '../components.ts'
import type { Html, Page } from '../page.ts'

export const schedulePage: Page = {
  path: '/schedules/:id',
  menu: 'Schedules',
  scripts: ['schedule.js'],
  async render({ ask, root, param, query }) {
    const at = `/v1/schedules/${encodeURIComponent(param('id'))}`
    const cursor = query('cursor')
    const schedule = await ask.get<Schedule>(at)
    const { cronExpr, timezone } = schedule
    const [fires, agents, next] = await Promise.all([
      ask.list<Fire>(`${at}/fires?limit=20${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`),
      ask.list<AgentItem>('/v1/agents?limit=200'),
      ask.get<PreviewItem[]>(`/v1/schedules/preview?${new URLSearchParams({ cronExpr, timezone, count: '10' })}`),
    ])
    const name = nameShown(schedule.name, schedule.agentName)
    const body = html`${live('schedule-head', head(root, schedule, next, name))}
${live('schedule-fires', card('What it did', html`${fires.items.length === 0 ? nothing('It has not fired yet.') : fireRows(root, fires.items)}${pager(root, `schedules/${schedule.id}`, { cursor }, fires.next)}`))}
<section class="card needs-script" aria-labelledby="edit-title"><h2 id="edit-title">Change it</h2>${form(
      { send: `PUT ${at}`, after: 'saved:Saved.', id: 'schedule' },
      html`${scheduleFields(
        agents.items.map(one => one.name),
        schedule,
      )}<button class="main">Save</button>`,
    )}</section>`
    return { title: name, body }
  },
}

function head(root: string, schedule: Schedule, next: readonly PreviewItem[], name: string): Html {
  const { id, agentName, cronExpr, timezone, timezoneSource, enabled, lastFiredAt, lastError } = schedule
  const at = `/v1/schedules/${id}`
  const upcoming = next.map(({ local, offset }, i) => {
    const before = next[i - 1]
    const moved = before !== undefined && before.offset !== offset
    return html`<li>${local.replace('T', ' ')} ${offset}${moved ? html` <span class="warn">⚠ the clock is put from ${before.offset} to ${offset} before this</span>` : ''}</li>`
  })
  return html`<h1>${name} ${badge(enabled ? 'active' : 'paused')}</h1>
<div class="cards"><div class="card">${facts([
    ['Agent', html`<a href="${root}agents/${agentName}">${agentName}</a>`],
    ['When', html`<code>${cronExpr}</code>`],
    [
      'Zone',
      `${timezone} (of the ${timezoneSource === 'schedule' ? 'schedule' : timezoneSource === 'deployment' ? 'deployment' : 'world: UTC'})`,
    ],
    ['Last', when(lastFiredAt)],
    ...(lastError === undefined ? [] : [['Last error', html`<span class="bad">${lastError}</span>`] as const]),
  ])}<div class="row">${action('Run now', { send: `POST ${at}/run`, after: 'goto:runs/{id}' })}
${enabled ? action('Pause', { send: `POST ${at}/pause` }) : action('Resume', { send: `POST ${at}/resume` })}
${action('Delete', { send: `DELETE ${at}`, after: 'goto:schedules', confirm: 'Delete this schedule? The runs that it started go on.' })}</div></div>
${card('The next ten times', html`${enabled ? '' : html`<p class="hint">It is paused, so it would fire at these times.</p>`}<ol class="mono">${upcoming}</ol>`)}</div>`
}

function fireRows(root: string, fires: readonly Fire[]): Html {
  return table(
    'Fires',
    ['Window', 'Outcome', 'Run'],
    fires.map(({ windowAt, outcome, runId, reason = '' }) => [
      when(windowAt),
      html`${badge(outcome)} ${reason}`,
      runId === undefined ? '' : html`<a class="mono" href="${root}runs/${runId}">…${runId.slice(-12)}</a>`,
    ]),
  )
}

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
<label>When the previous run is still going <select name="overlap">${option('allow', schedule?.overlap, 'start another')}${option('skip', schedule?.overlap, 'skip this one')}${option('queue', schedule?.overlap, 'start it afterwards, at most one')}</select></label>
<label>Windows missed while no process was running <select name="catchUp">${option('one', schedule?.catchUp, 'start the newest')}${option('none', schedule?.catchUp, 'leave it')}${option('all', schedule?.catchUp, 'start all, up to the limit')}</select></label>`
}

import { html } from 'hono/html'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import type { Schedule } from '../../../shared/wire/runtime/schedule.ts'
import { badge, form, live, nameShown, nothing, pager, table, when } from '../components.ts'
import type { Page } from '../page.ts'
import { snippets } from '../snippets.ts'
import { scheduleFields } from './schedule.ts'

export const schedulesPage: Page = {
  path: '/schedules',
  menu: 'Schedules',
  scripts: ['schedule.js'],
  async render({ ask, root, query }) {
    const cursor = query('cursor')
    const [schedules, agents] = await Promise.all([
      ask.list<Schedule>(
        `/v1/schedules?limit=50${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
      ),
      ask.list<AgentItem>('/v1/agents?limit=200'),
    ])
    const names = agents.items.map(({ name }) => name)
    const rows = schedules.items.map(one => [
      html`<a href="${root}schedules/${one.id}">${nameShown(one.name, `…${one.id.slice(-12)}`)}</a>`,
      html`<a href="${root}agents/${one.agentName}">${one.agentName}</a>`,
      html`<code>${one.cronExpr}</code><br><small>${one.timezone}</small>`,
      one.enabled ? when(one.nextFireAt) : badge('paused'),
      html`${when(one.lastFiredAt)}${one.lastError === undefined ? '' : html` <span class="bad">${one.lastError}</span>`}`,
    ])
    const body = html`<h1>Schedules</h1>
${live('schedules', rows.length === 0 ? nothing('There is no schedule yet.', html`<p>${names.length === 0 ? html`A schedule starts runs of an agent at set times. <a href="${root}agents">Make an agent first</a>.` : 'Make one below.'}</p>`) : html`<div class="card">${table('Schedules', ['Schedule', 'Agent', 'When', 'Next', 'Last'], rows)}</div>${pager(root, 'schedules', { cursor }, schedules.next)}`)}
${
  names.length === 0
    ? ''
    : html`<section class="card needs-script" aria-labelledby="new-title"><h2 id="new-title">A new schedule</h2>${form(
        { send: 'POST /v1/schedules', after: 'goto:schedules/{id}', id: 'schedule' },
        html`${scheduleFields(names)}<button class="main">Make the schedule</button>`,
      )}</section>`
}
${snippets([
  {
    about: 'Make a schedule',
    operation: 'schedules.create',
    body: {
      agentName: names[0] ?? 'my-agent',
      cronExpr: '0 7 * * *',
      timezone: 'Europe/Berlin',
      config: { input: { prompt: 'Good morning' } },
    },
  },
  { about: 'The schedules', operation: 'schedules.list' },
])}`
    return { title: 'Schedules', body }
  },
}

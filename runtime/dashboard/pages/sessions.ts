import { html } from 'hono/html'
import { count } from '../../../shared/browser/figures.ts'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import type { Session } from '../../../shared/wire/runtime/session.ts'
import { agentChoice, badge, form, live, nameShown, nothing, pager, price, table, when } from '../components.ts'
import type { Page } from '../page.ts'
import { snippets } from '../snippets.ts'

export const sessionsPage: Page = {
  path: '/sessions',
  menu: 'Sessions',
  async render({ ask, root, query }) {
    const cursor = query('cursor')
    const [sessions, agents] = await Promise.all([
      ask.list<Session>(`/v1/sessions?limit=50${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`),
      ask.list<AgentItem>('/v1/agents?limit=200'),
    ])
    const rows = sessions.items.map(
      ({ id, title, agentName, status, turnCount, costUsd, unpricedCalls, updatedAt }) => [
        html`<a href="${root}sessions/${id}">${nameShown(title, `…${id.slice(-12)}`)}</a>`,
        html`<a href="${root}agents/${agentName}">${agentName}</a>`,
        badge(status),
        count(turnCount),
        price(costUsd, unpricedCalls),
        when(updatedAt),
      ],
    )
    const names = agents.items.map(({ name }) => name)
    const body = html`<h1>Sessions</h1>
${live('sessions', rows.length === 0 ? nothing('There is no session yet.', html`<p>${names.length === 0 ? html`A session is a conversation with an agent. <a href="${root}agents">Make an agent first</a>.` : 'Open one below.'}</p>`) : html`<div class="card">${table('Sessions', ['Session', 'Agent', 'State', { num: 'Turns' }, { num: 'Cost' }, 'Last'], rows)}</div>${pager(root, 'sessions', { cursor }, sessions.next)}`)}
${
  names.length === 0
    ? ''
    : html`<section class="card needs-script" aria-labelledby="open-title"><h2 id="open-title">Open a session</h2>${form(
        { send: 'POST /v1/sessions', after: 'goto:sessions/{id}' },
        html`<label>Agent ${agentChoice(names)}</label><label>Title <input name="title" maxlength="256"></label><button class="main">Open</button>`,
      )}</section>`
}
${snippets([
  { about: 'Open a session', operation: 'sessions.create', body: { agentName: names[0] ?? 'my-agent' } },
  { about: 'The last sessions', operation: 'sessions.list', query: { limit: '20' } },
])}`
    return { title: 'Sessions', body }
  },
}

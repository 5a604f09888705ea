import { html } from 'hono/html'
import { count } from '../../../shared/browser/figures.ts'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import type { UsageItem } from '../../../shared/wire/runtime/usage.ts'
import { form, nameShown, nothing, pager, price, table, when } from '../components.ts'
import type { Page } from '../page.ts'
import { manifestEditor } from './agent.ts'

const DAYS = 7
const DAY_MS = 86_400_000

const FIRST = JSON.stringify(
  { systemPrompt: 'You are a helpful assistant.', model: 'auto', tools: ['ask_human'] },
  null,
  2,
)

export const agentsPage: Page = {
  path: '/agents',
  menu: 'Agents',
  scripts: ['manifest.js'],
  async render({ ask, root, query, now }) {
    const cursor = query('cursor')
    const from = new Date(now.getTime() - (DAYS - 1) * DAY_MS).toISOString().slice(0, 10)
    const [agents, usage = []] = await Promise.all([
      ask.list<AgentItem>(`/v1/agents?limit=50${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`),
      ask.maybe<UsageItem[]>(`/v1/usage?groupBy=agent&from=${from}`),
    ])
    const used = new Map(usage.map(one => [one.agentName, one]))
    const rows = agents.items.map(({ name, description = '', labels, createdAt }) => [
      html`<a href="${root}agents/${name}">${name}</a>`,
      description === '' ? '' : html`<span class="clamped" dir="auto">${nameShown(description)}</span>`,
      html`<a href="${root}runs?${new URLSearchParams({ agentName: name, since: '7d' })}">${count(used.get(name)?.runs ?? 0)}</a>`,
      count((used.get(name)?.tokensIn ?? 0) + (used.get(name)?.tokensOut ?? 0)),
      price(used.get(name)?.costUsd ?? 0, used.get(name)?.unpricedCalls),
      Object.entries(labels)
        .map(([key, value]) => `${nameShown(key)}=${nameShown(value)}`)
        .join(', '),
      when(createdAt),
    ])
    const body = html`<h1>Agents</h1>
${
  rows.length === 0
    ? nothing(
        'There is no agent yet.',
        html`<p>An agent is a manifest with a name. Make the first one here, or with <code>runtime agents apply</code>.</p>`,
      )
    : html`<div class="card">${table('Agents', ['Name', 'Description', { num: `Runs, ${DAYS} days` }, { num: 'Tokens' }, { num: 'Cost' }, 'Labels', 'Made'], rows)}</div>${pager(root, 'agents', { cursor }, agents.next)}`
}
<section class="card needs-script" aria-labelledby="new-title"><h2 id="new-title">A new agent</h2>${form(
      { send: 'POST /v1/agents', after: 'goto:agents/{name}' },
      html`<label>Name <input name="name" required maxlength="128" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" spellcheck="false"></label>
<label>Description <input name="description" maxlength="4096"></label>
${manifestEditor('Manifest', FIRST, 8)}<p><button class="main">Make the agent</button></p>`,
    )}</section>`
    return { title: 'Agents', body }
  },
}

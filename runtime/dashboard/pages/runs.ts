import { html } from 'hono/html'
import { count, duration, usd } from '../../../shared/browser/figures.ts'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import { type Run, runStatuses, triggerKinds } from '../../../shared/wire/runtime/run.ts'
import type { Html, Page } from '../page.ts'
import { agentChoice, badge, form, live, nothing, pager, table, when } from '../parts.ts'

export const runsPage: Page = {
  path: '/runs',
  menu: 'Runs',
  async render({ ask, root, query }) {
    const filters = { agentName: query('agentName'), status: query('status'), trigger: query('trigger') }
    const asked = { ...filters, cursor: query('cursor') }
    const given = Object.entries(asked).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const [runs, agents] = await Promise.all([
      ask.list<Run>(`/v1/runs?${new URLSearchParams([['limit', '50'], ...given])}`),
      ask.list<AgentItem>('/v1/agents?limit=200'),
    ])
    const names = agents.items.map(({ name }) => name)
    const list =
      runs.items.length === 0
        ? given.length > 0
          ? nothing('No run matches.', html`<p><a href="${root}runs">Show all</a></p>`)
          : nothing(
              'No agent has run yet.',
              html`<p>Start one below, or send <code>POST /v1/runs</code> with an API key.</p>`,
            )
        : html`<div class="card">${runTable(root, runs.items)}</div>${pager(root, 'runs', asked, runs.next)}`
    const body = html`<h1>Runs</h1>
<form class="filter" method="get" action="${root}runs">
<label>Agent <input name="agentName" list="agents" value="${filters.agentName ?? ''}" placeholder="any"></label>
<datalist id="agents">${names.map(name => html`<option value="${name}"></option>`)}</datalist>
${choice('Status', 'status', runStatuses, filters.status)}${choice('Started by', 'trigger', triggerKinds, filters.trigger)}
<button>Filter</button>${given.length > 0 ? html`<a href="${root}runs">Clear</a>` : ''}</form>
${asked.cursor === undefined ? live('runs', list) : list}
${
  names.length === 0
    ? ''
    : html`<section class="card needs-script" aria-labelledby="start-title"><h2 id="start-title">Start a run</h2>${form(
        { send: 'POST /v1/runs', after: 'goto:runs/{id}' },
        html`<label>Agent ${agentChoice(names, filters.agentName)}</label>
<label>Input, as JSON <textarea class="code" name="input" data-as="json" rows="3" spellcheck="false">{ "prompt": "" }</textarea></label><button class="main">Start</button>`,
      )}</section>`
}`
    return { title: 'Runs', body }
  },
}

export function runTable(root: string, runs: readonly Run[]): Html {
  return table(
    'Runs, newest first',
    ['Run', 'Agent', 'Status', 'Started', 'Duration', 'Tokens', 'Cost'],
    runs.map(
      ({ id, agentName, status, createdAt, startedAt, finishedAt, tokensIn, tokensOut, costUsd, trigger, parked }) => [
        html`<a class="mono" href="${root}runs/${id}" title="${id}">…${id.slice(-12)}</a>${trigger.kind === 'api' ? '' : html` <small>${trigger.kind}</small>`}`,
        agentName,
        html`${badge(status)}${parked === undefined ? '' : html` <small>${parked.reason}</small>`}`,
        when(createdAt),
        startedAt !== undefined && finishedAt !== undefined
          ? duration(Date.parse(finishedAt) - Date.parse(startedAt))
          : '–',
        count(tokensIn + tokensOut),
        usd(costUsd),
      ],
    ),
  )
}

function choice(label: string, name: string, values: readonly string[], chosen: string | undefined): Html {
  return html`<label>${label} <select name="${name}"><option value="">any</option>${values.map(
    value => html`<option${value === chosen ? html` selected` : ''}>${value}</option>`,
  )}</select></label>`
}

import { html } from 'hono/html'
import { icon } from '../../../shared/browser/icons.ts'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import { type Run, runErrorCodes, runStatuses, triggerKinds } from '../../../shared/wire/runtime/run.ts'
import { agentChoice, buttonWords, form, live, nothing, pager } from '../components.ts'
import type { Html, Page } from '../page.ts'
import { runTable } from '../run-table.ts'
import { snippets } from '../snippets.ts'

const HOUR_MS = 3_600_000
const SINCE: Readonly<Record<string, [words: string, ms: number]>> = {
  '1h': ['the last hour', HOUR_MS],
  '24h': ['the last 24 hours', 24 * HOUR_MS],
  '7d': ['the last 7 days', 7 * 24 * HOUR_MS],
  '30d': ['the last 30 days', 30 * 24 * HOUR_MS],
}
const FILTERS = [
  'q',
  'label',
  'agentName',
  'status',
  'errorCode',
  'trigger',
  'parentRunId',
  'sort',
  'since',
  'from',
] as const
type Filters = Partial<Record<(typeof FILTERS)[number], string>>

export const runsPage: Page = {
  path: '/runs',
  menu: 'Runs',
  scripts: ['runs.js'],
  async render({ ask, root, query, now }) {
    const given: Filters = Object.fromEntries(FILTERS.flatMap(name => (query(name) ? [[name, query(name)!]] : [])))
    const cursor = query('cursor')
    // A page behind the first is of the same runs, so it begins at the same moment.
    const from = given.from ?? startOf(given.since, now)
    const { since: _, from: __, ...filters } = given
    const asked = new URLSearchParams(
      Object.entries({
        ...filters,
        from,
        cursor,
        subRuns: given.parentRunId === undefined && given.trigger === undefined ? 'folded' : undefined,
        fields: 'title',
        count: 'true',
        limit: '50',
      }).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    const [runs, agents] = await Promise.all([
      ask.list<Run>(`/v1/runs?${asked}`),
      ask.list<AgentItem>('/v1/agents?limit=200'),
    ])
    const names = agents.items.map(({ name }) => name)
    const list = listOf({ root, runs, given, cursor, from, hasAgents: names.length > 0 })
    const body = html`<div class="title-row"><h1>Runs <small id="run-count">${counted(runs.total)}</small></h1>
${names.length === 0 ? '' : html`<button type="button" class="main needs-script acts" data-open="new-run">${icon('add')} New run</button>`}</div>
${filterForm(root, given, names)}
${BULK}
${cursor === undefined ? live('runs', list) : list}
${names.length === 0 ? '' : newRun(names, given.agentName, query('new') !== undefined)}
${snippets([
  { about: 'These runs', operation: 'runs.list', query: Object.fromEntries(asked) },
  {
    about: 'Start a run with labels',
    operation: 'runs.create',
    body: {
      agentName: given.agentName ?? names[0] ?? 'my-agent',
      input: { prompt: 'Hello' },
      labels: { team: 'north' },
    },
  },
])}`
    return { title: 'Runs', body }
  },
}

function startOf(since: string | undefined, now: Date): string | undefined {
  const known = since === undefined ? undefined : SINCE[since]
  return known && new Date(now.getTime() - known[1]).toISOString()
}

const counted = (total: string | undefined): string =>
  (total ?? '').replace(/\d+/, digits => digits.replace(/\B(?=(\d{3})+$)/g, ','))

interface Listing {
  root: string
  runs: { items: readonly Run[]; next: string | undefined }
  given: Filters
  cursor: string | undefined
  from: string | undefined
  hasAgents: boolean
}

function listOf({ root, runs, given, cursor, from, hasAgents }: Listing): Html {
  const { since: _, ...filters } = given
  // A page whose rows are all damaged is empty, and there are others behind it.
  if (runs.items.length > 0 || runs.next !== undefined) {
    const sortHref = (sort: string | undefined) => {
      const next = Object.entries({ ...given, sort }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      )
      return `${root}runs?${new URLSearchParams(next)}`
    }
    const table = runTable(runs.items, { root, choosable: true, sortHref, sort: given.sort })
    return html`<div class="card">${table}</div>${pager(root, 'runs', { ...filters, from, cursor }, runs.next)}`
  }
  if (Object.keys(given).length > 0)
    return nothing(
      'No run matches.',
      html`${given.q === undefined ? '' : html`<p>Search covers agents, models, errors, labels and ids, and inputs and outputs only where the store keeps them unencrypted.</p>`}<p><a href="${root}runs">Show all</a></p>`,
    )
  return hasAgents
    ? nothing('No agent has run yet.', html`<p class="acts">“New run” above starts the first one.</p>`)
    : nothing('There is no agent to run.', html`<p><a class="button main" href="${root}agents">Make an agent</a></p>`)
}

function filterForm(root: string, given: Filters, names: readonly string[]): Html {
  const isFiltered = Object.keys(given).length > 0
  return html`<form class="filter" method="get" action="${root}runs">
<label class="grow">Search <input type="search" name="q" maxlength="200" value="${given.q ?? ''}" placeholder="Words of a run, its agent, error or labels" data-search></label>
<label>Label <input name="label" value="${given.label ?? ''}" placeholder="key:value" pattern="[^:]{1,128}:.{0,256}" title="key:value"></label>
<label>Agent <input name="agentName" list="agents" value="${given.agentName ?? ''}" placeholder="any"></label>
<datalist id="agents">${names.map(name => html`<option value="${name}"></option>`)}</datalist>
${choice('Status', 'status', runStatuses, given.status)}${choice('Cause', 'errorCode', runErrorCodes, given.errorCode)}${choice('Started by', 'trigger', triggerKinds, given.trigger)}
<label>Since <select name="since"><option value="">any time</option>${Object.entries(SINCE).map(
    ([value, [words]]) =>
      html`<option value="${value}"${value === given.since ? html` selected` : ''}>${words}</option>`,
  )}</select></label>
${given.sort === undefined ? '' : html`<input type="hidden" name="sort" value="${given.sort}">`}
<button>${icon('search')} Filter</button>${isFiltered ? html` <a href="${root}runs">Clear</a>` : ''}</form>
<div id="views" class="views needs-script"${isFiltered ? html` data-savable` : ''}></div>
${given.parentRunId === undefined ? '' : html`<p class="notice">Sub-runs of <a class="mono" href="${root}runs/${given.parentRunId}">…${given.parentRunId.slice(-12)}</a></p>`}`
}

/** Shown by the script once runs are chosen. */
const BULK = html`<div id="bulk" class="bulk" hidden><span id="bulk-count" role="status"></span>
<button type="button" id="bulk-cancel" class="danger acts">${buttonWords('Cancel')}</button> <button type="button" id="bulk-retry" class="acts">${buttonWords('Retry')}</button> <button type="button" id="bulk-compare">${buttonWords('Compare')}</button> <button type="button" id="bulk-none">Choose none</button></div>`

function newRun(names: readonly string[], chosen: string | undefined, isOpen: boolean): Html {
  return html`<dialog id="new-run" class="wide-dialog" aria-labelledby="new-run-title"${isOpen ? html` data-open-now` : ''}>
<h2 id="new-run-title">New run</h2>
${form(
  { send: 'POST /v1/runs', after: 'goto:runs/{id}' },
  html`<label>Agent ${agentChoice(names, chosen)}</label>
<label data-input="message">Message <textarea name="input.prompt" rows="5" required></textarea></label>
<div data-input="fields" id="input-fields" hidden></div>
<label data-input="json" hidden>Input, as a JSON object <textarea class="code" name="input" data-as="json" rows="5" spellcheck="false" disabled>{ "prompt": "" }</textarea></label>
<label>Labels <small>optional</small> <input name="labels" data-as="labels" placeholder="team:north, ticket:42" spellcheck="false"></label>
<label><input type="checkbox" data-path="as-json" id="input-as-json"> Give the input as JSON</label>
<div class="row"><button class="main">Start</button> <button type="button" data-close>Close</button></div>`,
)}</dialog>`
}

function choice(label: string, name: string, values: readonly string[], chosen: string | undefined): Html {
  return html`<label>${label} <select name="${name}"><option value="">any</option>${values.map(
    value => html`<option${value === chosen ? html` selected` : ''}>${value}</option>`,
  )}</select></label>`
}

import { html } from 'hono/html'
import { count, money, percent } from '../../../shared/browser/figures.ts'
import { icon } from '../../../shared/browser/icons.ts'
import type { Agent, AgentVersion, AgentVersionWithManifest } from '../../../shared/wire/runtime/agent.ts'
import type { Budget } from '../../../shared/wire/runtime/budget.ts'
import type { IsolationItem } from '../../../shared/wire/runtime/isolation.ts'
import { type Manifest, manifest as manifestSchema } from '../../../shared/wire/runtime/manifest.ts'
import type { Run, RunStatus } from '../../../shared/wire/runtime/run.ts'
import { isObject, type Json } from '../../connectors/openapi/document.ts'
import type { Ask } from '../ask.ts'
import { action, badge, card, form, live, nameShown, pager, price, table, tabPanels, when } from '../components.ts'
import { manifestHelp, manifestMembers } from '../manifest-help.ts'
import type { Html, Page, Shown } from '../page.ts'
import { runTable } from '../run-table.ts'
import { sideBySide } from '../side-by-side.ts'
import { type ApiCall, snippets } from '../snippets.ts'

export const agentPage: Page = {
  path: '/agents/:name',
  menu: 'Agents',
  scripts: ['manifest.js', 'forecast.js'],
  async render({ ask, root, param, query, now }) {
    const at = `/v1/agents/${encodeURIComponent(param('name'))}`
    const cursor = query('cursor')
    const compared = query('diff')
    const agent = await ask.get<Agent>(at)
    const [versions, isolation, budget, runs, other] = await Promise.all([
      ask.list<AgentVersion>(
        `${at}/versions?limit=20${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
      ),
      ask.get<IsolationItem[]>('/v1/isolation'),
      ask.maybe<Budget>(`${at}/budget`),
      ask.list<Run>(`/v1/runs?limit=5&fields=title&agentName=${encodeURIComponent(agent.name)}`),
      compared === undefined
        ? undefined
        : ask.get<AgentVersionWithManifest>(`${at}/versions/${encodeURIComponent(compared)}`),
    ])
    const { name, manifest, description = '' } = agent
    const text = JSON.stringify(setMembers(manifest), null, 2)
    const body = html`<div class="title-row"><h1>${name}</h1><span class="row"><a class="button main acts" href="${root}runs?${new URLSearchParams({ new: '1', agentName: name })}">${icon('add')} New run</a> ${action('Chat', { send: 'POST /v1/sessions', after: 'goto:sessions/{id}', about: `with ${name}` }, html`<input type="hidden" name="agentName" value="${name}">`)}</span></div>${description === '' ? '' : html`<p dir="auto">${nameShown(description)}</p>`}
<p>${isolationBadge(manifest.isolation, isolation)}</p>
${tabPanels(
  `Parts of ${name}`,
  `${root}agents/${name}`,
  [
    {
      id: 'use',
      words: 'Use',
      body: html`${live('agent-figures', await figures(ask, root, name, { now, budget }))}
${card('Last runs', runs.items.length === 0 ? html`<p class="hint">It has not run yet. <a href="${root}runs?agentName=${name}">Start a run</a></p>` : html`${runTable(runs.items, { root })}<p><a href="${root}runs?agentName=${name}">All its runs</a></p>`)}`,
    },
    {
      id: 'versions',
      words: 'Versions',
      body: html`${other === undefined ? '' : difference(root, name, other, text)}
${live('agent-versions', card('Versions', html`${versionRows(root, name, versions.items)}${pager(root, `agents/${name}`, { cursor, tab: 'versions' }, versions.next)}`))}`,
    },
    { id: 'manifest', words: 'Manifest', body: manifestCard(at, text) },
    { id: 'budget', words: 'Budget', body: live('agent-budget', card('Budget', budgetForm(name, budget))) },
    { id: 'api', words: 'API', body: snippets(callsOf(name)) },
  ],
  query('tab') ?? (compared === undefined && cursor === undefined ? undefined : 'versions'),
)}
${action('Delete this agent', { send: `DELETE ${at}`, after: 'goto:agents', confirm: `Delete ${name}? Its open runs end as failed; its finished runs, their receipts, and its versions with their prompts stay.` })}`
    return { title: name, body }
  },
}

function manifestCard(at: string, text: string): Html {
  return html`<section class="card" aria-labelledby="manifest-title"><h2 id="manifest-title">Manifest</h2>
<noscript><pre tabindex="0">${text}</pre></noscript>
${form(
  { send: `POST ${at}/versions`, after: 'saved:Published.' },
  html`${manifestEditor('The current manifest, without what is as usual; what you publish is a new version', text, 14)}
<label>Note <input name="note" maxlength="1000"></label>
<label><input type="checkbox" name="promote" checked> Runs that start from now on use it</label>
<button class="main">Publish</button>`,
)}</section>`
}

const DAY_MS = 86_400_000
const DAYS = 7

/** How its runs went lately: each number leads to the runs that it counts. */
async function figures(
  ask: Ask,
  root: string,
  name: string,
  { now, budget }: { now: Date; budget: Budget | undefined },
): Promise<Html> {
  const from = new Date(now.getTime() - DAYS * DAY_MS).toISOString()
  const total = async (status: RunStatus): Promise<string> => {
    const time = status === 'succeeded' || status === 'failed' ? { from } : undefined
    const asked = new URLSearchParams({
      agentName: name,
      status,
      count: 'true',
      limit: '1',
      fields: 'summary',
      ...time,
    })
    return (await ask.list<Run>(`/v1/runs?${asked}`)).total ?? '0'
  }
  const [succeeded, failed, running, waiting] = await Promise.all([
    total('succeeded'),
    total('failed'),
    total('running'),
    total('waiting'),
  ])
  const [good, bad] = [Number.parseInt(succeeded, 10), Number.parseInt(failed, 10)]
  const rate = good + bad === 0 ? '–' : percent(Math.floor((good / (good + bad)) * 1000) / 1000)
  const isCounted = !/\+/.test(succeeded + failed)
  const tile = (title: string, value: Shown, status?: RunStatus) =>
    html`<div class="tile"><dt>${title}</dt><dd><span class="big">${status === undefined ? value : html`<a href="${root}runs?${new URLSearchParams({ agentName: name, status })}">${value}</a>`}</span></dd></div>`
  return html`<dl class="tiles">
${tile(`Success, ${DAYS} days`, isCounted ? rate : '–')}
${tile(`Succeeded, ${DAYS} days`, succeeded, 'succeeded')}
${tile(`Failed, ${DAYS} days`, failed, 'failed')}
${tile('Running', running, 'running')}
${tile('Waiting', waiting, 'waiting')}
${budget?.today === undefined ? '' : tile('Spent today', price(budget.today.costUsd))}
</dl>`
}

const callsOf = (agentName: string): ApiCall[] => [
  { about: 'Start a run', operation: 'runs.create', body: { agentName, input: { prompt: 'Hello' } } },
  { about: 'Its last runs', operation: 'runs.list', query: { agentName, limit: '5' } },
  {
    about: 'Publish a version',
    operation: 'agents.publish',
    params: { name: agentName },
    body: { manifest: { model: 'auto', systemPrompt: 'You are a helpful assistant.' } },
  },
  { about: 'Open a session', operation: 'sessions.create', body: { agentName } },
]

function isolationBadge(value: string, items: readonly IsolationItem[]): Html {
  const found = items.find(one => one.value === value)
  const nodes = found?.availableOn.length ?? 0
  const words =
    nodes > 0
      ? `${count(nodes)} node${nodes === 1 ? '' : 's'} can run it`
      : 'no node can run it now: its runs fail before their first step'
  const by = (found?.satisfiedBy ?? []).filter(one => one !== 'any')
  return html`${badge(`isolation ${value}`)} <span class="${nodes > 0 ? 'hint' : 'bad'}">${words}${by.length === 0 ? '' : `; by ${by.join(' or ')}`}</span>`
}

function versionRows(root: string, name: string, versions: readonly AgentVersion[]): Html {
  const before = versions.find(one => one.current)?.id
  const rows = versions.map(({ id, number, createdAt, note = '', current, manifestHash }) => [
    html`<span title="${manifestHash}">${number}</span> ${current ? badge('current') : ''}`,
    html`${when(createdAt)}${note === '' ? '' : html`<br><small>${note}</small>`}`,
    current
      ? ''
      : html`<a href="${root}agents/${name}?tab=versions&diff=${id}" aria-label="Compare version ${number}">Compare</a> ${action(
          'Promote',
          {
            send: `POST /v1/agents/${name}/versions/${id}/promote`,
            after: 'refresh:Promoted.',
            undo: before === undefined ? undefined : { send: `POST /v1/agents/${name}/versions/${before}/promote` },
            about: `version ${number}`,
          },
        )}`,
  ])
  return table('Versions', ['No.', 'Made', 'Actions'], rows)
}

function difference(root: string, name: string, other: AgentVersionWithManifest, current: string): Html {
  const before = JSON.stringify(setMembers(other.manifest), null, 2)
  return html`<section class="card" aria-labelledby="diff-title"><div class="title-row"><h2 id="diff-title">From version ${other.number} to the current one</h2><a href="${root}agents/${name}?tab=versions">Close</a></div>
${sideBySide([`Version ${other.number}`, before], ['Current', current])}</section>`
}

function budgetForm(name: string, budget: Budget | undefined): Html {
  const field = (words: string, key: 'maxCostUsdPerDay' | 'maxCostUsdPerRun' | 'maxTokensPerDay' | 'maxRunsPerDay') =>
    html`<label>${words} <input name="${key}" data-as="limit" type="number" min="0" step="${key.startsWith('maxCost') ? 'any' : '1'}" value="${budget?.[key] ?? ''}" placeholder="no limit"></label>`
  const at = `/v1/agents/${name}/budget`
  const today = budget?.today
  return html`${today === undefined ? html`<p class="hint">No budget: nothing limits what this agent spends.</p>` : html`<p>Today: ${money(today.costUsd)}${today.uncertainCostUsd > 0 ? ` (${money(today.uncertainCostUsd)} of it uncertain: calls that a crash cut off)` : ''}, ${count(today.tokens)} tokens, ${count(today.runs)} runs; ${money(today.reserved.costUsd)} held for open runs.</p>`}
${form(
  { send: `PUT ${at}`, after: 'saved:Saved. It holds from now on.' },
  html`${field('US dollars a day', 'maxCostUsdPerDay')}${field('US dollars a run', 'maxCostUsdPerRun')}${field('Tokens a day', 'maxTokensPerDay')}${field('Runs a day', 'maxRunsPerDay')}
<label>Notify webhooks at percent <input name="notifyAtPct" data-as="number" type="number" min="1" max="100" value="${budget?.notifyAtPct ?? 80}"></label>
${Object.entries(budget?.toolLimits ?? {}).length === 0 ? '' : html`<label>Tool calls a day, as JSON <textarea class="code" name="toolLimits" data-as="json">${JSON.stringify(budget?.toolLimits)}</textarea></label>`}
<label><input type="checkbox" name="hardFail"${budget?.hardFail === false ? '' : html` checked`}> Refuse what would exceed it</label>
<button class="main">Save the budget</button>`,
)}
<div class="row needs-script"><button type="button" id="forecast" data-agent="${name}">What would a run cost?</button>${
    budget === undefined
      ? ''
      : action('Remove the budget', { send: `DELETE ${at}`, confirm: `Remove the budget of ${name}?` })
  }</div><output id="forecast-said" role="status"></output>`
}

let defaults: Json | undefined

/**
 * A manifest with nothing in it but what was set: publishing it gives the same manifest again. Members stand in the order of the schema,
 * which is the order in which they matter, and not by their letters.
 */
export function setMembers(manifest: Manifest): Json {
  defaults ??= manifestSchema.parse({})
  const given = manifest as unknown as Json
  const names = [...manifestMembers().map(({ name }) => name), ...Object.keys(given)]
  const kept: Record<string, unknown> = {}
  for (const name of new Set(names)) {
    const value = beside(given[name], defaults[name])
    if (value !== undefined) kept[name] = value
  }
  if (manifest.tools.length > 0) kept.tools = manifest.tools.map(briefTool)
  return kept
}

/** What of a value is not its default; undefined where all of it is. */
function beside(value: unknown, usual: unknown): unknown {
  if (value === undefined || JSON.stringify(value) === JSON.stringify(usual)) return undefined
  if (!isObject(value) || !isObject(usual)) return value
  const kept = Object.entries(value).flatMap(([name, one]): [string, unknown][] => {
    const left = beside(one, usual[name])
    return left === undefined ? [] : [[name, left]]
  })
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** A tool of which nothing but its name was said. */
function briefTool(tool: Manifest['tools'][number]): unknown {
  const [usual] = manifestSchema.parse({ tools: [tool.name] }).tools
  return JSON.stringify(sorted(tool)) === JSON.stringify(sorted(usual)) ? tool.name : tool
}

const sorted = (value: object | undefined): unknown =>
  Object.entries(value ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))

/** The text of a manifest with its model and its system prompt as plain fields, checked and completed by the schema that publishing uses. */
export function manifestEditor(label: string, text: string, rows: number): Html {
  return html`<div class="needs-script plain-fields"><label>Model <input data-member="model" data-path="model" spellcheck="false" placeholder="auto"></label>
<label>System prompt <textarea data-member="systemPrompt" data-path="systemPrompt" rows="5"></textarea></label></div>
<label>${label} <textarea id="manifest" class="code" name="manifest" data-as="json" rows="${rows}" spellcheck="false" aria-describedby="manifest-said manifest-keys" data-members="${JSON.stringify(manifestMembers())}">${text}</textarea></label>
<p id="manifest-keys" class="hint">Ctrl+Space offers the names and values that fit at the cursor.</p>
<div id="manifest-said" role="status"></div>${manifestHelp()}`
}

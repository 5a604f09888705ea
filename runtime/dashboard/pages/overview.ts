import { html } from 'hono/html'
import { count, duration, many, money, percent } from '../../../shared/browser/figures.ts'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import type { Approval } from '../../../shared/wire/runtime/approval.ts'
import type { Budget } from '../../../shared/wire/runtime/budget.ts'
import type { Node } from '../../../shared/wire/runtime/node.ts'
import {
  type Overview,
  type OverviewFigures,
  type OverviewRange,
  overviewRanges,
} from '../../../shared/wire/runtime/overview.ts'
import { approvalBrief } from '../approval-card.ts'
import type { Ask } from '../ask.ts'
import { lines, type Series, share, stackedBars } from '../charts.ts'
import { badge, card, nameShown, nothing, price, table, when } from '../components.ts'
import type { Html, Page, Shown } from '../page.ts'
import { snippets } from '../snippets.ts'

export const overviewPage: Page = {
  path: '/',
  menu: 'Overview',
  scripts: ['overview.js'],
  async render({ ask, root, query }) {
    const range = query('range')
    return { title: 'Overview', body: await overviewBody(ask, root, isRange(range) ? range : '24h') }
  },
}

const WORDS: Readonly<Record<OverviewRange, string>> = {
  '1h': 'hour',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
}

const isRange = (value: string | undefined): value is OverviewRange =>
  (overviewRanges as readonly (string | undefined)[]).includes(value)

/** What the overview shows of a tenant, the same for everyone with the same rights. */
async function overviewBody(ask: Ask, root: string, range: OverviewRange): Promise<Html> {
  const [overview, agents, approvals, budgets, nodes] = await Promise.all([
    ask.get<Overview>(`/v1/overview?range=${range}`),
    ask.list<AgentItem>('/v1/agents?limit=1'),
    ask.list<Approval>('/v1/approvals?status=pending&limit=5'),
    ask.list<Budget>('/v1/budgets?limit=10'),
    ask.maybe<Node[]>('/v1/nodes'),
  ])
  const { open, total } = overview
  const hasNodes = nodes !== undefined && nodes.length > 0
  const hasRun = ended(total) + open.queued + open.running + open.waiting > 0
  return html`<div id="overview" data-live>
<div class="title-row"><h1>Overview</h1>${ranges(root, range)}</div>
${agents.items.length === 0 ? firstSteps(root) : hasRun ? '' : nothing(`No run in the last ${WORDS[range]}.`, html`<p><a class="button main" href="${root}runs?new=1">Start a run</a></p>`)}
${tiles(root, overview)}
${approvals.items.length === 0 ? '' : card('Waiting for you', waiting(root, approvals.items, open.approvals))}
<div class="cards two">
${card('Runs', stackedBars(outcomes(overview)), 'span-two')}
${card('Latency from start to end', lines(latency(overview)))}
${card('Spend by agent', stackedBars(spend(overview, overview.agents, ({ agentName }) => agentName, 'Dollars by agent')))}
${card('Spend by model', stackedBars(spend(overview, overview.models, ({ model }) => model, 'Dollars by model')))}
${card('Failures by cause', failures(root, overview))}
${card('Models', modelRows(overview))}
${card('Budgets today', budgets.items.length === 0 ? html`<p class="hint">No agent has a budget. Each agent's page has a form for one.</p>` : budgetRows(root, budgets.items), hasNodes ? '' : 'span-two')}
${hasNodes ? card('Nodes', nodeRows(nodes)) : ''}
</div>
${snippets([{ about: 'These figures', operation: 'overview.get', query: { range } }])}</div>`
}

function ranges(root: string, chosen: OverviewRange): Html {
  return html`<div class="segments" role="group" aria-label="Range">${overviewRanges.map(
    range =>
      html`<a href="${root}?range=${range}"${range === chosen ? html` aria-current="true"` : ''}>${range.replace(/[hd]/, ' $&')}</a>`,
  )}</div>`
}

function firstSteps(root: string): Html {
  return nothing(
    'There is no agent here yet.',
    html`<p class="needs-script"><button id="demo-run" type="button" class="main">Run the demo agent</button> It asks no provider and costs nothing.</p>
<p>Or <a href="${root}agents">make an agent of your own</a>.</p>`,
  )
}

type Ended = Pick<OverviewFigures, 'succeeded' | 'failed' | 'cancelled'>
const ended = ({ succeeded, failed, cancelled }: Ended): number => succeeded + failed + cancelled

/** Of the runs that came to an end by themselves. */
function successOf({ succeeded, failed }: Ended): number | undefined {
  return succeeded + failed === 0 ? undefined : succeeded / (succeeded + failed)
}

function tiles(root: string, { range, open, total, unpricedCalls, before }: Overview): Html {
  const [success, earlier] = [successOf(total), successOf(before)]
  const ago = `the ${WORDS[range]} before`
  const queue = open.oldestQueuedAt
  const tile = (name: string, value: Shown, note: Shown, look = '') =>
    html`<div class="tile ${look}"><dt>${name}</dt><dd><span class="big">${value}</span><span class="note">${note}</span></dd></div>`
  return html`<dl class="tiles">
${tile('Success rate', success === undefined ? '–' : percent(success, 1), success === undefined || earlier === undefined ? NEW : points(success - earlier, ago), success !== undefined && success < 0.9 ? 'poor' : '')}
${tile('Runs ended', count(ended(total)), change(ended(total), ended(before), ago))}
${tile('Median latency', took(total.p50Ms), change(total.p50Ms, before.p50Ms, ago, 'lower'))}
${tile('95 % within', took(total.p95Ms), change(total.p95Ms, before.p95Ms, ago, 'lower'))}
${tile('Spend', price(total.costUsd), html`${change(total.costUsd, before.costUsd, ago)}${unpricedCalls === 0 ? '' : `; ${many(unpricedCalls, 'call')} without a price`}`)}
${tile('Queue', count(open.queued), queue === undefined ? 'nothing waits for a free slot' : html`oldest from ${when(queue)}`)}
${tile('Running', html`<a href="${root}runs?status=running">${count(open.running)}</a>`, html`<a href="${root}runs?status=waiting">${count(open.waiting)} waiting</a>`)}
</dl>`
}

/** Where the time before had nothing of it. */
const NEW = 'no earlier runs'
const took = (ms: number | null): string => (ms === null ? '–' : duration(ms))

function points(by: number, ago: string): Html {
  const size = Math.abs(by * 100)
  if (size < 0.05) return html`as in ${ago}`
  return html`<span class="${by > 0 ? 'good' : 'bad'}">${by > 0 ? '▲' : '▼'} ${size.toFixed(1)} points</span> against ${ago}`
}

/** How much more or less than before; `better` says which of both is good, where one is. */
function change(is: number | null, was: number | null, ago: string, better?: 'lower'): Shown {
  if (is === null || was === null || was === 0) return was === 0 && is === 0 ? `as in ${ago}` : NEW
  const by = is / was - 1
  if (Math.abs(by) < 0.005) return `as in ${ago}`
  const look = better === undefined || Math.abs(by) < 0.1 ? '' : by < 0 ? 'good' : 'bad'
  const words = by > 9.995 ? `${count(Math.round(is / was))} times` : percent(Math.abs(by))
  return html`<span class="${look}">${by > 0 ? '▲' : '▼'} ${words}</span> against ${ago}`
}

type PlotOf = Parameters<typeof stackedBars>[0]
const base = ({ slots, slotMs }: Overview) => ({ slots: slots.map(({ from }) => from), slotMs })

function outcomes(overview: Overview): PlotOf {
  const of = (name: 'succeeded' | 'failed' | 'cancelled'): Series => ({
    name,
    className: `c-${name}`,
    values: overview.slots.map(slot => slot[name]),
  })
  return {
    ...base(overview),
    title: 'Runs by outcome',
    series: [of('succeeded'), of('failed'), of('cancelled')],
    words: value => (Number.isInteger(value) ? count(value) : value.toFixed(1)),
    none: 'No run ended in this time.',
  }
}

function latency(overview: Overview): PlotOf {
  const { slots } = overview
  return {
    ...base(overview),
    title: 'Latency, waits included',
    series: [
      { name: '95 %', className: 'l-high', values: slots.map(({ p95Ms }) => p95Ms) },
      { name: 'median', className: 'l-middle', values: slots.map(({ p50Ms }) => p50Ms) },
    ],
    words: duration,
    none: 'No run ended in this time.',
  }
}

function spend<T extends { costsUsd: readonly number[] }>(
  overview: Overview,
  parts: readonly T[],
  nameOf: (part: T) => string | undefined,
  title: string,
): PlotOf {
  return {
    ...base(overview),
    title,
    series: parts.flatMap((part, at) => {
      const name = nameOf(part)
      if (part.costsUsd.every(cost => cost === 0)) return []
      return [{ name: name ?? 'others', className: name === undefined ? 's-rest' : `s-${at}`, values: part.costsUsd }]
    }),
    words: money,
    none: 'Nothing was spent in this time.',
  }
}

function failures(root: string, { failures, failuresOmitted }: Overview): Html {
  if (failures.length === 0) return html`<p class="hint">No run failed in this time.</p>`
  return html`${table(
    'Failures by cause',
    ['Cause', 'Agent', { num: 'Runs' }],
    failures
      .slice(0, 8)
      .map(({ code, agentName, runs }) => [
        html`<a href="${root}runs?${new URLSearchParams({ errorCode: code, agentName })}">${code}</a>`,
        html`<a href="${root}agents/${agentName}">${agentName}</a>`,
        count(runs),
      ]),
  )}${failures.length > 8 || failuresOmitted > 0 ? html`<p><a href="${root}runs?status=failed">All failed runs</a></p>` : ''}`
}

/** How the runs of each model ended: one whose provider is in trouble stands out by its failures. */
function modelRows({ models }: Overview): Html {
  const used = models.filter(one => ended(one) > 0)
  if (used.length === 0) return html`<p class="hint">No run ended in this time.</p>`
  return table(
    'Models',
    ['Model', { num: 'Runs' }, { num: 'Failed' }, { num: 'Cost' }],
    used.map(one => {
      const success = successOf(one)
      const failed = success === undefined ? '–' : percent(1 - success, 1)
      const isPoor = success !== undefined && success < 0.9
      return [
        one.model ?? 'others',
        count(ended(one)),
        isPoor ? html`<span class="bad">${failed}</span>` : failed,
        price(one.costUsd),
      ]
    }),
  )
}

/** Decided where they are seen; the page of approvals has the rest, and what was decided. */
function waiting(root: string, approvals: readonly Approval[], open: number): Html {
  return html`<ul class="plain briefs">${approvals.map(one => approvalBrief(root, one))}</ul>
<p><a href="${root}approvals">${open > approvals.length ? `All ${count(open)} that wait` : 'All approvals'}</a></p>`
}

function budgetRows(root: string, budgets: readonly Budget[]): Html {
  const rows = budgets.map(({ agentName, maxCostUsdPerDay, maxRunsPerDay, today }): Shown[] => {
    const name = html`<a href="${root}agents/${agentName}">${agentName}</a>`
    if (maxCostUsdPerDay !== null) {
      const used = today.costUsd + today.reserved.costUsd
      const part = maxCostUsdPerDay === 0 ? 1 : used / maxCostUsdPerDay
      return [name, share(part), html`${price(used)} of ${money(maxCostUsdPerDay)}`]
    }
    if (maxRunsPerDay !== null) {
      const part = maxRunsPerDay === 0 ? 1 : today.runs / maxRunsPerDay
      return [name, share(part), `${count(today.runs)} of ${many(maxRunsPerDay, 'run')}`]
    }
    return [name, '', html`${price(today.costUsd)}, no limit a day`]
  })
  return table('Budgets', ['Agent', 'Used', 'Today'], rows)
}

function nodeRows(nodes: readonly Node[]): Html {
  return table(
    'Nodes',
    ['Node', 'State', 'Last seen'],
    nodes.slice(0, 5).map(({ name, status, lastSeenAt }) => [nameShown(name), badge(status), when(lastSeenAt)]),
  )
}

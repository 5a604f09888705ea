import { html } from 'hono/html'
import { count, usd } from '../../../shared/browser/figures.ts'
import type { AgentItem } from '../../../shared/wire/runtime/agent.ts'
import type { Approval } from '../../../shared/wire/runtime/approval.ts'
import type { Budget } from '../../../shared/wire/runtime/budget.ts'
import type { Node } from '../../../shared/wire/runtime/node.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../../shared/wire/runtime/usage.ts'
import { hoursChart, share } from '../hours-chart.ts'
import type { Html, Page } from '../page.ts'
import { badge, card, live, nothing, table, when } from '../parts.ts'
import { HOUR_MS } from '../store.ts'

export const overviewPage: Page = {
  path: '/',
  menu: 'Overview',
  async render({ ask, user, root, now, figures }) {
    const day = now.toISOString().slice(0, 10)
    const [agents, hours, open, approvals, failed, budgets, usage, nodes] = await Promise.all([
      ask.list<AgentItem>('/v1/agents?limit=1'),
      figures.hours(user.tenantId, (Math.floor(now.getTime() / HOUR_MS) - 23) * HOUR_MS),
      figures.open(user.tenantId),
      ask.list<Approval>('/v1/approvals?status=pending&limit=5'),
      ask.list<Run>('/v1/runs?status=failed&limit=5'),
      ask.list<Budget>('/v1/budgets?limit=10'),
      ask.list<UsageItem>(`/v1/usage?groupBy=agent&from=${day}&to=${day}`),
      ask.maybe<Node[]>('/v1/nodes'),
    ])
    const spent = usage.items.reduce((sum, { costUsd }) => sum + Math.round(costUsd * 1e9), 0) / 1e9
    const runs = usage.items.reduce((sum, one) => sum + one.runs, 0)
    const body = html`<h1>Overview</h1>
${agents.items.length === 0 ? nothing('There is no agent here yet.', html`<p><a href="${root}agents">Make the first agent</a>, or begin with the demo that asks no provider.</p>`) : ''}
${live(
  'overview',
  html`<div class="cards">
${card(
  'Runs',
  html`<dl class="figures">${(['running', 'waiting', 'queued'] as const).map(
    status =>
      html`<div><dt>${status}</dt><dd><a href="${root}runs?status=${status}">${count(open[status] ?? 0)}</a></dd></div>`,
  )}</dl>${hoursChart(hours, now)}`,
  'wide',
)}
${card(
  'Spent today',
  html`<dl class="figures"><div><dt>cost</dt><dd>${usd(spent)}</dd></div><div><dt>runs</dt><dd>${count(runs)}</dd></div></dl>${
    budgets.items.length === 0
      ? html`<p class="hint">No agent has a budget. Each agent's page has a form for one.</p>`
      : budgetRows(root, budgets.items)
  }`,
)}
${card('Waiting for you', approvals.items.length === 0 ? html`<p class="hint">No run waits for a decision.</p>` : waiting(root, approvals.items))}
${card('Last failures', failed.items.length === 0 ? html`<p class="hint">No run has failed.</p>` : failures(root, failed.items))}
${card('Nodes', nodeLine(root, nodes))}
</div>`,
)}`
    return { title: 'Overview', body }
  },
}

function budgetRows(root: string, budgets: readonly Budget[]): Html {
  const rows = budgets.map(({ agentName, maxCostUsdPerDay, maxRunsPerDay, today }) => {
    const name = html`<a href="${root}agents/${agentName}">${agentName}</a>`
    if (maxCostUsdPerDay !== null) {
      const used = today.costUsd + today.reserved.costUsd
      const part = maxCostUsdPerDay === 0 ? 1 : used / maxCostUsdPerDay
      return [name, share(part), `${usd(used)} of ${usd(maxCostUsdPerDay)}`]
    }
    if (maxRunsPerDay !== null) {
      const part = maxRunsPerDay === 0 ? 1 : today.runs / maxRunsPerDay
      return [name, share(part), `${count(today.runs)} of ${count(maxRunsPerDay)} runs`]
    }
    return [name, '', `${usd(today.costUsd)}, no limit a day`]
  })
  return table('Budgets', ['Agent', 'Used', 'Today'], rows)
}

function waiting(root: string, approvals: readonly Approval[]): Html {
  return table(
    'Waiting approvals',
    ['Agent', 'What'],
    approvals.map(({ runId, agentName, prompt, reason, expiresAt }) => [
      html`<a href="${root}runs/${runId}">${agentName}</a>`,
      html`${(prompt ?? reason).slice(0, 120)}<br><small>until ${when(expiresAt)}</small>`,
    ]),
  )
}

function failures(root: string, runs: readonly Run[]): Html {
  return table(
    'Last failures',
    ['Run', 'Why'],
    runs.map(({ id, agentName, error, finishedAt }) => [
      html`<a href="${root}runs/${id}">${agentName}</a>`,
      html`${badge(error?.code ?? 'failed')} ${(error?.message ?? '').slice(0, 160)}<br><small>${when(finishedAt)}</small>`,
    ]),
  )
}

function nodeLine(root: string, nodes: readonly Node[] | undefined): Html {
  if (nodes === undefined || nodes.length === 0) {
    return html`<p class="hint">Runs are executed by this service itself. <a href="${root}nodes">What it offers</a></p>`
  }
  return table(
    'Nodes',
    ['Node', 'State', 'Last seen'],
    nodes.slice(0, 5).map(({ name, status, lastSeenAt }) => [name, badge(status), when(lastSeenAt)]),
  )
}

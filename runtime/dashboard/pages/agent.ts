import { html } from 'hono/html'
import { count, money } from '../../../shared/browser/figures.ts'
import type { Agent, AgentVersion, AgentVersionWithManifest } from '../../../shared/wire/runtime/agent.ts'
import type { Budget } from '../../../shared/wire/runtime/budget.ts'
import type { IsolationItem } from '../../../shared/wire/runtime/isolation.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import { changesOf, lineDiff } from '../line-diff.ts'
import { manifestHelp } from '../manifest-help.ts'
import type { Html, Page } from '../page.ts'
import { action, badge, card, form, live, pager, table, when } from '../parts.ts'
import { runTable } from '../run-table.ts'

export const agentPage: Page = {
  path: '/agents/:name',
  menu: 'Agents',
  scripts: ['manifest.js', 'forecast.js'],
  async render({ ask, root, param, query }) {
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
    const text = JSON.stringify(manifest, null, 2)
    const body = html`<div class="title-row"><h1>${name}</h1><span class="row"><a class="button main" href="${root}runs?${new URLSearchParams({ new: '1', agentName: name })}">New run</a> <a class="button" href="${root}sessions">Chat</a></span></div>${description === '' ? '' : html`<p>${description}</p>`}
<p>${isolationBadge(manifest.isolation, isolation)}</p>
${other === undefined ? '' : difference(root, name, other, text)}
${card('Last runs', runs.items.length === 0 ? html`<p class="hint">It has not run yet. <a href="${root}runs?agentName=${name}">Start a run</a></p>` : html`${runTable(runs.items, { root })}<p><a href="${root}runs?agentName=${name}">All its runs</a></p>`)}
<div class="cards">
${live('agent-versions', card('Versions', html`${versionRows(root, name, versions.items)}${pager(root, `agents/${name}`, { cursor }, versions.next)}`))}
${live('agent-budget', card('Budget', budgetForm(name, budget)))}
</div>
<section class="card" aria-labelledby="manifest-title"><h2 id="manifest-title">Manifest</h2>
<noscript><pre tabindex="0">${text}</pre></noscript>
${form(
  { send: `POST ${at}/versions`, after: 'saved:Published.' },
  html`<label>The current manifest; what you publish is a new version <textarea id="manifest" class="code" name="manifest" data-as="json" rows="16" spellcheck="false" aria-describedby="manifest-said">${text}</textarea></label>
<div id="manifest-said" role="status"></div>${manifestHelp()}
<label>Note <input name="note" maxlength="1000"></label>
<label><input type="checkbox" name="promote" checked> Runs that begin from now on use it</label>
<button class="main">Publish</button>`,
)}</section>
${action('Delete this agent', { send: `DELETE ${at}`, after: 'goto:agents', confirm: `Delete ${name}? Its open runs end as failed; its finished runs and receipts stay.` })}`
    return { title: name, body }
  },
}

function isolationBadge(value: string, items: readonly IsolationItem[]): Html {
  const found = items.find(one => one.value === value)
  const nodes = found?.availableOn.length ?? 0
  const words =
    nodes > 0
      ? `${count(nodes)} node${nodes === 1 ? '' : 's'} can run it`
      : 'no node can run it now: its runs fail before their first step'
  return html`${badge(`isolation ${value}`)} <span class="${nodes > 0 ? 'hint' : 'bad'}">${words}${
    found === undefined ? '' : `; satisfied by ${found.satisfiedBy.join(', ')}`
  }</span>`
}

function versionRows(root: string, name: string, versions: readonly AgentVersion[]): Html {
  const rows = versions.map(({ id, number, createdAt, note = '', current, manifestHash }) => [
    html`<span title="${manifestHash}">${number}</span> ${current ? badge('current') : ''}`,
    html`${when(createdAt)}${note === '' ? '' : html`<br><small>${note}</small>`}`,
    current
      ? ''
      : html`<a href="${root}agents/${name}?diff=${id}" aria-label="Compare version ${number}">Compare</a> ${action(
          'Promote',
          {
            send: `POST /v1/agents/${name}/versions/${id}/promote`,
            after: 'refresh:Promoted.',
            about: `version ${number}`,
          },
        )}`,
  ])
  return table('Versions', ['No.', 'Made', 'Actions'], rows)
}

function difference(root: string, name: string, other: AgentVersionWithManifest, current: string): Html {
  const lines = changesOf(lineDiff(JSON.stringify(other.manifest, null, 2), current))
  const sign = { same: ' ', added: '+', gone: '-' } as const
  return html`<section class="card" aria-labelledby="diff-title"><h2 id="diff-title">From version ${other.number} to the current one</h2>
<pre class="diff" tabindex="0">${lines.every(line => line === undefined) ? 'They are the same.' : lines.map(line => (line === undefined ? html`<span>  …</span>` : html`<span class="${line.kind}">${sign[line.kind]} ${line.text}</span>`))}</pre>
<p><a href="${root}agents/${name}">Close</a></p></section>`
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
<label>Tell webhooks at percent <input name="notifyAtPct" data-as="number" type="number" min="1" max="100" value="${budget?.notifyAtPct ?? 80}"></label>
${Object.entries(budget?.toolLimits ?? {}).length === 0 ? '' : html`<label>Calls of tools a day, as JSON <textarea class="code" name="toolLimits" data-as="json">${JSON.stringify(budget?.toolLimits)}</textarea></label>`}
<label><input type="checkbox" name="hardFail"${budget?.hardFail === false ? '' : html` checked`}> Stop what would go over it</label>
<button class="main">Save the budget</button>`,
)}
<div class="row needs-script"><button type="button" id="forecast" data-agent="${name}">What would a run cost?</button>${
    budget === undefined
      ? ''
      : action('Remove the budget', { send: `DELETE ${at}`, confirm: `Remove the budget of ${name}?` })
  }</div><output id="forecast-said" role="status"></output>`
}

import { html } from 'hono/html'
import { count, duration, many } from '../../shared/browser/figures.ts'
import { visible } from '../../shared/browser/visible-text.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { badge, price, when } from './components.ts'
import type { Html, Shown } from './page.ts'

export interface RunTableOptions {
  root: string
  /** Boxes to choose runs by, for what is done with several. */
  choosable?: boolean
  /** Where the head of a column leads that sorts by it. */
  sortHref?: (sort: 'costUsd' | 'durationMs' | undefined) => string
  sort?: string | undefined
}

type Column = [name: string, look: string, sort?: 'costUsd' | 'durationMs' | 'none']

const COLUMNS: readonly Column[] = [
  ['Run', 'wide-cell'],
  ['Agent', 'name-cell'],
  ['Status', ''],
  ['Model', 'name-cell'],
  ['Started', '', 'none'],
  ['Duration', 'num', 'durationMs'],
  ['Tokens', 'num'],
  ['Cost', 'num', 'costUsd'],
]

/** Runs as rows that lead to their pages, newest first or as they are sorted. */
export function runTable(runs: readonly Run[], options: RunTableOptions): Html {
  const { choosable = false } = options
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Runs"><table class="runs">
<caption class="unseen">Runs</caption>
<thead><tr>${choosable ? html`<th scope="col" class="choose needs-script"><input type="checkbox" data-choose-all aria-label="Choose all runs of this page"></th>` : ''}${COLUMNS.map(column => head(column, options))}</tr></thead>
<tbody>${runs.map(run => row(run, options))}</tbody></table></div>`
}

function head([name, look, sort]: Column, { sortHref, sort: sorted }: RunTableOptions): Html {
  const isSorted = sort !== undefined && sort === (sorted ?? 'none')
  const words: Shown =
    sort === undefined || sortHref === undefined || isSorted
      ? html`${name}${isSorted && sortHref !== undefined ? html` <span aria-hidden="true">↓</span>` : ''}`
      : html`<a href="${sortHref(sort === 'none' ? undefined : sort)}" title="The greatest first">${name}</a>`
  return html`<th scope="col" class="${look}"${isSorted ? html` aria-sort="descending"` : ''}>${words}</th>`
}

function row(run: Run, { root, choosable = false }: RunTableOptions): Html {
  const { id, agentName, agentVersion, status, parked, model, createdAt, trigger, error, subRuns = 0 } = run
  const name = run.title === undefined ? html`<span class="mono">…${id.slice(-12)}</span>` : visible(run.title)
  const cells: [Shown, string][] = [
    [
      html`<a class="row-link" dir="auto" href="${root}runs/${id}" title="${id}">${name}</a>${trigger.kind === 'api' ? '' : html` <small>${trigger.kind}</small>`}${
        error === undefined
          ? ''
          : html`<small class="bad" dir="auto">${error.code}${error.message === error.code ? '' : `: ${visible(error.message.slice(0, 160))}`}</small>`
      }${subRuns === 0 ? '' : html`<a class="above below-link" href="${root}runs?parentRunId=${id}" data-sub-runs="${id}">▸ ${subRuns >= 1000 ? '1,000 or more sub-runs' : many(subRuns, 'sub-run')}</a>`}${labelLinks(run, root)}`,
      'wide-cell',
    ],
    [
      html`<a class="above" href="${root}agents/${agentName}">${agentName}</a>${agentVersion === undefined ? '' : html` <small>v${agentVersion}</small>`}`,
      'name-cell',
    ],
    [html`${badge(status)}${parked === undefined ? '' : html` <small>${parked.reason.replace('_', ' ')}</small>`}`, ''],
    [model === undefined ? '–' : html`<span title="${model}">${model}</span>`, 'name-cell'],
    [when(createdAt), ''],
    [tookOf(run), 'num'],
    [count(run.tokensIn + run.tokensOut), 'num'],
    [price(run.costUsd, run.unpricedCalls), 'num'],
  ]
  const choice = html`<td class="choose needs-script"><input type="checkbox" class="above" data-choose="${id}" data-state="${isTerminal(status) ? (status === 'succeeded' ? 'done' : 'over') : 'open'}" aria-label="Choose the run ${id.slice(-12)}"></td>`
  return html`<tr data-run="${id}">${choosable ? choice : ''}${cells.map(([cell, look], at) => html`<td class="${look}" data-label="${COLUMNS[at]![0]}"><div>${cell}</div></td>`)}</tr>`
}

const MOST_LABELS = 4

/** Each leads to the runs that have it as well. */
function labelLinks({ labels }: Run, root: string): Shown {
  const all = Object.entries(labels)
  if (all.length === 0) return ''
  const more = all.length - MOST_LABELS
  return html`<span class="labels">${all.slice(0, MOST_LABELS).map(([key, value]) =>
    // A name with a colon cannot be asked for.
    key.includes(':')
      ? html`<span class="label">${visible(key)}:${visible(value)}</span>`
      : html`<a class="label above" href="${root}runs?${new URLSearchParams({ label: `${key}:${value}` })}">${visible(key)}:${visible(value)}</a>`,
  )}${more > 0 ? html`<span class="label">+${more}</span>` : ''}</span>`
}

function tookOf({ startedAt, finishedAt }: Run): string {
  return startedAt === undefined || finishedAt === undefined
    ? '–'
    : duration(Date.parse(finishedAt) - Date.parse(startedAt))
}

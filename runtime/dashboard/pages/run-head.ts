import { html } from 'hono/html'
import { count, duration, usd } from '../../../shared/browser/figures.ts'
import { visible } from '../../../shared/browser/visible-text.ts'
import type { AgentVersion } from '../../../shared/wire/runtime/agent.ts'
import { isTerminal, type Run } from '../../../shared/wire/runtime/run.ts'
import { action, badge, buttonWords, facts, nameShown, price, when } from '../components.ts'
import type { Html } from '../page.ts'

const waitOf = ({ reason, until }: NonNullable<Run['parked']>): Html | string =>
  reason === 'rate_limit'
    ? html`waits for the rate limit of its provider${until === undefined ? '' : html`; next call ${when(until)}`}`
    : `sleeps until its ${reason}`

/** What a run is, what it came to, and what can be done with it; the browser keeps its figures up to date while it goes on. */
export function runHead(
  root: string,
  run: Run,
  { version, now }: { version: AgentVersion | undefined; now: Date },
): Html {
  const { id, agentName, status, error, parked, costUsd, treeCostUsd = costUsd } = run
  const over = isTerminal(status)
  const poisoned = parked?.reason === 'poisoned'
  const tookMs =
    run.startedAt === undefined
      ? undefined
      : (run.finishedAt === undefined ? now.getTime() : Date.parse(run.finishedAt)) - Date.parse(run.startedAt)
  const figures: [name: string, words: string | Html, id?: string][] = [
    ['Version', version === undefined ? '–' : html`<a href="${root}agents/${agentName}">${version.number}</a>`],
    ['Model', run.model ?? '–'],
    ['Duration', tookMs === undefined ? '–' : duration(Math.max(0, tookMs)), 'strip-time'],
    ['Tokens', `${count(run.tokensIn)} in, ${count(run.tokensOut)} out`, 'strip-tokens'],
    ['Cost', price(costUsd), 'strip-cost'],
    ...(treeCostUsd > costUsd ? [['With sub-runs', price(treeCostUsd)] as [string, Html]] : []),
    ['Created', html`${when(run.createdAt)}`],
  ]
  return html`<h1>${agentName} ${badge(status)}${parked === undefined || poisoned ? '' : html` <small>${waitOf(parked)}</small>`}</h1>
${poisoned ? html`<p class="notice bad"><strong>Set aside</strong>: each process that took up this run ended before it made progress, what is stored of it is damaged, or the store was restored with --hold. Fix the cause and resume it, or cancel it.</p>` : ''}
${over ? html`<i id="run-over" hidden></i>` : ''}
${error === undefined ? '' : html`<p class="notice bad"><strong>${error.code}</strong>${error.stepId === undefined ? '' : html` at <a href="#step=${encodeURIComponent(error.stepId)}">${error.stepId}</a>`}: ${visible(error.message)}</p>`}
${run.budgetExceeded ? html`<p class="notice">This run exceeded its budget, which is not a hard limit.</p>` : ''}
${run.unpricedCalls === undefined ? '' : html`<p class="notice">The cost leaves out ${count(run.unpricedCalls)} call${run.unpricedCalls === 1 ? '' : 's'} of models that have no price. <a href="${root}settings?tab=models">Give them one.</a></p>`}
<div class="card"><dl class="strip">${figures.map(([name, words, place]) => html`<div><dt>${name}</dt><dd${place === undefined ? '' : html` id="${place}"`}>${words}</dd></div>`)}</dl>
${facts([
  [
    'Run',
    html`<span class="mono">${id}</span> <button type="button" class="copy needs-script" data-copy="${id}" aria-label="Copy the id of the run">Copy</button>`,
  ],
  ...relations(root, run),
])}
<details><summary>More about the run</summary>${facts([
    ['Agent', html`<a href="${root}agents/${agentName}">${agentName}</a>`],
    ['Started by', `${run.trigger.kind}${run.trigger.ref === undefined ? '' : ` ${run.trigger.ref}`}`],
    [
      'Labels',
      Object.entries(run.labels)
        .map(([name, value]) => `${nameShown(name)}=${nameShown(value)}`)
        .join(', ') || 'none',
    ],
    ['Started', when(run.startedAt)],
    ['Ended', when(run.finishedAt)],
    ['Isolation', `${run.isolation.declared}${run.isolation.used === undefined ? '' : `, by ${run.isolation.used}`}`],
    ...(run.uncertainCostUsd === undefined
      ? []
      : [['Uncertain', `up to ${usd(run.uncertainCostUsd)} of calls that a crash cut off`] as const]),
  ])}</details>
<div class="row needs-script">${actions(run, { over, poisoned })}</div></div>`
}

function relations(root: string, run: Run): [string, Html][] {
  const { parentRunId, forkedFrom, sessionId, scheduleId } = run
  const link = (path: string, id: string) => html`<a class="mono" href="${root}${path}/${id}">${id}</a>`
  return [
    ...(parentRunId === undefined ? [] : [['Parent', link('runs', parentRunId)] as [string, Html]]),
    ...(forkedFrom === undefined
      ? []
      : [
          [
            'Forked from',
            html`${link('runs', forkedFrom.runId)} at ${forkedFrom.stepId} <a class="button" href="${root}compare?${new URLSearchParams({ a: forkedFrom.runId, b: run.id })}">${buttonWords('Compare')}</a>`,
          ] as [string, Html],
        ]),
    ...(sessionId === undefined ? [] : [['Session', link('sessions', sessionId)] as [string, Html]]),
    ...(scheduleId === undefined ? [] : [['Schedule', link('schedules', scheduleId)] as [string, Html]]),
  ]
}

function actions({ id, status }: Run, { over, poisoned }: { over: boolean; poisoned: boolean }): Html | string {
  if (status === 'succeeded') return ''
  if (over) return action('Retry from the failed step', { send: `POST /v1/runs/${id}/retry`, after: 'goto:runs/{id}' })
  return html`${poisoned ? action('Resume', { send: `POST /v1/runs/${id}/signals/resume` }) : ''}${action('Cancel', {
    send: `POST /v1/runs/${id}/cancel`,
    confirm: 'Cancel this run and its child runs? That is final.',
  })}`
}

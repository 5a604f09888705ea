import { html } from 'hono/html'
import { count, duration, usd } from '../../../shared/browser/figures.ts'
import type { Approval } from '../../../shared/wire/runtime/approval.ts'
import type { Receipt } from '../../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run, type Step } from '../../../shared/wire/runtime/run.ts'
import { approvalCard } from '../approval-card.ts'
import { across, LANE_PX, lanesOf } from '../browser/lanes.ts'
import {
  BAR_WIDTH,
  barsOf,
  marksOf,
  type Span,
  spanOf,
  stepName,
  type TimelineStep,
  timelineOfSteps,
  tookMs,
} from '../browser/timeline.ts'
import type { Html, Page } from '../page.ts'
import { action, badge, card, facts, folded, live, when } from '../parts.ts'

/** A journal that is longer is read once, by the browser: with 10,000 events the page came half a second later with the steps in it. */
const LONG = 2000
/** More rows than that are drawn by the browser alone, which has only those in view. */
const MOST_ROWS = 200

export const runPage: Page = {
  path: '/runs/:id',
  menu: 'Runs',
  scripts: ['run.js'],
  async render({ ask, root, param, now }) {
    const id = encodeURIComponent(param('id'))
    const run = await ask.get<Run>(`/v1/runs/${id}`)
    const over = isTerminal(run.status)
    const [approvals, receipt] = await Promise.all([
      ask.get<Approval[]>(`/v1/runs/${id}/approvals`),
      over ? ask.maybe<Receipt>(`/v1/runs/${id}/receipt`) : undefined,
    ])
    const long = (receipt?.payload.eventCount ?? 0) > LONG
    const steps = long ? [] : await ask.get<Step[]>(`/v1/runs/${id}/steps`)
    const all = timelineOfSteps(steps)
    const span = spanOf(all, now.getTime())
    const replayed = steps.filter(step => step.replayed).map(({ stepId }) => stepId)
    const pending = approvals.filter(({ status }) => status === 'pending')
    const body = html`<div id="run" data-run="${run.id}" data-replayed="${replayed.join(' ')}"${over ? html` data-over` : ''}${long ? html` data-long` : ''}></div>
${live('run-head', head(root, run))}
${live(
  'run-approvals',
  pending.map(one => approvalCard(root, one)),
)}
<section class="card" aria-labelledby="timeline-title"><h2 id="timeline-title">Timeline <small>steps: <span id="step-count">${count(all.length)}</span></small></h2>
<p class="hint keys">${legend()}</p>
${long ? html`<noscript><p class="hint">This run is too long to be drawn here. <a href="${root}ui/api/v1/runs/${run.id}/steps">Its steps as JSON</a></p></noscript>` : ''}
<div id="lanes" class="lanes${long ? ' tall' : ''}" tabindex="0" role="region" aria-label="What went on at the same time">${long ? '' : lanes(all, span)}</div>
<p class="ends hint"><span>${all.length === 0 ? '' : '0'}</span><span id="span">${all.length === 0 ? '' : duration(span.toMs - span.fromMs)}</span></p>
<div id="timeline" class="rows${long ? ' tall' : ''}" tabindex="0" role="region" aria-label="Timeline">
<div class="line head"><span>Step</span><span>When</span><span class="num">Time</span><span class="num">Tokens</span><span class="num">Cost</span></div>
${all.slice(0, MOST_ROWS).map(step => row(step, span))}</div>
<p id="no-steps" class="hint"${all.length > 0 || long ? html` hidden` : ''}>No step has started.</p><div id="step"></div></section>
${live('run-result', result(run, receipt))}
<section class="card" aria-labelledby="journal-title"><h2 id="journal-title">Journal <small>events: <span id="journal-count"></span></small></h2>
<p class="hint">Each hash covers the one before it. <a href="${root}ui/api/v1/runs/${run.id}/journal">As JSON</a></p>
<div id="journal" class="rows needs-script${long ? ' tall' : ''}" tabindex="0" role="region" aria-label="Journal"><div class="line event head"><span>No.</span><span>Event</span><span>Step</span><span>At (UTC)</span><span>Hash</span></div></div></section>`
    return { title: `Run of ${run.agentName}`, body }
  },
}

function head(root: string, run: Run): Html {
  const { id, agentName, status, error, labels, trigger, isolation, parked } = run
  const over = isTerminal(status)
  const poisoned = parked?.reason === 'poisoned'
  const others: [string, Html | undefined][] = [
    ['Parent', link(root, run.parentRunId)],
    ['Forked from', run.forkedFrom && html`${link(root, run.forkedFrom.runId)!} at ${run.forkedFrom.stepId}`],
    [
      'Session',
      run.sessionId === undefined ? undefined : html`<a href="${root}sessions/${run.sessionId}">${run.sessionId}</a>`,
    ],
    [
      'Schedule',
      run.scheduleId === undefined
        ? undefined
        : html`<a href="${root}schedules/${run.scheduleId}">${run.scheduleId}</a>`,
    ],
  ]
  return html`<h1>${agentName} ${badge(status)}${parked === undefined || poisoned ? '' : html` <small>sleeps until its ${parked.reason}</small>`}</h1>
${poisoned ? html`<p class="notice bad"><strong>Set aside</strong>: each process that took up this run ended before the run made progress. Fix the cause and resume it, or cancel it.</p>` : ''}
${over ? html`<i id="run-over" hidden></i>` : ''}
${error === undefined ? '' : html`<p class="notice bad"><strong>${error.code}</strong>${error.stepId === undefined ? '' : ` at ${error.stepId}`}: ${error.message}</p>`}
${run.budgetExceeded ? html`<p class="notice">This run went over its budget, which does not stop runs.</p>` : ''}
<div class="card"><div class="cards"><div>${facts([
    ['Run', html`<span class="mono">${id}</span>`],
    ['Agent', html`<a href="${root}agents/${agentName}">${agentName}</a>`],
    ['Started by', `${trigger.kind}${trigger.ref === undefined ? '' : ` ${trigger.ref}`}`],
    ...others.filter((entry): entry is [string, Html] => entry[1] !== undefined),
    [
      'Labels',
      Object.entries(labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(', ') || 'none',
    ],
  ])}</div><div>${facts([
    ['Created', when(run.createdAt)],
    ['Ended', when(run.finishedAt)],
    ['Model', run.model ?? '–'],
    ['Isolation', `${isolation.declared}${isolation.used === undefined ? '' : `, by ${isolation.used}`}`],
    ['Tokens', `${count(run.tokensIn)} in, ${count(run.tokensOut)} out`],
    [
      'Cost',
      `${usd(run.costUsd)}${run.uncertainCostUsd === undefined ? '' : `, and up to ${usd(run.uncertainCostUsd)} of calls that a crash cut off`}`,
    ],
  ])}</div></div>
<div class="row needs-script">${
    over
      ? status === 'succeeded'
        ? ''
        : action('Retry from the failed step', { send: `POST /v1/runs/${id}/retry`, after: 'goto:runs/{id}' })
      : html`${poisoned ? action('Resume', { send: `POST /v1/runs/${id}/signals/resume` }) : ''}${action('Cancel', {
          send: `POST /v1/runs/${id}/cancel`,
          confirm: 'Cancel this run and its child runs? That is final.',
        })}`
  }</div></div>`
}

function link(root: string, id: string | undefined): Html | undefined {
  return id === undefined ? undefined : html`<a class="mono" href="${root}runs/${id}">${id}</a>`
}

/** As browser/run.ts draws it. The rows below say the same in words. */
function lanes(steps: readonly TimelineStep[], span: Span): Html {
  const { count: lines, bars, names } = lanesOf(steps, span)
  return html`<svg class="picture" width="100%" height="${lines * LANE_PX}" aria-hidden="true">${bars.map(
    ({ stepId, lane, x, width, className, replayed }) =>
      html`<rect data-step="${stepId}" class="${className}${replayed ? ' replayed' : ''}" x="${across(x)}" width="${across(width)}" y="${lane * LANE_PX + 15}" height="10"></rect>`,
  )}${names.map(
    ({ words, lane, x, width }) =>
      html`<svg x="${across(x)}" width="${across(width)}" y="${lane * LANE_PX}" height="15"><text x="0" y="11">${words}</text></svg>`,
  )}</svg>`
}

function legend(): Html {
  const kinds: [string, string][] = [
    ['c-model', 'model'],
    ['c-tool', 'tool'],
    ['c-failed', 'failed attempt'],
    ['c-delay', 'delay before another'],
    ['c-wait', 'waits for a person'],
    ['c-rest', 'timer or signal'],
    ['c-tool replayed', 'used again by a recovery'],
  ]
  return html`${kinds.map(([name, words]) => html`<span><svg class="key" viewBox="0 0 1 1" aria-hidden="true"><rect class="${name}" width="1" height="1"></rect></svg>${words}</span> `)}`
}

/** As browser/run.ts draws it, so that nothing moves when it does. */
function row(step: TimelineStep, span: Span): Html {
  const { tokensIn, tokensOut, costUsd, error } = step
  const took = tookMs(step)
  const words = marksOf(step).join(' · ')
  const bars = barsOf(step, span).map(
    ({ x, width, className }) => html`<rect class="${className}" x="${x}" y="0" width="${width}" height="10"></rect>`,
  )
  return html`<div class="line" title="${error ?? words}"><span${error === undefined ? '' : html` class="bad"`}>${stepName(step)}${words === '' ? '' : html`<small> ${words}</small>`}</span>
<svg class="bar" viewBox="0 0 ${BAR_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">${bars}</svg>
<span class="num">${took === undefined ? '…' : duration(took)}</span><span class="num">${tokensIn + tokensOut === 0 ? '' : `${count(tokensIn)} → ${count(tokensOut)}`}</span><span class="num">${costUsd === 0 ? '' : usd(costUsd)}</span></div>`
}

function result(run: Run, receipt: Receipt | undefined): Html {
  return html`<div class="cards">${card('Input and output', html`${folded('Input', run.input)}${run.output === undefined ? html`<p class="hint">The output comes when the run ends.</p>` : folded('Output', run.output, true)}`)}
${card('Receipt', receipt === undefined ? html`<p class="hint">A run gets its signed receipt in the commit that ends it.</p>` : receiptOf(run.id, receipt))}</div>`
}

function receiptOf(id: string, receipt: Receipt): Html {
  const { journalHash, eventCount, issuedAt, keyId } = receipt.payload
  return html`${facts([
    ['Issued', when(issuedAt)],
    ['Key', html`<span class="mono">${keyId}</span>`],
    ['Journal', html`${count(eventCount)} events, head <span class="mono">${journalHash}</span>`],
  ])}${folded('The receipt', receipt)}
<div class="needs-script"><button type="button" class="main" data-verify="${id}">Verify in this browser</button><output id="verified" role="status"></output></div>`
}

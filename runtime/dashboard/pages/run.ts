import { html } from 'hono/html'
import { count, duration, money } from '../../../shared/browser/figures.ts'
import { visible } from '../../../shared/browser/visible-text.ts'
import type { AgentVersion } from '../../../shared/wire/runtime/agent.ts'
import type { Approval } from '../../../shared/wire/runtime/approval.ts'
import type { Receipt } from '../../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run, type Step } from '../../../shared/wire/runtime/run.ts'
import { approvalCard } from '../approval-card.ts'
import type { Ask } from '../ask.ts'
import { across, LANE_PX, lanesOf } from '../browser/run/lanes.ts'
import {
  BAR_WIDTH,
  barsOf,
  marksOf,
  type Span,
  spanOf,
  stepDurationMs,
  stepName,
  type TimelineStep,
  timelineOfSteps,
} from '../browser/run/timeline.ts'
import { badge, card, facts, folded, live, when } from '../components.ts'
import type { Html, Page } from '../page.ts'
import { snippets } from '../snippets.ts'
import { runHead } from './run-head.ts'

/** Of a run that has ended with more events than that the page has its first screen; the browser reads the journal when more is wanted. */
const LONG = 200
/** More rows than that are drawn by the browser alone, which has only those in view. */
const MOST_ROWS = 200
/** As many as there is room for, and some to scroll. */
const FIRST_ROWS = 40

export const runPage: Page = {
  path: '/runs/:id',
  menu: 'Runs',
  scripts: ['run.js'],
  async render({ ask, root, param, now, router }) {
    const id = encodeURIComponent(param('id'))
    const run = await ask.get<Run>(`/v1/runs/${id}`)
    const over = isTerminal(run.status)
    const versionPath = `/v1/agents/${encodeURIComponent(run.agentName)}/versions/${run.agentVersionId}`
    const [approvals, receipt, version, children] = await Promise.all([
      ask.get<Approval[]>(`/v1/runs/${id}/approvals`),
      over ? ask.maybe<Receipt>(`/v1/runs/${id}/receipt`) : undefined,
      ask.maybe<AgentVersion>(versionPath),
      runsBelow(ask, run.id),
    ])
    const events = receipt?.payload.eventCount ?? 0
    const long = events > LONG
    const steps = await ask.get<Step[]>(`/v1/runs/${id}/steps`)
    const all = timelineOfSteps(steps)
    const span = spanOf(all, now.getTime())
    const replayed = steps.filter(step => step.replayed).map(({ stepId }) => stepId)
    const pending = approvals.filter(({ status }) => status === 'pending')
    const tall = long ? ' tall' : ''
    const timeline = html`<section class="card" aria-labelledby="timeline-title"><h2 id="timeline-title">Timeline <small>steps: <span id="step-count">${count(all.length)}</span></small></h2>
${long && all.length > FIRST_ROWS ? html`<noscript><p class="hint">Its first ${FIRST_ROWS} steps. <a href="${root}ui/api/v1/runs/${run.id}/steps">All as JSON</a></p></noscript>` : ''}
<div id="pauses"></div>
<div id="lanes" class="lanes${tall}" tabindex="0" role="region" aria-label="What went on at the same time">${lanes(all, span)}</div>
<p class="ends hint"><span>${all.length === 0 ? '' : '0'}</span><span id="span">${all.length === 0 ? '' : duration(span.toMs - span.fromMs)}</span></p>
<div id="timeline" class="rows${tall}" tabindex="0" role="region" aria-label="Timeline">
<div class="line head"><span>Step</span><span>When</span><span class="num">Time</span><span class="num">Tokens</span><span class="num">Cost</span></div>
${all.slice(0, long ? FIRST_ROWS : MOST_ROWS).map(step => row(step, span))}</div>
<p id="no-steps" class="hint"${all.length > 0 ? html` hidden` : ''}>No step has started.</p>
<details><summary>Colours</summary><p class="hint keys">${legend()}</p></details></section>`
    const journal = html`<section class="card" aria-labelledby="journal-title"><h2 id="journal-title">Journal <small>events: <span id="journal-count">${long ? count(events) : ''}</span></small></h2>
<p class="hint">Each hash covers the one before it. <a href="${root}ui/api/v1/runs/${run.id}/journal">As JSON</a></p>
<div id="journal" class="rows needs-script${tall}" tabindex="0" role="region" aria-label="Journal"><div class="line event head"><span>No.</span><span>Event</span><span>Step</span><span>At (UTC)</span><span>Hash</span></div></div></section>`
    const body = html`<div id="run" data-run="${run.id}" data-agent="${run.agentName}" data-version="${run.agentVersionId}" data-replayed="${long ? '' : replayed.join(' ')}"${router === undefined ? '' : html` data-router="${router}"`}${over ? html` data-over` : ''}${long ? html` data-events="${events}" data-steps="${all.length}"` : ''}></div>
${live('run-head', runHead(root, run, { version, now }))}
${live(
  'run-approvals',
  pending.map(one => approvalCard(root, one)),
)}
<div id="run-tabs" class="tabs needs-script" role="tablist" aria-label="Parts of the run">${[
      ['timeline', 'Timeline'],
      ['journal', 'Journal'],
      ['receipt', 'Receipt'],
    ].map(
      ([name, words], at) =>
        html`<button type="button" role="tab" id="tab-${name}" data-tab="${name}" aria-controls="panel-${name}" aria-selected="${at === 0 ? 'true' : 'false'}"${at === 0 ? '' : html` tabindex="-1"`}>${words}</button>`,
    )}</div>
<div id="panel-timeline" class="panel open" role="tabpanel" aria-labelledby="tab-timeline"><div class="panes">
<div>${timeline}${live('run-children', childRuns(root, children))}</div>
<div class="side" tabindex="0" role="region" aria-label="The chosen step, or the run"><div id="step"></div>${live('run-result', result(root, run))}</div></div></div>
<div id="panel-journal" class="panel" role="tabpanel" aria-labelledby="tab-journal">${journal}</div>
<div id="panel-receipt" class="panel" role="tabpanel" aria-labelledby="tab-receipt">${live('run-receipt', card('Receipt', receipt === undefined ? html`<p class="hint">A run gets its signed receipt in the commit that ends it.</p>` : receiptOf(run.id, receipt)))}</div>
${snippets([
  { about: 'Read this run', operation: 'runs.get', params: { id: run.id } },
  { about: 'Its journal with the hash chain', operation: 'runs.journal', params: { id: run.id } },
  { about: 'Its signed receipt', operation: 'receipts.get', params: { id: run.id } },
])}`
    return { title: `Run of ${run.agentName}`, body }
  },
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
  const took = stepDurationMs(step)
  const words = marksOf(step).join(' · ')
  const bars = barsOf(step, span).map(
    ({ x, width, className }) => html`<rect class="${className}" x="${x}" y="0" width="${width}" height="10"></rect>`,
  )
  return html`<div class="line" data-step="${step.stepId}" title="${visible(error ?? words)}"><span${error === undefined ? '' : html` class="bad"`}>${visible(stepName(step))}${words === '' ? '' : html`<small> ${visible(words)}</small>`}</span>
<svg class="bar" viewBox="0 0 ${BAR_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">${bars}</svg>
<span class="num">${took === undefined ? '…' : duration(took)}</span><span class="num">${tokensIn + tokensOut === 0 ? '' : `${count(tokensIn)} → ${count(tokensOut)}`}</span><span class="num">${costUsd === 0 ? '' : money(costUsd)}</span></div>`
}

/** Of an input or an output; the whole is one request away. */
const MOST_SHOWN = 20_000

function result(root: string, run: Run): Html {
  const { input, output } = run
  return card(
    'Input and output',
    html`${said(root, run.id, 'Input', input)}${output === undefined ? html`<p class="hint">The output comes when the run ends.</p>` : said(root, run.id, 'Output', output)}`,
  )
}

function said(root: string, id: string, name: string, value: Run['input']): Html {
  const text = value === undefined ? 'nothing' : JSON.stringify(value, null, 2)
  const isCut = text.length > MOST_SHOWN
  const shown = isCut ? text.slice(0, MOST_SHOWN).toWellFormed() : text
  return html`<details open><summary>${name}</summary><pre tabindex="0">${visible(shown)}</pre>${
    isCut
      ? html`<p class="hint">${count(text.length - MOST_SHOWN)} more characters. <a href="${root}ui/api/v1/runs/${id}">The run as JSON</a></p>`
      : ''
  }</details>`
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

/** A run below another one, with those below it. */
interface RunBelow {
  run: Run
  below: RunBelow[]
}

/** Of a tree that is wide. */
const MOST_RUNS = 100
const PAGE = 50

/** The runs that a run has started, and theirs, oldest first; of very many a part. */
async function runsBelow(ask: Ask, id: string, room = { left: MOST_RUNS }): Promise<RunBelow[]> {
  if (room.left <= 0) return []
  const path = `/v1/runs?parentRunId=${encodeURIComponent(id)}&fields=summary&limit=${PAGE}`
  const runs = (await ask.get<Run[]>(path)).toReversed().slice(0, room.left)
  room.left -= runs.length
  const found: RunBelow[] = []
  for (const run of runs) found.push({ run, below: await runsBelow(ask, run.id, room) })
  return found
}

/** As a tree, each with what it and those below it have cost. */
function childRuns(root: string, children: readonly RunBelow[]): Html | string {
  if (children.length === 0) return ''
  return html`<section class="card" aria-labelledby="children-title"><h2 id="children-title">Sub-runs</h2>${tree(root, children)}</section>`
}

function tree(root: string, children: readonly RunBelow[]): Html {
  return html`<ul class="tree">${children.map(
    ({ run, below }) =>
      html`<li><a href="${root}runs/${run.id}">${run.agentName}</a> ${badge(run.status)} <small>${figures(run)}</small>${below.length === 0 ? '' : tree(root, below)}</li>`,
  )}</ul>`
}

function figures({ startedAt, finishedAt, tokensIn, tokensOut, costUsd, treeCostUsd = costUsd }: Run): string {
  return [
    ...(startedAt !== undefined && finishedAt !== undefined
      ? [duration(Date.parse(finishedAt) - Date.parse(startedAt))]
      : []),
    `${count(tokensIn)} → ${count(tokensOut)} tokens`,
    treeCostUsd > costUsd ? `${money(treeCostUsd)} with its sub-runs` : money(costUsd),
  ].join(' · ')
}

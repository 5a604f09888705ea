import { html } from 'hono/html'
import { count, duration, money } from '../../../shared/browser/figures.ts'
import { visible } from '../../../shared/browser/visible-text.ts'
import type { JournalExport } from '../../../shared/wire/runtime/journal.ts'
import type { Receipt } from '../../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../../shared/wire/runtime/run.ts'
import type { Ask } from '../ask.ts'
import { stepDurationMs, stepName, type TimelineEvent, type TimelineStep, timelineOf } from '../browser/run/timeline.ts'
import { badge, card, live, nothing, price, table } from '../components.ts'
import { changesOf, lineDiff } from '../line-diff.ts'
import type { Html, Page, Shown } from '../page.ts'

/** Longer journals are not read here. */
const MOST_EVENTS = 4000
/** Of a text that is held against another. */
const MOST_CHARS = 20_000

interface Side {
  run: Run
  steps: TimelineStep[] | undefined
}

/** Two runs side by side: what they were told, what they answered, and step by step what each took and cost. */
export const comparePage: Page = {
  path: '/compare',
  menu: 'Runs',
  async render({ ask, root, query }) {
    const [a, b] = [query('a'), query('b')]
    if (a === undefined || b === undefined) {
      const body = html`<h1>Compare two runs</h1>${nothing('Choose two runs in the list.', html`<p><a class="button main" href="${root}runs">Runs</a></p>`)}`
      return { title: 'Compare', body }
    }
    const [left, right] = await Promise.all([sideOf(ask, a), sideOf(ask, b)])
    const isWhole = left.steps !== undefined && right.steps !== undefined
    const body = html`<div class="title-row"><h1>Compare two runs</h1><a class="button" href="${root}compare?${new URLSearchParams({ a: b, b: a })}">Swap</a></div>
${live(
  'compare',
  html`${right.run.forkedFrom?.onlyStep && right.run.forkedFrom.runId === left.run.id ? trialNote(root, right.run) : ''}${card('At a glance', heads(root, left.run, right.run))}
<div class="cards two-columns">${card('Input', difference(left.run.input, right.run.input))}${card('Output', difference(left.run.output, right.run.output))}</div>
${card('Steps', isWhole ? stepTable(root, left, right) : html`<p class="hint">One of these runs has more than ${count(MOST_EVENTS)} events, too many to be compared here.</p>`)}`,
)}`
    return { title: 'Compare', body }
  },
}

function trialNote(root: string, { id, agentName, forkedFrom, costUsd, status }: Run): Html {
  const cost = isTerminal(status)
    ? html`It cost ${price(costUsd)}; <a href="${root}runs/${id}">its run</a> has the receipt.`
    : 'It goes on.'
  return html`<p class="notice">The second run is a trial of <a href="#step-${forkedFrom?.stepId ?? ''}">${forkedFrom?.stepId ?? ''}</a> alone, with a version of <a href="${root}agents/${agentName}">${agentName}</a> that is not promoted. ${cost}</p>`
}

async function sideOf(ask: Ask, asked: string): Promise<Side> {
  const id = encodeURIComponent(asked)
  const run = await ask.get<Run>(`/v1/runs/${id}`)
  const receipt = isTerminal(run.status) ? await ask.maybe<Receipt>(`/v1/runs/${id}/receipt`) : undefined
  if ((receipt?.payload.eventCount ?? 0) > MOST_EVENTS) return { run, steps: undefined }
  const { events } = await ask.get<JournalExport>(`/v1/runs/${id}/journal`)
  return { run, steps: timelineOf(events as TimelineEvent[]) }
}

function heads(root: string, left: Run, right: Run): Html {
  const tookOf = ({ startedAt, finishedAt }: Run) =>
    startedAt === undefined || finishedAt === undefined ? undefined : Date.parse(finishedAt) - Date.parse(startedAt)
  const rows: Shown[][] = [
    ['Run', ...[left, right].map(({ id }) => html`<a class="mono" href="${root}runs/${id}">…${id.slice(-12)}</a>`), ''],
    ['Agent', ...[left, right].map(({ agentName }) => html`<a href="${root}agents/${agentName}">${agentName}</a>`), ''],
    [
      'Version',
      ...[left, right].map(
        run => run.agentVersion ?? html`<span class="mono">…${run.agentVersionId.slice(-12)}</span>`,
      ),
      left.agentVersionId === right.agentVersionId ? 'the same' : 'another',
    ],
    ['Status', badge(left.status), badge(right.status), ''],
    ['Model', left.model ?? '–', right.model ?? '–', left.model === right.model ? 'the same' : 'another'],
    ['Duration', took(tookOf(left)), took(tookOf(right)), delta(tookOf(left), tookOf(right), duration)],
    ['Tokens in', count(left.tokensIn), count(right.tokensIn), delta(left.tokensIn, right.tokensIn, count)],
    ['Tokens out', count(left.tokensOut), count(right.tokensOut), delta(left.tokensOut, right.tokensOut, count)],
    [
      'Cost',
      price(left.costUsd, left.unpricedCalls),
      price(right.costUsd, right.unpricedCalls),
      delta(left.costUsd, right.costUsd, money),
    ],
  ]
  return table('Both runs', ['What', 'First', 'Second', 'Difference'], rows)
}

const took = (ms: number | undefined): string => (ms === undefined ? '–' : duration(ms))

/** How much more the second has than the first. */
function delta(left: number | undefined, right: number | undefined, words: (value: number) => string): string {
  if (left === undefined || right === undefined) return ''
  if (left === right) return '='
  const size = words(Math.abs(right - left))
  const part = left === 0 ? '' : ` (${right > left ? '+' : '−'}${Math.round((Math.abs(right - left) / left) * 100)} %)`
  return `${right > left ? '+' : '−'}${size}${part}`
}

function textOf(value: unknown): string {
  const text = value === undefined ? '' : JSON.stringify(value, null, 2)
  return text.length <= MOST_CHARS ? text : `${text.slice(0, MOST_CHARS).toWellFormed()}\n… cut here`
}

function difference(left: unknown, right: unknown): Html {
  const [before, after] = [textOf(left), textOf(right)]
  if (before === after) {
    return before === ''
      ? html`<p class="hint">Neither has any.</p>`
      : html`<p class="hint">The same in both.</p><pre tabindex="0">${visible(before)}</pre>`
  }
  const sign = { same: ' ', added: '+', gone: '−' } as const
  return html`<pre class="diff wrapped" tabindex="0">${changesOf(lineDiff(before, after)).map(line =>
    line === undefined
      ? html`<span>  …</span>`
      : html`<span class="${line.kind}">${sign[line.kind]} ${visible(line.text)}</span>`,
  )}</pre>`
}

function stepTable(root: string, left: Side, right: Side): Html {
  const pairs = alignSteps(left.steps ?? [], right.steps ?? [])
  if (pairs.length === 0) return html`<p class="hint">Neither run has a step.</p>`
  return table(
    'Steps of both runs',
    ['Step', 'First', 'Second', 'Difference'],
    pairs.map(pair => row(root, pair, left.run.id, right.run.id)),
  )
}

function row(root: string, { left, right }: StepPair, leftId: string, rightId: string): Shown[] {
  const step = (left ?? right)!
  const said = (one: TimelineStep | undefined, id: string): Shown => {
    if (one === undefined) return html`<span class="hint">none</span>`
    const figures = [
      took(stepDurationMs(one)),
      ...(one.tokensIn + one.tokensOut === 0 ? [] : [`${count(one.tokensIn)} → ${count(one.tokensOut)}`]),
      ...(one.costUsd === 0 ? [] : [money(one.costUsd)]),
    ]
    return html`<a href="${root}runs/${id}#step=${encodeURIComponent(one.stepId)}">${one.status}${one.copied ? ', copied' : ''}</a> <small>${figures.join(' · ')}</small>${one.model === undefined ? '' : html`<br><small>${one.model}</small>`}`
  }
  return [
    html`<span id="step-${step.stepId}">${stepName(step)}</span>`,
    said(left, leftId),
    said(right, rightId),
    left && right ? change(left, right) : html`<span class="warn">only in one</span>`,
  ]
}

function change(left: TimelineStep, right: TimelineStep): Shown {
  const [before, after] = [left, right].map(one => one.output ?? one.error)
  const figures = [
    delta(stepDurationMs(left), stepDurationMs(right), duration),
    delta(left.costUsd, right.costUsd, money),
  ]
  const more = html`<small>time ${figures[0]}${left.costUsd + right.costUsd === 0 ? '' : `, cost ${figures[1]}`}</small>`
  if (textOf(before) === textOf(after)) return html`the same result ${more}`
  return html`<details open><summary>Another result ${more}</summary>${difference(before, after)}</details>`
}

interface StepPair {
  left: TimelineStep | undefined
  right: TimelineStep | undefined
}

/** Beyond so many pairs steps are aligned by their ids alone, since the table below would be too large. */
const MOST_PAIRS = 1_000_000

/**
 * The steps of two runs side by side. An id says the place of a step, so equal ids of one kind and name belong together; what one run did
 * besides stands alone, in its place.
 */
export function alignSteps(left: readonly TimelineStep[], right: readonly TimelineStep[]): StepPair[] {
  if (left.length * right.length > MOST_PAIRS) return byId(left, right)
  const alike = (a: TimelineStep, b: TimelineStep) => a.stepId === b.stepId && a.kind === b.kind
  const width = right.length + 1
  const common = new Uint32Array((left.length + 1) * width)
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      common[i * width + j] = alike(left[i]!, right[j]!)
        ? common[(i + 1) * width + j + 1]! + 1
        : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
    }
  }
  const pairs: StepPair[] = []
  let i = 0
  let j = 0
  while (i < left.length && j < right.length) {
    if (alike(left[i]!, right[j]!)) pairs.push({ left: left[i++], right: right[j++] })
    else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
      pairs.push({ left: left[i++], right: undefined })
    else pairs.push({ left: undefined, right: right[j++] })
  }
  return [
    ...pairs,
    ...left.slice(i).map(one => ({ left: one, right: undefined })),
    ...right.slice(j).map(one => ({ left: undefined, right: one })),
  ]
}

function byId(left: readonly TimelineStep[], right: readonly TimelineStep[]): StepPair[] {
  const others = new Map(right.map(step => [step.stepId, step]))
  const pairs = left.map((step): StepPair => {
    const other = others.get(step.stepId)
    others.delete(step.stepId)
    return { left: step, right: other }
  })
  return [...pairs, ...[...others.values()].map(step => ({ left: undefined, right: step }))]
}

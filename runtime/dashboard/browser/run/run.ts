import { el, part, svg } from '../../../../shared/browser/dom.ts'
import { count, duration, money } from '../../../../shared/browser/figures.ts'
import { visible } from '../../../../shared/browser/visible-text.ts'
import { root } from '../shell/page-api.ts'
import { refresh } from '../shell/refresh.ts'
import { skeleton } from '../shell/skeleton.ts'
import { tabs } from '../shell/tabs.ts'
import { across, LANE_PX, lanesOf } from './lanes.ts'
import { followRun } from './run-events.ts'
import { stepPanel } from './step-panel.ts'
import {
  BAR_WIDTH,
  barsOf,
  marksOf,
  pausesOf,
  type Span,
  spanOf,
  stepDurationMs,
  stepName,
  type TimelineEvent,
  type TimelineStep,
  timelineOf,
} from './timeline.ts'
import { virtualRows } from './virtual-rows.ts'

const ROW_PX = 30
/** Of the names above the bars; most letters are narrower. */
const LETTER_PX = 6.5

const page = part('#run')
const id = page.dataset.run!
const stepBox = part('#timeline')
const journalBox = part('#journal')
/** Its first rows as they came with the page. */
const firstRows = [...stepBox.querySelectorAll<HTMLElement>('.line[data-step]')]
const steps = virtualRows(stepBox, ROW_PX, part('.line.head', stepBox))
const journal = virtualRows(journalBox, ROW_PX, part('.line.head', journalBox))
const detail = part('#step')
const pages = tabs(part('#run-tabs'))

/** How long a run is whose journal is read when more of it is wanted than came with the page. */
const long =
  page.dataset.events === undefined
    ? undefined
    : { events: Number(page.dataset.events), steps: Number(page.dataset.steps) }
let isRead = false
let isWanted = false
let events: TimelineEvent[] = []
let replayed = new Set((page.dataset.replayed ?? '').split(' ').filter(Boolean))
let chosen: string | undefined = named()

function draw(): void {
  if (long !== undefined && !isRead) {
    drawFirst(long)
    return
  }
  const all = timelineOf(events, replayed)
  const span = spanOf(all, Date.now())
  steps.show({ count: all.length, row: at => stepRow(all[at]!, span) })
  drawLanes(all, span)
  journal.show({ count: events.length, row: at => eventRow(events[at]!) })
  part('#journal-count').replaceChildren(count(events.length))
  part('#no-steps').hidden = all.length > 0
  const pauses = isOver() ? [] : pausesOf(events, Date.now())
  part('#pauses').replaceChildren(...pauses.map(words => el('p', { class: 'notice' }, visible(words))))
  part('#step-count').replaceChildren(count(all.length))
  drawFigures(all, span)
  showStep()
}

/** What is there of a long run before its journal is. A row that is not there yet asks for it where it is seen. */
function drawFirst(all: { events: number; steps: number }): void {
  steps.show({ count: all.steps, row: at => (firstRows[at] === undefined ? unread(stepBox) : firstRow(firstRows[at])) })
  journal.show({ count: all.events, row: () => unread(journalBox) })
  showStep()
  performance.mark('run-drawn')
}

function firstRow(line: HTMLElement): HTMLElement {
  const { step } = line.dataset
  const pressed = String(chosen === step)
  const row = el('button', { type: 'button', class: 'line', title: line.title || undefined, 'aria-pressed': pressed })
  row.append(...line.cloneNode(true).childNodes)
  row.addEventListener('click', () => choose(chosen === step ? undefined : step))
  return row
}

function unread(box: HTMLElement): HTMLElement {
  if (box.clientHeight > 0) read()
  return el('button', { type: 'button', class: box === journalBox ? 'line event' : 'line' }, el('span', {}, '…'))
}

/** When the page was made, or since. */
function isOver(): boolean {
  return page.dataset.over !== undefined || document.querySelector('#run-over') !== null
}

/** The strip at the top goes on with the run. */
function drawFigures(all: readonly TimelineStep[], span: Span): void {
  if (isOver() || all.length === 0) return
  const sum = (of: (step: TimelineStep) => number) => all.reduce((total, step) => total + of(step), 0)
  const figures: Record<string, string> = {
    '#strip-time': duration(span.toMs - span.fromMs),
    '#strip-tokens': `${count(sum(one => one.tokensIn))} in, ${count(sum(one => one.tokensOut))} out`,
    '#strip-cost': money(Math.round(sum(one => one.costUsd) * 1e9) / 1e9),
  }
  for (const [selector, words] of Object.entries(figures)) document.querySelector(selector)?.replaceChildren(words)
}

/** Side by side what went on at the same time. The rows below have the same steps for readers without a pointer. */
function drawLanes(all: readonly TimelineStep[], span: Span): void {
  const { count: lines, bars, names } = lanesOf(all, span)
  const picture = svg('svg', { class: 'picture', width: '100%', height: lines * LANE_PX, 'aria-hidden': 'true' })
  for (const { stepId, lane, x, width, className, replayed } of bars) {
    const at = { x: across(x), width: across(width), y: lane * LANE_PX + 15, height: 10 }
    const look = `${className}${replayed ? ' replayed' : ''}${stepId === chosen ? ' chosen' : ''}`
    picture.append(svg('rect', { ...at, class: look, 'data-step': stepId }, svg('title', {}, stepId)))
  }
  const room = part('#lanes').clientWidth / BAR_WIDTH
  for (const { words, lane, x, width } of names) {
    const fitting = shortened(words, width * room)
    if (fitting === '') continue
    const at = { x: across(x), width: across(width), y: lane * LANE_PX, height: 15 }
    picture.append(svg('svg', at, svg('text', { x: 0, y: 11 }, fitting)))
  }
  part('#lanes').replaceChildren(picture)
  part('#span').replaceChildren(all.length === 0 ? '' : duration(span.toMs - span.fromMs))
}

/** As much of a name as there is room for, with a sign where it is cut; a few letters say nothing. */
function shortened(words: string, px: number): string {
  const letters = Math.floor(px / LETTER_PX) - 1
  return words.length <= letters ? words : letters < 6 ? '' : `${words.slice(0, letters - 1)}…`
}

/** What the side shows of the chosen step; drawn anew when that has changed. */
let shown = ''

/** Shows a step beside the timeline, and names it in the address; nothing: the run itself. */
function choose(stepId: string | undefined): void {
  chosen = stepId
  if (stepId !== undefined) read()
  const address = stepId === undefined ? location.pathname + location.search : `#step=${encodeURIComponent(stepId)}`
  history.replaceState(null, '', address)
  showStep()
  draw()
  if (stepId === undefined) return
  pages.open('timeline')
  detail.scrollIntoView({ block: 'nearest' })
}

function showStep(): void {
  const step = timelineOf(events, replayed).find(one => one.stepId === chosen)
  const isComing = chosen !== undefined && long !== undefined && !isRead
  const now = isComing ? `reading ${chosen}` : step === undefined ? '' : `${step.stepId} ${step.status} ${step.attempt}`
  if (now === shown) return
  shown = now
  if (isComing) {
    detail.replaceChildren(el('p', { class: 'unseen' }, 'Reading the journal …'))
    skeleton(detail)
    return
  }
  const close = () => choose(undefined)
  const { router, agent = '', version = '' } = page.dataset
  const deps = { runId: id, events, router, agentName: agent, versionId: version, close }
  detail.replaceChildren(...(step === undefined ? [] : stepPanel(step, deps)))
}

/** The step that the address names. */
function named(): string | undefined {
  const value = /^#step=(.+)$/.exec(location.hash)?.[1]
  try {
    return value === undefined ? undefined : decodeURIComponent(value)
  } catch {
    return undefined
  }
}

window.addEventListener('hashchange', () => choose(named()))

part('#lanes').addEventListener('click', event => {
  const { target } = event
  if (target instanceof SVGElement && target.dataset.step !== undefined) choose(target.dataset.step)
})

function stepRow(step: TimelineStep, span: Span): HTMLElement {
  const { stepId, tokensIn, tokensOut, costUsd, error } = step
  const took = stepDurationMs(step)
  const words = visible([...marksOf(step), ...(error === undefined ? [] : [error])].join(' · '))
  const bars = barsOf(step, span).map(({ x, width, className }) =>
    svg('rect', { x, y: 0, width, height: 10, class: className }),
  )
  const row = el(
    'button',
    { type: 'button', class: 'line', title: words || undefined, 'aria-pressed': String(chosen === stepId) },
    el(
      'span',
      { class: error === undefined ? undefined : 'bad' },
      visible(stepName(step)),
      words && el('small', {}, ` ${words}`),
    ),
    svg(
      'svg',
      { viewBox: `0 0 ${BAR_WIDTH} 10`, preserveAspectRatio: 'none', class: 'bar', 'aria-hidden': 'true' },
      ...bars,
    ),
    el('span', { class: 'num' }, took === undefined ? '…' : duration(took)),
    el('span', { class: 'num' }, tokensIn + tokensOut === 0 ? '' : `${count(tokensIn)} → ${count(tokensOut)}`),
    el('span', { class: 'num' }, costUsd === 0 ? '' : money(costUsd)),
  )
  row.addEventListener('click', () => {
    choose(chosen === stepId ? undefined : stepId)
  })
  return row
}

function eventRow({ seq, kind, stepId, at, hash, payload }: TimelineEvent): HTMLElement {
  const row = el(
    'button',
    { type: 'button', class: 'line event', title: visible(JSON.stringify(payload).slice(0, 400)) },
    el('span', {}, String(seq)),
    el('span', {}, kind),
    el('span', {}, stepId),
    el('span', {}, at.replace('T', ' ').replace('Z', '')),
    el('span', { class: 'mono' }, hash),
  )
  row.addEventListener('click', () => {
    choose(stepId)
  })
  return row
}

let drawing = false
function soon(): void {
  if (drawing) return
  drawing = true
  setTimeout(() => {
    drawing = false
    draw()
  }, 60)
}

/** Which results a recovery used again is not in the journal. */
async function askReplayed(): Promise<void> {
  const answer = await fetch(`${root}ui/api/v1/runs/${id}/steps`).catch(() => undefined)
  if (!answer?.ok) return
  const list = (await answer.json()) as { stepId: string; replayed: boolean }[]
  const now = new Set(list.filter(step => step.replayed).map(step => step.stepId))
  // Nearly no run has been recovered, and drawing thousands of steps anew takes a frame.
  if (now.size === replayed.size) return
  replayed = now
  soon()
}

/** Reads the events: all of a run that is over, else what comes as well. */
function read(): void {
  if (isWanted) return
  isWanted = true
  followRun(id, {
    over: page.dataset.over !== undefined,
    begun(all) {
      isRead = true
      events = all
      draw()
      performance.mark('run-drawn')
      if (chosen !== undefined) detail.scrollIntoView({ block: 'nearest' })
      if (long !== undefined) void askReplayed()
    },
    failed() {
      isWanted = false
    },
    event(one) {
      // After a reconnect the stream goes on where it was; an event twice would be a mistake of a proxy.
      if (one.seq <= (events.at(-1)?.seq ?? 0)) return
      events.push(one)
      soon()
      if (one.kind === 'step_waiting') void refresh()
    },
    resumed: () => void askReplayed(),
    ended: () => void refresh(),
  })
}
if (long !== undefined) drawFirst(long)
if (long === undefined || chosen !== undefined) read()
// A bar that still grows.
setInterval(() => {
  if (!document.hidden && !isOver()) draw()
}, 1000)
verifyButtons()

/** What checks a receipt is loaded when it is asked for: most who look at a run do not. */
function verifyButtons(): void {
  document.addEventListener('click', async event => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-verify]') : null
    if (button === null) return
    const { verifyRun } = await import('./verify-run.ts')
    await verifyRun(button)
  })
}

import { html } from 'hono/html'
import { table } from './components.ts'
import type { Html, Shown } from './page.ts'

/** One row of numbers, one for each slot; null where there is nothing to say. */
export interface Series {
  name: string
  className: string
  values: readonly (number | null)[]
}

export interface Plot {
  title: string
  /** The start of each slot. */
  slots: readonly string[]
  slotMs: number
  series: readonly Series[]
  /** A number in the words of its axis. */
  words: (value: number) => string
  /** What is said where every number is 0 or null. */
  none: string
}

const WIDTH = 600
const HEIGHT = 100
const DAY_MS = 86_400_000

/** The least of 1, 2, 2.5 and 5 times a power of ten that is not below it. */
export function axisTop(most: number): number {
  if (!(most > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(most))
  const factor = [1, 2, 2.5, 5, 10].find(one => one * power >= most * (1 - 1e-9)) ?? 10
  return factor * power
}

/** What came to each slot, one series on top of the other. */
export function stackedBars(plot: Plot): Html {
  const sums = plot.slots.map((_, at) => plot.series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  const top = axisTop(Math.max(0, ...sums))
  const step = WIDTH / plot.slots.length
  const bars = plot.slots.map((_, at) => {
    let y = HEIGHT
    return plot.series.map(({ className, values }) => {
      const height = ((values[at] ?? 0) / top) * HEIGHT
      y -= height
      return height === 0
        ? ''
        : html`<rect class="${className}" x="${rounded(at * step + step * 0.12)}" y="${rounded(y)}" width="${rounded(step * 0.76)}" height="${rounded(height)}"></rect>`
    })
  })
  return plotFrame(
    plot,
    top,
    sums.some(sum => sum > 0),
    bars,
  )
}

/** How something went from slot to slot; a slot without a number interrupts its line. */
export function lines(plot: Plot): Html {
  const all = plot.series.flatMap(({ values }) => values.filter(value => value !== null))
  const top = axisTop(Math.max(0, ...all))
  const step = WIDTH / plot.slots.length
  const paths = plot.series.map(({ className, values }) => {
    const parts = values.map((value, at) => {
      if (value === null) return ''
      const place = `${rounded((at + 0.5) * step)} ${rounded(HEIGHT - (value / top) * HEIGHT)}`
      const isFirst = (values[at - 1] ?? null) === null
      return isFirst ? `M${place}` : `L${place}`
    })
    const points = values.map((value, at) => {
      const isAlone = value !== null && [at - 1, at + 1].every(beside => (values[beside] ?? null) === null)
      // A line of no length has no ends that could be seen: a number without neighbours is a bar across its slot.
      if (!isAlone) return ''
      const y = rounded(HEIGHT - (value / top) * HEIGHT)
      return html`<path class="curve alone ${className}" d="M${rounded(at * step)} ${y}h${rounded(step)}"></path>`
    })
    return html`<path class="curve ${className}" d="${parts.join('')}"></path>${points}`
  })
  return plotFrame(plot, top, all.length > 0, paths)
}

function plotFrame(plot: Plot, top: number, hasData: boolean, drawn: Shown): Html {
  const { title, slots, slotMs, series, words, none } = plot
  if (!hasData) return html`<figure class="plot"><figcaption>${title}</figcaption><p class="hint">${none}</p></figure>`
  const step = WIDTH / slots.length
  const said = (at: number) =>
    series
      .filter(({ values }) => (values[at] ?? 0) > 0)
      .map(({ name, values }) => `${name} ${words(values[at] ?? 0)}`)
      .join(', ') || 'nothing'
  const over = slots.map(
    (slot, at) =>
      html`<rect class="slot" x="${rounded(at * step)}" y="0" width="${rounded(step)}" height="${HEIGHT}"><title>${clock(slot, slotMs)} UTC: ${said(at)}</title></rect>`,
  )
  const lines = [0.25, 0.5, 0.75].map(
    part => html`<line class="grid" x1="0" x2="${WIDTH}" y1="${part * HEIGHT}" y2="${part * HEIGHT}"></line>`,
  )
  const shown = [0, Math.floor(slots.length / 3), Math.floor((2 * slots.length) / 3), slots.length - 1]
  const legend = series.map(({ name, className }) => html`<span><i class="key ${className}"></i>${name}</span> `)
  return html`<figure class="plot"><figcaption class="keys">${legend}</figcaption>
<div class="plot-box"><div class="plot-y" aria-hidden="true"><span>${words(top)}</span><span>${words(top / 2)}</span><span>0</span></div>
<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title}; the numbers are in the table below">${lines}${drawn}${over}
<line class="axis" x1="0" y1="${HEIGHT}" x2="${WIDTH}" y2="${HEIGHT}"></line></svg></div>
<div class="plot-x" aria-hidden="true">${shown.map(at => html`<time datetime="${slots[at]!}" data-clock="${slotMs >= DAY_MS / 4 ? 'day' : 'hour'}">${clock(slots[at]!, slotMs)}</time>`)}</div>
<details><summary>As a table</summary>${table(
    title,
    ['From', ...series.map(({ name }) => ({ num: name }))],
    slots.map((slot, at) => [
      html`<time datetime="${slot}" data-clock="both">${clock(slot, slotMs)} UTC</time>`,
      ...series.map(({ values }) => (values[at] == null ? '–' : words(values[at]!))),
    ]),
  )}</details></figure>`
}

const rounded = (value: number): number => Math.round(value * 100) / 100

function clock(iso: string, slotMs: number): string {
  return slotMs >= DAY_MS / 4 ? iso.slice(5, 16).replace('T', ' ') : iso.slice(11, 16)
}

/** Part of a whole as a bar; the numbers stand beside it. */
export function share(part: number, className = 'c-spent'): Html {
  const width = Math.max(0, Math.min(1, part)) * 100
  return html`<svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="${
    part >= 1 ? 'c-failed' : className
  }" width="${width}" height="10"></rect></svg>`
}

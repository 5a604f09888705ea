import { html } from 'hono/html'
import { many } from '../../shared/browser/figures.ts'
import { type RunStatus, runStatuses } from '../../shared/wire/runtime/run.ts'
import type { Html } from './page.ts'
import { HOUR_MS, type HourCount } from './store.ts'

const HOURS = 24
const WIDTH = 240
const HEIGHT = 60

/** Runs of the last day, an hour each, with what has become of them. */
export function hoursChart(counts: readonly HourCount[], now: Date): Html {
  const last = Math.floor(now.getTime() / HOUR_MS)
  const byHour = Map.groupBy(counts, ({ hour }) => hour)
  const sums = [...byHour.values()].map(list => list.reduce((sum, { runs }) => sum + runs, 0))
  const most = Math.max(1, ...sums)
  const bars = Array.from({ length: HOURS }, (_, i) => {
    const hour = last - HOURS + 1 + i
    const of = (status: RunStatus) => byHour.get(hour)?.find(one => one.status === status)?.runs ?? 0
    let y = HEIGHT
    const pieces = runStatuses.map(status => {
      const height = (of(status) / most) * HEIGHT
      y -= height
      return height === 0
        ? ''
        : html`<rect class="c-${status}" x="${i * (WIDTH / HOURS) + 1}" y="${y}" width="${WIDTH / HOURS - 2}" height="${height}"></rect>`
    })
    const words = runStatuses.filter(status => of(status) > 0).map(status => `${of(status)} ${status}`)
    const time = new Date(hour * HOUR_MS).toISOString().slice(11, 16)
    return html`<g><title>${time} UTC: ${words.join(', ') || 'none'}</title>${pieces}</g>`
  })
  const total = sums.reduce((sum, n) => sum + n, 0)
  const seen = runStatuses.filter(status => counts.some(one => one.status === status))
  return html`<figure><svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img"
 aria-label="Runs of the last 24 hours by hour: ${many(total, 'run')}">${bars}
<line class="axis" x1="0" y1="${HEIGHT}" x2="${WIDTH}" y2="${HEIGHT}"></line></svg>
<figcaption>${many(total, 'run')} started in the last 24 hours, at most ${most} in one.
${seen.map(status => html` <svg class="key" viewBox="0 0 1 1" aria-hidden="true"><rect class="c-${status}" width="1" height="1"></rect></svg>${status}`)}</figcaption></figure>`
}

/** Part of a whole as a bar; the numbers stand beside it. */
export function share(part: number, className = 'c-spent'): Html {
  const width = Math.max(0, Math.min(1, part)) * 100
  return html`<svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="${
    part >= 1 ? 'c-failed' : className
  }" width="${width}" height="10"></rect></svg>`
}

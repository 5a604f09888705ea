import { el, svg, table } from '../../../shared/browser/dom.ts'
import { many, percent, usd } from '../../../shared/browser/figures.ts'
import type { Savings } from '../../../shared/wire/router/savings.ts'

const [WIDTH, HEIGHT] = [800, 160]
const DAY_MS = 86_400_000
/** Beyond this many days a bar would be thinner than a pixel on a phone. */
const MOST_BARS = 366

type Day = Pick<Savings['groups'][number], 'key' | 'requests' | 'savings_usd' | 'spent_usd'>

/** The sums and a bar for each day; below it the same as a table, for readers who cannot see bars. */
export function savingsView(savings: Savings): HTMLElement[] {
  const { requests, savings_usd, savings_pct, spent_usd, baseline_same_token_usd, unpriced } = savings
  if (requests === 0) return [el('p', { class: 'hint' }, 'There is no call in this time.')]
  const share = savings_pct === null ? '' : ` (${percent(savings_pct / 100)})`
  const calibrated = savings.savings_calibrated_usd
  const figures: [string, string][] = [
    ['Saved', usd(savings_usd) + share],
    ['Spent', usd(spent_usd)],
    ['The same tokens on the top rung', usd(baseline_same_token_usd)],
    ...(calibrated === undefined ? [] : [['Saved, by measured ratio', usd(calibrated)] as [string, string]]),
    ['Calls', many(requests, 'call')],
  ]
  const list = el(
    'dl',
    { class: 'figures' },
    ...figures.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
  )
  const missing =
    unpriced > 0 &&
    el(
      'p',
      { class: 'hint' },
      `${many(unpriced, 'call')} without a known price ${unpriced === 1 ? 'is' : 'are'} in none of the sums.`,
    )
  const rows = savings.groups.map(day => [
    day.key,
    many(day.requests, 'call'),
    usd(day.spent_usd),
    usd(day.savings_usd),
  ])
  return [
    list,
    el('div', {}, missing, bars(everyDay(savings.groups))),
    el(
      'details',
      {},
      el('summary', {}, 'As a table'),
      table('Savings by day', ['Day (UTC)', { num: 'Calls' }, { num: 'Spent' }, { num: 'Saved' }], rows),
    ),
  ]
}

/** Days without a call are days too. */
export function everyDay(groups: readonly Day[]): Day[] {
  const days = new Map(groups.map(day => [day.key, day]))
  const [first, last] = [groups[0], groups.at(-1)]
  if (first === undefined || last === undefined) return []
  const end = Date.parse(last.key)
  const all: Day[] = []
  for (let at = Math.max(Date.parse(first.key), end - (MOST_BARS - 1) * DAY_MS); at <= end; at += DAY_MS) {
    const key = new Date(at).toISOString().slice(0, 10)
    all.push(days.get(key) ?? { key, requests: 0, savings_usd: 0, spent_usd: 0 })
  }
  return all
}

function bars(days: readonly Day[]): HTMLElement {
  const values = days.map(({ savings_usd }) => savings_usd)
  const [top, low] = [Math.max(0, ...values), Math.min(0, ...values)]
  const span = top - low || 1
  const y = (value: number) => ((top - value) / span) * HEIGHT
  const step = WIDTH / days.length
  const width = Math.max(1, Math.min(40, step * 0.8))
  const columns = days.map(({ key, requests, savings_usd, spent_usd }, i) => {
    const [from, to] = [y(Math.max(0, savings_usd)), y(Math.min(0, savings_usd))]
    const place = {
      x: (i + 0.5) * step - width / 2,
      y: from,
      width,
      height: Math.max(requests > 0 ? 1.5 : 0, to - from),
    }
    const words = `${key}: ${usd(savings_usd)} saved, ${usd(spent_usd)} spent, ${many(requests, 'call')}`
    return svg('rect', { ...place, class: savings_usd < 0 ? 'lost' : 'saved' }, svg('title', {}, words))
  })
  const label = `Savings of each day from ${days[0]?.key} to ${days.at(-1)?.key}, at most ${usd(top)}`
  const chart = svg(
    'svg',
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      class: 'chart',
      role: 'img',
      'aria-label': label,
    },
    ...columns,
    svg('line', { x1: 0, x2: WIDTH, y1: y(0), y2: y(0), class: 'axis' }),
  )
  // The words stand outside: inside they would be stretched with the bars.
  const ends = [days[0]?.key, days.length > 1 && days.at(-1)?.key].map(key => el('span', {}, key))
  return el(
    'figure',
    {},
    el('figcaption', {}, top > 0 && `Up to ${usd(top)} a day`),
    chart,
    el('figcaption', { class: 'row between' }, ...ends),
  )
}

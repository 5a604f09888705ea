import { el, part, table } from '../../../shared/browser/dom.ts'
import { moment, usd } from '../../../shared/browser/figures.ts'
import { visible } from '../../../shared/browser/visible-text.ts'
import type { TraceRecord } from '../../../shared/wire/router/trace.ts'
import type { PanelApi } from './api.ts'
import { feedbackButtons } from './feedback.ts'

interface TraceListView {
  api: PanelApi
  open: (traceId: string) => void
  said: (words: string) => void
  failed: (error: unknown) => void
  /** The reader asked for traces. */
  asked: () => void
  /** The reader asked for other traces. */
  filtered: (filters: Record<string, string>) => void
}

const COLUMNS = [
  'Time',
  'Route',
  'Served by',
  'From',
  { num: 'Attempts' },
  { num: 'Cost' },
  { num: 'Saved' },
  'Outcome',
]
const PAGE = '50'

/** A page of traces and the older ones behind a button: however long the history is, the first page is one question. */
export function traceList(view: TraceListView) {
  const { api, failed, filtered } = view
  const body = part('#traces > .body')
  const older = part<HTMLButtonElement>('#older')
  const filter = part<HTMLFormElement>('#filter')
  let next: string | null = null
  /** Answers of a question that was asked before the last one are late. */
  let asked = 0

  const query = () => filled(filter)
  const row = (trace: TraceRecord) => cellsOf(trace, view)

  /** The newest traces that the filter lets through; resolves to whether there is any trace at all. */
  async function show(): Promise<boolean> {
    const turn = ++asked
    const wanted = query()
    const page = await api.traces({ ...wanted, limit: PAGE })
    if (turn !== asked) return true
    next = page.next
    older.hidden = next === null
    const none = page.traces.length === 0
    const isFiltered = Object.keys(wanted).length > 0
    const words = isFiltered
      ? 'No trace matches. Clear the filter to see all.'
      : 'Every call that passes the router is listed here.'
    body.replaceChildren(
      none ? el('p', { class: 'hint' }, words) : table('Traces, newest first', COLUMNS, page.traces.map(row)),
    )
    return !none || isFiltered
  }

  /** Puts what was sealed since above the rest. Where so much came that there would be a gap, the list starts anew. */
  async function showNewer(): Promise<void> {
    const turn = asked
    const page = await api.traces({ ...query(), limit: PAGE })
    if (turn !== asked) return
    const rows = body.querySelector('tbody')
    const known = new Set([...(rows?.querySelectorAll('button.link') ?? [])].map(one => one.getAttribute('title')))
    const fresh = page.traces.filter(({ trace_id }) => !known.has(trace_id))
    if (fresh.length === 0) return
    if (rows === null || fresh.length === page.traces.length) {
      await show()
      return
    }
    const made = table('', COLUMNS, fresh.map(row)).querySelectorAll('tbody > tr')
    for (const one of made) one.classList.add('fresh')
    rows.prepend(...made)
    performance.mark('tail-shown')
  }

  async function showOlder(): Promise<void> {
    if (next === null) return
    const turn = asked
    const page = await api.traces({ ...query(), limit: PAGE, before: next })
    if (turn !== asked) return
    next = page.next
    older.hidden = next === null
    const rows = table('', COLUMNS, page.traces.map(row)).querySelectorAll('tbody > tr')
    part('tbody', body).append(...rows)
    // The keyboard goes on where the new rows begin.
    rows[0]?.querySelector('button')?.focus()
  }

  /** Puts what an address says into the form. */
  function fill(filters: Readonly<Record<string, string>>): void {
    for (const field of filter.elements)
      if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement)
        field.value = filters[field.name] ?? ''
  }

  const shown = (work: () => Promise<unknown>) => () => {
    view.asked()
    void work().catch(failed)
  }
  const ask = () => {
    filtered(query())
    shown(show)()
  }
  filter.addEventListener('submit', event => {
    event.preventDefault()
    ask()
  })
  // The fields have their first values only after this event, and after what it leaves to do.
  filter.addEventListener('reset', () => setTimeout(ask))
  older.addEventListener('click', shown(showOlder))
  return { show, showNewer, fill }
}

function cellsOf(trace: TraceRecord, { api, open, said, failed }: TraceListView) {
  const { trace_id, ts, mode, route_ix, attempts, final } = trace
  const look = el('button', { type: 'button', class: 'link', title: trace_id }, moment(ts))
  look.addEventListener('click', () => open(trace_id))
  const rung = final.served_rung < 0 ? 'nothing' : `${final.served_model ?? 'unknown'}`
  const place = mode === 'observe' || final.served_rung < 0 ? '' : ` · rung ${final.served_rung}`
  return [
    look,
    `${mode}${route_ix === null ? '' : ` ${route_ix}`}`,
    visible(rung + place),
    `${final.served_from} (${final.status})`,
    attempts.length,
    usd(final.total_cost_usd),
    final.savings_usd === null ? 'unknown' : usd(final.savings_usd),
    feedbackButtons({ api, traceId: trace_id, said, failed }),
  ]
}

/** The fields of a form that say something. */
function filled(form: HTMLFormElement): Record<string, string> {
  const given = [...new FormData(form)].map(([name, value]): [string, string] => [name, String(value).trim()])
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

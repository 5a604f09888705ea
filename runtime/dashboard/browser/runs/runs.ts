import { part } from '../../../../shared/browser/dom.ts'
import { many } from '../../../../shared/browser/figures.ts'
import { askFirst, sendEach } from '../shell/ask-first.ts'
import { root } from '../shell/page-api.ts'
import { parsed } from '../shell/refresh.ts'
import { localTimes } from '../shell/times.ts'
import { toast } from '../shell/toast.ts'
import { newRun } from './new-run.ts'
import { savedViews } from './saved-views.ts'

/** So far below what is seen the next rows are asked for. */
const AHEAD = '800px'
/** Who scrolled past so many rows goes on by the link. */
const MOST = 5000

const list = (): HTMLElement | null => document.querySelector<HTMLElement>('#runs')
const rowsIn = (box: ParentNode | null | undefined): HTMLTableRowElement[] => [
  ...(box?.querySelectorAll<HTMLTableRowElement>('table.runs > tbody > tr:not(.below)') ?? []),
]
const linkIn = (box: ParentNode | null | undefined) => box?.querySelector<HTMLAnchorElement>('a[rel=next]') ?? null

/** Goes on with the list as the reader comes to its end; the link that leads there without a script stands until then. */
function olderRows(): void {
  let first = rowsIn(list())
  let older: HTMLTableRowElement[] = []
  /** Where the rows behind the last one are; null: there is none. */
  let next = linkIn(list())?.getAttribute('href') ?? null
  let isAsking = false

  const seen = new IntersectionObserver(
    entries => {
      if (entries.some(one => one.isIntersecting)) void goOn()
    },
    { rootMargin: AHEAD },
  )

  function show(): void {
    list()
      ?.querySelector('table.runs > tbody')
      ?.append(...older)
    const link = linkIn(list())
    if (link === null) return
    if (next === null) {
      link.remove()
      return
    }
    link.href = next
    seen.disconnect()
    if (first.length + older.length < MOST) seen.observe(link)
  }

  async function goOn(): Promise<void> {
    if (isAsking || next === null) return
    isAsking = true
    const page = await parsed(next)
    isAsking = false
    if (page === undefined) return
    const known = new Set([...first, ...older].map(({ dataset }) => dataset.run))
    const rows = rowsIn(page).filter(({ dataset }) => !known.has(dataset.run))
    older.push(...rows.map(row => document.importNode(row, true)))
    next = linkIn(page)?.getAttribute('href') ?? null
    show()
    localTimes()
  }

  // The first page of the list was drawn anew: what new rows have pushed out of it stands above the older ones.
  document.addEventListener('refreshed', () => {
    const now = rowsIn(list())
    if (now[0] === first[0]) return
    if (older.length === 0) {
      first = now
      next = linkIn(list())?.getAttribute('href') ?? null
    } else {
      const known = new Set(now.map(({ dataset }) => dataset.run))
      older = [...first, ...older].filter(({ dataset }) => !known.has(dataset.run))
      first = now
      for (const row of older) row.querySelector('[data-sub-runs]')?.removeAttribute('aria-expanded')
    }
    show()
  })
  show()
}

const boxes = () => [...document.querySelectorAll<HTMLInputElement>('[data-choose]')]
const chosen = () => boxes().filter(box => box.checked)

function showBulk(): void {
  const all = chosen()
  const of = (state: string) => all.filter(box => box.dataset.state === state).length
  part('#bulk').hidden = all.length === 0
  part('#bulk-count').replaceChildren(`${many(all.length, 'run')} chosen`)
  part<HTMLButtonElement>('#bulk-cancel').disabled = of('open') === 0
  part<HTMLButtonElement>('#bulk-retry').disabled = of('over') === 0
  part<HTMLButtonElement>('#bulk-compare').disabled = all.length !== 2
}

document.addEventListener('change', event => {
  if (!(event.target instanceof HTMLInputElement)) return
  if (event.target.dataset.chooseAll !== undefined) for (const box of boxes()) box.checked = event.target.checked
  if (event.target.dataset.chooseAll !== undefined || event.target.dataset.choose !== undefined) showBulk()
})
document.addEventListener('refreshed', showBulk)

function chooseNone(): void {
  for (const box of document.querySelectorAll<HTMLInputElement>('[data-choose], [data-choose-all]')) {
    box.checked = false
    delete box.dataset.typed
  }
  showBulk()
}

/** One operation for each chosen run in that state. */
async function each(state: string, verb: string, done: string, sure: string): Promise<void> {
  const ids = chosen().flatMap(({ dataset }) => (dataset.state === state && dataset.choose ? [dataset.choose] : []))
  if (!(await askFirst(sure.replace('{n}', many(ids.length, 'run'))))) return
  chooseNone()
  await sendEach({ ids, path: id => `ui/api/v1/runs/${id}/${verb}`, one: 'run', done })
}

part('#bulk-cancel').addEventListener('click', () =>
  each('open', 'cancel', 'cancelled', 'Cancel {n} with their sub-runs? That is final.'),
)
part('#bulk-retry').addEventListener('click', () =>
  each(
    'over',
    'retry',
    'started anew',
    'Retry {n} from their failed steps? Each starts a new run, which costs money of its own.',
  ),
)
part('#bulk-compare').addEventListener('click', () => {
  // The older one first, since the other is what changed.
  const [b = '', a = ''] = chosen().map(({ dataset }) => dataset.choose ?? '')
  location.href = `${root}compare?${new URLSearchParams({ a, b })}`
})
part('#bulk-none').addEventListener('click', () => {
  const ids = new Set(chosen().map(({ dataset }) => dataset.choose))
  chooseNone()
  toast(`${many(ids.size, 'run')} no longer chosen.`, () => {
    for (const box of boxes()) if (ids.has(box.dataset.choose)) box.checked = true
    showBulk()
  })
})

/** The runs whose sub-runs are shown; they stay so when the list is drawn anew. */
const opened = new Set<string>()

/** Puts the sub-runs of a run below it, from the page that lists them. */
async function showBelow(link: HTMLAnchorElement, id: string): Promise<void> {
  link.setAttribute('aria-expanded', 'true')
  link.replaceChildren((link.textContent ?? '').replace(/^./, '▾'))
  const page = await parsed(link.href)
  if (!opened.has(id) || !link.isConnected) return
  hideBelow(id)
  const rows = [...(page?.querySelectorAll<HTMLTableRowElement>('table.runs tbody tr') ?? [])].map(row => {
    const copy = document.importNode(row, true)
    copy.dataset.below = id
    copy.classList.add('below')
    return copy
  })
  link.closest('tr')?.after(...rows)
  localTimes()
}

function hideBelow(id: string): void {
  for (const old of document.querySelectorAll(`tr[data-below="${id}"]`)) old.remove()
}

document.addEventListener('click', event => {
  const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('[data-sub-runs]') : null
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  const id = link.dataset.subRuns ?? ''
  if (opened.delete(id)) {
    link.setAttribute('aria-expanded', 'false')
    link.replaceChildren((link.textContent ?? '').replace(/^./, '▸'))
    hideBelow(id)
    return
  }
  opened.add(id)
  void showBelow(link, id)
})
// Before what follows: rows that were put back have their sub-runs below them again.
olderRows()
document.addEventListener('refreshed', () => {
  for (const link of document.querySelectorAll<HTMLAnchorElement>('[data-sub-runs]:not([aria-expanded=true])')) {
    const id = link.dataset.subRuns ?? ''
    if (opened.has(id)) void showBelow(link, id)
  }
})

newRun()
savedViews()

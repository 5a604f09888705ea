import { parsed } from '../shell/refresh.ts'
import { localTimes } from '../shell/times.ts'

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
export function olderRows(): void {
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

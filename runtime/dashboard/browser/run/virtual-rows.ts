import { el } from '../../../../shared/browser/dom.ts'

/** What a row looks like; its height is the one of every row. */
export interface Rows {
  count: number
  row: (at: number) => HTMLElement
}

const AROUND = 10

/**
 * A list of any length in a box that scrolls: only the rows that can be seen exist. The keyboard moves over rows that are buttons with
 * the arrows, also to those that do not exist yet.
 */
export function virtualRows(box: HTMLElement, heightPx: number, head?: HTMLElement) {
  const spacer = el('div', { class: 'spacer' })
  box.replaceChildren(...(head ? [head] : []), spacer)
  let rows: Rows = { count: 0, row: () => el('div') }
  let shown: { first: number; last: number } = { first: 0, last: -1 }
  let waiting = false

  function draw(force = false): void {
    waiting = false
    const first = Math.max(0, Math.floor(box.scrollTop / heightPx) - AROUND)
    const last = Math.min(rows.count - 1, Math.ceil((box.scrollTop + box.clientHeight) / heightPx) + AROUND)
    if (!force && first === shown.first && last === shown.last) return
    shown = { first, last }
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.at : undefined
    const keeps = focused !== undefined && box.contains(document.activeElement)
    const elements: HTMLElement[] = []
    for (let at = first; at <= last; at++) {
      const row = rows.row(at)
      row.dataset.at = String(at)
      row.style.top = `${at * heightPx}px`
      elements.push(row)
    }
    spacer.replaceChildren(...elements)
    if (keeps) elements.find(row => row.dataset.at === focused)?.focus({ preventScroll: true })
  }

  function to(at: number): void {
    const wanted = Math.min(Math.max(at, 0), rows.count - 1)
    const top = wanted * heightPx
    if (top < box.scrollTop) box.scrollTop = top
    else if (top + 2 * heightPx > box.scrollTop + box.clientHeight)
      box.scrollTop = top + 2 * heightPx - box.clientHeight
    draw(true)
    spacer.querySelector<HTMLElement>(`[data-at="${wanted}"]`)?.focus({ preventScroll: true })
  }

  box.addEventListener(
    'scroll',
    () => {
      if (waiting) return
      waiting = true
      requestAnimationFrame(() => draw())
    },
    { passive: true },
  )
  box.addEventListener('keydown', event => {
    const at = Number((event.target as HTMLElement).dataset.at ?? Number.NaN)
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }[event.key]
    const wanted =
      event.key === 'Home' ? 0 : event.key === 'End' ? rows.count - 1 : by === undefined ? undefined : at + by
    if (wanted === undefined || Number.isNaN(at)) return
    event.preventDefault()
    to(wanted)
  })
  new ResizeObserver(() => draw()).observe(box)

  return {
    show(next: Rows): void {
      rows = next
      spacer.style.height = `${next.count * heightPx}px`
      draw(true)
    },
  }
}

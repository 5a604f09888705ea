import { html } from 'hono/html'
import { type DiffLine, lineDiff } from './line-diff.ts'
import type { Html } from './page.ts'

/** One row of two texts beside each other; a line without a counterpart stands alone. */
export interface DiffRow {
  before: string | undefined
  after: string | undefined
  same: boolean
}

/** Lines that went and lines that came at the same place stand beside each other. */
export function diffRows(lines: readonly DiffLine[]): DiffRow[] {
  const rows: DiffRow[] = []
  let gone: string[] = []
  let added: string[] = []
  const settle = () => {
    for (let at = 0; at < Math.max(gone.length, added.length); at++)
      rows.push({ before: gone[at], after: added[at], same: false })
    gone = []
    added = []
  }
  for (const { kind, text } of lines) {
    if (kind === 'gone') gone.push(text)
    else if (kind === 'added') added.push(text)
    else {
      settle()
      rows.push({ before: text, after: text, same: true })
    }
  }
  settle()
  return rows
}

const AROUND = 3

/** The changes of a text with some lines around each, wrapped so that every word of them is seen. */
export function sideBySide([nameBefore, before]: [string, string], [nameAfter, after]: [string, string]): Html {
  const rows = diffRows(lineDiff(before, after))
  if (rows.every(({ same }) => same)) return html`<p class="hint">They are the same.</p>`
  const near = (at: number) => rows.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ same }) => !same)
  let omitted = false
  const shown = rows.flatMap((row, at) => {
    if (near(at)) {
      omitted = false
      return [row]
    }
    if (omitted) return []
    omitted = true
    return [undefined]
  })
  const cell = (text: string | undefined, look: string) =>
    html`<td class="${text === undefined ? 'none' : look}">${text === undefined ? '' : html`<code>${text}</code>`}</td>`
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Differences"><table class="beside">
<caption class="unseen">Differences</caption><thead><tr><th scope="col">${nameBefore}</th><th scope="col">${nameAfter}</th></tr></thead>
<tbody>${shown.map(row =>
    row === undefined
      ? html`<tr class="omitted"><td colspan="2">…</td></tr>`
      : html`<tr>${cell(row.before, row.same ? '' : 'gone')}${cell(row.after, row.same ? '' : 'added')}</tr>`,
  )}</tbody></table></div>`
}

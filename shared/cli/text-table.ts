import { visible } from '../log/log.ts'

/**
 * Rows as columns of equal width; numbers, given as text, are the caller's to format. The head may be marked. A cell may hold what a tenant chose, such as
 * the name of a model: it stays in its line.
 */
export function toTable(
  head: readonly string[],
  given: readonly (readonly string[])[],
  mark: (head: string) => string = text => text,
): string {
  const rows = given.map(row => row.map(visible))
  const widths = head.map((one, column) => Math.max(one.length, ...rows.map(row => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [mark(line(head)), ...rows.map(line)].map(text => text + '\n').join('')
}

/** Dollars as a person reads them: no exponent, at most 9 decimals. */
export function usdText(usd: number | null): string {
  return usd === null ? 'unknown' : usd.toFixed(9).replace(/\.?0+$/, '')
}

/** A count with its noun, which is in the singular for one. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Rows as columns of equal width; numbers, given as text, are the caller's to format. */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map(row => row[column]?.length ?? 0)))
  return all
    .map(
      row =>
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd() + '\n',
    )
    .join('')
}

/** Dollars as a person reads them: no exponent, at most 9 decimals. */
export function usdText(usd: number | null): string {
  return usd === null ? 'unknown' : usd.toFixed(9).replace(/\.?0+$/, '')
}

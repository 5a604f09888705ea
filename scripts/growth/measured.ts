import { availableParallelism, cpus, loadavg } from 'node:os'

/** What was measured of one operation at one size, in milliseconds unless it says otherwise. */
export type Figure = [operation: string, value: number, unit?: 's' | 'MiB']

/** What one operation cost at each size; the sizes are the same for all. */
export interface Growth {
  title: string
  sizes: number[]
  /** Bytes of the file for each row, with all of its indexes. */
  bytesPerRow: number[]
  operations: { name: string; unit: 'ms' | 's' | 'MiB'; values: number[] }[]
}

export function note(growth: Growth, figures: readonly Figure[]): void {
  for (const [name, value, unit = 'ms'] of figures) {
    const known = growth.operations.find(one => one.name === name)
    if (known) known.values.push(value)
    else growth.operations.push({ name, unit, values: [value] })
  }
}

/** The median of `times` tries, after a tenth of them that do not count. */
export async function medianMs(times: number, act: (at: number) => Promise<unknown>): Promise<number> {
  const took: number[] = []
  for (let at = -Math.ceil(times / 10); at < times; at++) {
    const began = performance.now()
    await act(at)
    if (at >= 0) took.push(performance.now() - began)
  }
  return took.sort((a, b) => a - b)[took.length >> 1] ?? Number.NaN
}

export function machine(): string {
  const load = (loadavg()[0] ?? 0).toFixed(2)
  return `node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), load average ${load} at the end`
}

export function table({ sizes, bytesPerRow, operations }: Growth): string {
  const shown = (value: number) => (value >= 10 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(2))
  const cells = (name: string, values: string[]) => `| ${[name, ...values].join(' | ')} |`
  return [
    cells(
      'operation',
      sizes.map(size => size.toLocaleString('en-US')),
    ),
    cells(
      '---',
      sizes.map(() => '---:'),
    ),
    cells(
      'the file, bytes for each',
      bytesPerRow.map(bytes => Math.round(bytes).toLocaleString('en-US')),
    ),
    ...operations.map(({ name, unit, values }) =>
      cells(
        `${name}, ${unit}`,
        values.map(value => shown(value)),
      ),
    ),
  ].join('\n')
}

import { availableParallelism, cpus, loadavg } from 'node:os'

/** What one operation cost at each size, in milliseconds; the sizes are the same for all. */
export interface Growth {
  title: string
  sizes: number[]
  /** Bytes of the file for each row, with all of its indexes. */
  bytesPerRow: number[]
  operations: { name: string; ms: number[] }[]
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
  const shown = (ms: number) => (ms >= 10 ? ms.toFixed(0) : ms >= 1 ? ms.toFixed(1) : ms.toFixed(2))
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
    ...operations.map(({ name, ms }) =>
      cells(
        `${name}, ms`,
        ms.map(value => shown(value)),
      ),
    ),
  ].join('\n')
}

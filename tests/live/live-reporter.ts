import { readFileSync } from 'node:fs'
import type { Reporter, TestCase } from 'vitest/node'

/** Prints what was found, as a table to keep in docs/isolation.md. */
export class LiveReporter implements Reporter {
  readonly #rows: string[] = []

  onTestCaseResult(test: TestCase): void {
    const { state } = test.result()
    const seconds = ((test.diagnostic()?.duration ?? 0) / 1000).toFixed(1)
    const row = `| ${test.name.replaceAll('|', '/')} | ${state} | ${seconds} s |`
    this.#rows.push(row)
    // A run takes many minutes where a kernel is emulated, and may be stopped before its end. Checks that a filter leaves out say nothing.
    if (state !== 'skipped') console.log(row)
  }

  onTestRunEnd(_modules: unknown, unhandled: readonly unknown[], reason: string): void {
    const facts = process.env.WAYBILL_LIVE_FACTS
    const lines = [
      ...(facts === undefined ? [] : readFileSync(facts, 'utf8').trimEnd().split('\n')),
      '',
      '| check | result | time |',
      '|---|---|---|',
      ...this.#rows,
      '',
      `The run ${reason}${unhandled.length > 0 ? `, with ${unhandled.length} errors outside of checks` : ''}.`,
    ]
    setImmediate(() => console.log(lines.join('\n')))
  }
}

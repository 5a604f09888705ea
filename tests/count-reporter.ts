import type { Reporter, TestCase } from 'vitest/node'

/** Prints `N passed, N failed` as the last line of a run, for whoever reads only that. */
export class CountReporter implements Reporter {
  #passed = 0
  #failed = 0
  #skipped = 0

  onTestCaseResult(test: TestCase): void {
    const { state } = test.result()
    if (state === 'passed') this.#passed++
    else if (state === 'failed') this.#failed++
    else this.#skipped++
  }

  onTestRunEnd(modules: readonly { errors(): unknown[] }[], unhandled: readonly unknown[]): void {
    // A file that does not load and an error outside any test are failures too.
    this.#failed += modules.filter(module => module.errors().length > 0).length + unhandled.length
    const skipped = this.#skipped > 0 ? `, ${this.#skipped} skipped` : ''
    setImmediate(() => console.log(`${this.#passed} passed, ${this.#failed} failed${skipped}`))
  }
}

import type { Reporter, TestCase } from 'vitest/node'

const HOST = / on (in-process|a Node socket|workerd) > /

/**
 * Prints `N passed, N failed` as the last line of a run, for whoever reads only that, and how many tests of the contract held on each
 * host: a number that differs is a failure, since it is one suite.
 */
export class CountReporter implements Reporter {
  #passed = 0
  #failed = 0
  #skipped = 0
  readonly #hosts = new Map<string, number>()

  onTestCaseResult(test: TestCase): void {
    const { state } = test.result()
    const host = state === 'skipped' ? undefined : HOST.exec(test.fullName)?.[1]
    if (host !== undefined) this.#hosts.set(host, (this.#hosts.get(host) ?? 0) + (state === 'passed' ? 1 : 0))
    if (state === 'passed') this.#passed++
    else if (state === 'failed') this.#failed++
    else this.#skipped++
  }

  onTestRunEnd(modules: readonly { errors(): unknown[] }[], unhandled: readonly unknown[]): void {
    // A file that does not load and an error outside any test are failures too.
    this.#failed += modules.filter(module => module.errors().length > 0).length + unhandled.length
    if (this.#hosts.size > 0) {
      const counts = [...this.#hosts.values()]
      if (new Set(counts).size > 1) {
        this.#failed++
        process.exitCode = 1
      }
      const hosts = [...this.#hosts].map(([host, count]) => `${count} ${host}`)
      setImmediate(() => console.log(`the contract held: ${hosts.join(', ')}`))
    }
    const skipped = this.#skipped > 0 ? `, ${this.#skipped} skipped` : ''
    setImmediate(() => console.log(`${this.#passed} passed, ${this.#failed} failed${skipped}`))
  }
}

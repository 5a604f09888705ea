import { writeFileSync } from 'node:fs'
import type { Reporter, TestCase } from 'vitest/node'
import { isSliced, passedBefore } from './passed-files.ts'
import { isFull } from './slice.ts'

const HOST = / on (in-process|a Node socket|workerd) > /

interface Suite {
  errors(): unknown[]
}
interface Module extends Suite {
  moduleId: string
  relativeModuleId: string
  ok(): boolean
  children: { allSuites(): Iterable<Suite>; allTests(state: 'skipped'): Iterable<unknown> }
}

/**
 * Prints `N passed, N failed` as the last line of a run, and how many tests of the contract held on each host: a number that differs is
 * a failure, since it is one suite. A file that does not load, a hook that fails and an error outside any test are failures too.
 */
export class CountReporter implements Reporter {
  readonly #later: readonly string[]
  #passed = 0
  #failed = 0
  #skipped = 0
  readonly #hosts = new Map<string, number>()

  /** `later`: files that this run leaves to a full one. */
  constructor(later: readonly string[] = []) {
    this.#later = later
  }

  onTestCaseResult(test: TestCase): void {
    const { state } = test.result()
    const host = state === 'skipped' ? undefined : HOST.exec(test.fullName)?.[1]
    if (host !== undefined) this.#hosts.set(host, (this.#hosts.get(host) ?? 0) + (state === 'passed' ? 1 : 0))
    if (state === 'passed') this.#passed++
    else if (state === 'failed') this.#failed++
    else this.#skipped++
  }

  onTestRunEnd(modules: readonly Module[], unhandled: readonly unknown[], reason: string): void {
    const broken = modules.flatMap(module => [module, ...module.children.allSuites()])
    this.#failed += broken.filter(suite => suite.errors().length > 0).length + unhandled.length
    if (this.#hosts.size > 0) {
      const counts = [...this.#hosts.values()]
      if (new Set(counts).size > 1) {
        this.#failed++
        process.exitCode = 1
      }
      const hosts = [...this.#hosts].map(([host, count]) => `${count} ${host}`)
      setImmediate(() => console.log(`the contract held: ${hosts.join(', ')}`))
    }
    const list = process.env.WAYBILL_TEST_PASSED
    if (list !== undefined)
      writeFileSync(
        list,
        modules
          .filter(isDone)
          .map(done => `${done.relativeModuleId}\n`)
          .join(''),
      )
    const before = passedBefore().length
    if (before > 0) setImmediate(() => console.log(`${before} files passed before and were left out`))
    const seed = process.env.WAYBILL_TEST_SEED
    if (!isFull && seed !== undefined) {
      const line = `slices of seed ${seed}: WAYBILL_TEST_SEED=${seed} repeats them, npm run test:full does every case`
      setImmediate(() => console.log(line))
      if (this.#later.length > 0) setImmediate(() => console.log(`left to a full run: ${this.#later.join(', ')}`))
    }
    // Whatever else made the run fail must not be told as "0 failed".
    if (reason !== 'passed' && this.#failed === 0) this.#failed = 1
    const skipped = this.#skipped > 0 ? `, ${this.#skipped} skipped` : ''
    setImmediate(() => console.log(`${this.#passed} passed, ${this.#failed} failed${skipped}`))
  }
}

/** Every test of it has passed, and a full run has no more of them. */
function isDone(module: Module): boolean {
  return module.ok() && [...module.children.allTests('skipped')].length === 0 && !isSliced(module.moduleId)
}

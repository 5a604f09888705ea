import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const module = new URL('./small-start.ts', import.meta.url).href

/** Nanoseconds of processor time that a tick takes, the least of several rounds: before and after what loading left is given back. */
const program = `
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { smallStart } from ${JSON.stringify(module)}
// Some systems count processor time in steps of 10 ms.
const TICKS = 400_000
async function round() {
  const used = () => Object.values(process.threadCpuUsage()).reduce((sum, micros) => sum + micros)
  const before = used()
  for (let i = 0; i < TICKS; i += 100) {
    for (let j = 0; j < 100; j++) process.nextTick(() => undefined)
    await new Promise(resolve => setImmediate(resolve))
  }
  return ((used() - before) * 1000) / TICKS
}
async function least() {
  const rounds = []
  for (let i = 0; i < 5; i++) rounds.push(await round())
  return Math.min(...rounds)
}
await smallStart(async () => undefined, { staysSmall: false })
const first = await least()
const late = setTimeout(() => process.exit(2), 10_000)
await new Promise(resolve => {
  const watch = new PerformanceObserver(list => {
    if (list.getEntries().some(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR)) resolve()
  })
  watch.observe({ entryTypes: ['gc'] })
})
clearTimeout(late)
// As an engine that was idle for a while does by itself.
gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
// Code is compiled again beside it, which takes its time on a busy machine.
let then = await round()
for (const until = Date.now() + 8000; then > first * 1.7 && Date.now() < until; ) then = Math.min(then, await round())
console.log(JSON.stringify({ first, then }))
`

test('a tick takes as long after the start as during it', { timeout: 30_000 }, async () => {
  const args = ['--expose-gc', '--input-type=module', '--eval', program]
  const { stdout, stderr } = await run(process.execPath, args)
  // An engine says there which flag it does not know.
  expect(stderr).toBe('')
  const { first, then } = JSON.parse(stdout) as { first: number; then: number }
  // 3.6 times as long where the shape of a tick was forgotten.
  expect(then / first).toBeLessThan(1.8)
})

const busy = `
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { smallStart } from ${JSON.stringify(module)}
let collected = 0
new PerformanceObserver(list => {
  collected += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length
}).observe({ entryTypes: ['gc'] })
await smallStart(async () => undefined, { staysSmall: false })
const wait = ms => new Promise(resolve => setTimeout(resolve, ms))
for (const until = Date.now() + 2500; Date.now() < until; await wait(1)) {
  for (const then = performance.now() + 2; performance.now() < then; );
}
const whileBusy = collected
for (const until = Date.now() + 10_000; collected === 0 && Date.now() < until; ) await wait(50)
console.log(JSON.stringify({ whileBusy, collected }))
`

test('what loading left is given back when there is nothing else to do', { timeout: 30_000 }, async () => {
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', busy])
  expect(JSON.parse(stdout)).toEqual({ whileBusy: 0, collected: expect.toSatisfy((count: number) => count > 0) })
})

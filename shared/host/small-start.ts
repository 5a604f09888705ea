import { executionAsyncResource } from 'node:async_hooks'
import { PerformanceObserver, performance } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes of the space for young objects beyond which it is held. A larger one saves no time that could be measured, and 4 MiB take 5 MB more. */
const YOUNG_BYTES = 1024 * 1024
/** By then the caller that waited for the service to listen has had the first answer. */
const SETTLE_MS = 1000
/**
 * Whether the engine can count buffers as a part of all memory, which then grows by its own rule. Otherwise every 64 MB of them, which are the bodies
 * of seventy requests of an agent, begin a collection of everything.
 */
const COUNTS_BUFFERS = Number.parseFloat(process.versions.v8) >= 13.6
/** The share of its time in which a process does something, when it has calls to answer. */
const BUSY = 0.1

/**
 * Kept for its shape. An idle engine, and the collection below, forget each shape of which no object is left, and a literal with computed
 * names whose shape was forgotten is built the slow way for good. Node's record of a tick is one, and a call makes many (measured:
 * a tick took 660 ns after it instead of 180).
 */
const ticks: object[] = []
let settling: ReturnType<typeof setTimeout> | undefined

/**
 * Holds the memory of a service to what it needs. Loading makes a lot of garbage at once, to which the engine answers by growing its
 * space for young objects and keeping it: held at its first size until the service listens, it saves 25 MB of idle memory (2 is the
 * engine's own factor).
 *
 * What loading left is given back a second later, or when the calls allow it. `staysSmall`: afterwards old garbage is collected at an eighth more instead of
 * when the machine's memory asks for it. Under `npm run bench -- steps` the runtime holds 145 to 155 MB instead of 300, for a tenth
 * more processor time; `--optimize-for-size`, which throws compiled code away as well, takes two thirds more. Not for a process that
 * others wait for at every call: a router would pause. Its old garbage is collected when it doubled: the engine's own rule, which weighs
 * the time that a collection takes, does it at 8 MB more, and each is 20 to 40 ms in which calls and collector share the processors.
 */
export async function smallStart<T>(start: () => Promise<T>, { staysSmall = true } = {}): Promise<T> {
  setFlagsFromString('--semi-space-growth-factor=1')
  keepTick()
  try {
    return await start()
  } finally {
    clearTimeout(settling)
    settleLater(staysSmall)
  }
}

/** A collection of everything takes up to half a second of the calls that come meanwhile: a process that stays fast waits until there are few. */
function settleLater(staysSmall: boolean): void {
  const before = performance.eventLoopUtilization()
  settling = setTimeout(() => {
    if (staysSmall || performance.eventLoopUtilization(before).utilization < BUSY) return settle(staysSmall)
    grow(staysSmall)
    settleLater(staysSmall)
  }, SETTLE_MS).unref()
}

/** How the heap may grow once the service listens. */
function grow(staysSmall: boolean): void {
  setFlagsFromString('--semi-space-growth-factor=2')
  setFlagsFromString(`--heap-growing-percent=${staysSmall ? 12 : 100}`)
  if (!staysSmall && COUNTS_BUFFERS) setFlagsFromString('--external-memory-accounted-in-global-limit')
}

function keepTick(): void {
  process.nextTick(() => ticks.push(executionAsyncResource()))
}

function settle(staysSmall: boolean): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (how: object) => void
  setFlagsFromString('--no-expose-gc')
  // Once more: its shape may have changed since, while the engine learned what its members hold. As long as it waits, it is alive.
  keepTick()
  // Only the last resort gives the space for young objects back.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  grow(staysSmall)
  if (!staysSmall) return
  const watch = new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find(space => space.space_name === 'new_space')
    if (young && young.space_size < YOUNG_BYTES) return
    setFlagsFromString('--semi-space-growth-factor=1')
    watch.disconnect()
  })
  watch.observe({ entryTypes: ['gc'] })
}

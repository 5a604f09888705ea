import { dbFault, isStoreUnavailable } from '../../shared/sql/db-fault.ts'
import { type Clock, setBacks } from '../../shared/time/clock.ts'
import { type ClaimLoop, claimLoop, GIVE_BACK_MS } from './claim-loop.ts'
import type { EngineDeps } from './engine-deps.ts'
import { type Execution, type ExecutionDeps, execution } from './execution.ts'
import { Suspended } from './failure.ts'
import { journalWriter } from './journal/journal-writer.ts'
import { LeaseLostError } from './journal/run-journal.ts'
import { type Claimed, type LeaseStore, leaseStore } from './lease-store.ts'
import { type RunWatchers, runWatchers } from './run-watchers.ts'

const MOST_SEIZURES = 5
/** So long a call goes on at most of a run that another process has ended. */
const LOOK_MS = 1000

type Ending = { code: 'cancelled'; reason?: string } | { code: 'agent_deleted' }

export type Engine = ReturnType<typeof createEngine>

/** Owns runs, at most `maxConcurrent` at a time, and executes them. Everything it knows about them is in the store. */
export function createEngine(deps: EngineDeps) {
  const { db, clock, log, owner, nodeId, limits, metrics } = deps
  const leases = leaseStore(db, deps.records, deps.sha256, deps.takenHere !== undefined)
  /** When the first of all runs was due, as the last commit that let one go saw it. */
  let firstDueMs: number | undefined
  const writer = journalWriter(db, {
    dayOf: deps.dayOf,
    extraStatements: deps.extraStatements,
    records: deps.records,
    monotonic: clock.monotonic,
    appendSeconds: metrics.appendSeconds,
    torn: runIds => setAsideTorn(deps, runIds),
    firstDue: {
      statement: () => leases.firstDue(nodeId()),
      seen(dueMs) {
        firstDueMs = dueMs
      },
    },
  })
  const executions = new Map<string, Execution>()
  const room = runWatchers(db, id => executions.has(id))
  const watchers = deps.kept ? telling(room, deps.kept) : room
  let draining = false
  let owned = false
  const timers: ReturnType<typeof setInterval>[] = []
  let keeping: ReturnType<typeof keepLeases> | undefined
  const wasSetBack = setBacks(clock)

  const drained = new AbortController()
  const within = { ...deps, leases, writer, watchers, draining: () => draining, drained: drained.signal }
  const claimed = async (ids: readonly string[]) => {
    owned = true
    await deps.takenHere?.(ids)
  }
  const ends = runEnds(within, executions, { claimed, wake: () => wake() })
  const looks = claimLoop(deps, leases, {
    count: () => executions.size,
    ids: () => [...executions.keys(), ...ends.ids()],
    claimed,
    start: executionStart(within, executions, { released: () => looks.released(firstDueMs), wake: () => wake() }),
  })
  const { wake } = looks
  const keepLeases = leaseRenewal(deps, leases, executions)

  async function sweep(isFirst = false): Promise<void> {
    await sweepLeases(deps, leases, () => isFirst || wasSetBack())
    wake()
  }

  return {
    watchers,
    wake,
    claimBeside: looks.beside,
    /** First sweep, then the timers. Without `sweeps` only what was claimed is renewed: the host decides when to look. */
    async start({ sweeps = true }: { sweeps?: boolean } = {}): Promise<void> {
      keeping = keepLeases()
      if (!sweeps) return setAside(deps, leases)
      timers.push(setInterval(() => void leaveEnded(deps, leases, executions), LOOK_MS))
      await sweep(true)
      timers.push(setInterval(() => void sweep(), limits.recoveryMs))
    },

    idle: (ms: number) => whenIdle(clock, executions, looks, ms),

    end: ends.end,

    get active() {
      return executions.size
    },

    /** It claims nothing now: every worker has a run, or it drains. */
    get busy() {
      return draining || executions.size >= limits.maxConcurrent
    },

    drain(): void {
      draining = true
      drained.abort(new Suspended({ on: 'drain' }))
      looks.stop()
      keeping?.stop()
      for (const timer of timers.splice(0)) clearInterval(timer)
    },

    /** Claims nothing more and lets open steps finish, for up to `ms`. What is written and read goes on meanwhile. */
    async settled(ms: number): Promise<void> {
      this.drain()
      await looks.current
      const keeping = keepLeases()
      await whenDone(executions, ms)
      keeping.stop()
    },

    /** Lets open steps finish for up to `ms`, then leaves them; their runs go on wherever they are claimed next. */
    async close(ms: number): Promise<void> {
      await this.settled(ms)
      const left = [...executions.values()]
      for (const run of left) run.abandon()
      writer.waitNoMore()
      await Promise.allSettled(left.map(run => run.done))
      await writer.close()
      watchers.close()
      // A store in trouble must not prevent a stop: the next process sees that this owner is gone, or waits for its leases to end.
      if (owned) await leases.handOver(owner).catch((error: unknown) => log.warn('runs could not be let go', { error }))
    },
  }
}

/** Executes a run that was claimed. One that stops without a result is given back. */
function executionStart(
  deps: ExecutionDeps,
  executions: Map<string, Execution>,
  { released, wake }: { released: () => void; wake: () => void },
): (run: Claimed) => void {
  const { leases, log, metrics, draining } = deps

  /** A moment later, so that a store in trouble is not asked again and again, and until it is there. */
  function giveBackSoon(run: Claimed, counts: 0 | 1): void {
    setTimeout(() => {
      if (draining()) return
      leases.giveBack(run.id, run.epoch, counts).then(wake, () => giveBackSoon(run, counts))
    }, GIVE_BACK_MS)
  }

  return run => {
    if (run.recoveries > 0) metrics.recoveries.add(1)
    const before = executions.get(run.id)
    // Taken from this process without a word to it, as when its agent was deleted.
    before?.abandon()
    const one = execution(deps, run, run.ending === undefined ? {} : { open: before?.open })
    executions.set(run.id, one)
    const leave = () => {
      if (executions.get(run.id) === one) executions.delete(run.id)
    }
    one.done.then(
      () => {
        leave()
        released()
      },
      error => {
        if (error instanceof LeaseLostError) metrics.leaseLost.add(1)
        else {
          log.error('a run stopped without a result and is taken up again', { error, runId: run.id })
          giveBackSoon(run, isStoreUnavailable(error) ? 0 : 1)
        }
        leave()
        wake()
      },
    )
  }
}

interface EndHands {
  /** These runs are this process's from now on. */
  claimed: (ids: readonly string[]) => Promise<void>
  wake: () => void
}

/** Ends runs from outside, each by one caller at a time. */
function runEnds(deps: ExecutionDeps, executions: ReadonlyMap<string, Execution>, { claimed, wake }: EndHands) {
  const { leases, owner, nodeId, clock } = deps
  const endings = new Map<string, Promise<boolean>>()

  /** Another process may end the run at the same moment: the one that took it last writes the end, and this one looks again. */
  async function endNow(id: string, ending: Ending): Promise<boolean> {
    for (let left = MOST_SEIZURES; ; left--) {
      const here = executions.get(id)
      const nowMs = clock.now().getTime()
      const run = await leases.seize(id, { owner, nodeId: nodeId(), nowMs, ttlMs: 5000 })
      if (!run) return false
      await claimed([id])
      here?.abandon()
      try {
        const reason = 'reason' in ending ? ending.reason : undefined
        await execution(deps, { ...run, ending: ending.code }, { reason, open: here?.open }).done
        return true
      } catch (error) {
        if (!(error instanceof LeaseLostError) || left === 0) throw error
      }
    }
  }

  return {
    /** Runs that are being ended. */
    ids: () => endings.keys(),

    /**
     * Takes a run from its owner, so that the owner can commit nothing any more, and writes the end as its owner. False: it had
     * ended before, or another process was ending it.
     */
    async end(id: string, ending: Ending): Promise<boolean> {
      const other = endings.get(id)
      // Two that take it from each other would both be fenced, and each would report an internal fault.
      if (other) return other.then(() => false)
      const own = endNow(id, ending).finally(() => {
        endings.delete(id)
        // Its caller is due now.
        wake()
      })
      endings.set(id, own)
      return own
    },
  }
}

/** What no event reports: runs that are due by the clock, owners that are gone, runs that end their process. */
async function sweepLeases(deps: EngineDeps, leases: LeaseStore, isClockDoubtful: () => boolean): Promise<void> {
  const { clock, log, metrics } = deps
  const started = clock.monotonic()
  try {
    const nowMs = clock.now().getTime()
    await leases.queueByClock(nowMs)
    if (isClockDoubtful()) await leases.waitByClock(nowMs)
    await releaseGone(deps, leases)
    await setAside(deps, leases)
  } catch (error) {
    log.error('the sweep failed', { error })
  }
  metrics.sweepSeconds.observe((clock.monotonic() - started) / 1000)
}

/** Cuts the calls of runs that another process has ended, as by a cancellation there, and counts what they have used. */
async function leaveEnded(
  { log, cutElsewhere }: Pick<EngineDeps, 'log' | 'cutElsewhere'>,
  leases: Pick<LeaseStore, 'endedElsewhere'>,
  executions: ReadonlyMap<string, Execution>,
): Promise<void> {
  const calling = [...executions].filter(([, { abandoned, open }]) => !abandoned && open.size > 0)
  if (calling.length === 0) return
  try {
    for (const id of await leases.endedElsewhere(calling.map(([id, { epoch }]) => [id, epoch] as const))) {
      const one = executions.get(id)
      if (one === undefined || one.abandoned) continue
      const readings = [...one.open.values()]
      one.abandon()
      for (const reading of readings) await cutElsewhere(id, await reading())
    }
  } catch (error) {
    log.warn('runs that were ended elsewhere were not looked for', { error })
  }
}

/** Renews leases until it is stopped. An owner that cannot stops its runs before their leases end, and never works beside the next one. */
function leaseRenewal(
  { clock, log, owner, limits }: EngineDeps,
  leases: LeaseStore,
  executions: ReadonlyMap<string, Execution>,
): () => { stop(): void } {
  const { leaseMs } = limits
  let renewedAt = clock.monotonic()
  let isWell = true

  /** Whether it could. */
  async function renew(): Promise<boolean> {
    const beganAt = clock.monotonic()
    try {
      const terms = { owner, nowMs: clock.now().getTime(), ttlMs: leaseMs }
      const lost = executions.size === 0 ? [] : await leases.renew(terms, [...executions.keys()])
      // One that is answered late says nothing newer than one after it.
      renewedAt = Math.max(renewedAt, beganAt)
      for (const id of lost) executions.get(id)?.abandon()
      isWell = true
    } catch (error) {
      if (isWell) log.warn('leases cannot be renewed, which is tried again', { error, fault: dbFault(error) })
      isWell = false
    }
    return isWell
  }

  function stopInTime(): void {
    const before = clock.monotonic() - leaseMs * 0.8
    for (const run of executions.values()) if (Math.max(renewedAt, run.claimedAt) < before) run.abandon()
  }

  return () => {
    let soon: ReturnType<typeof setTimeout> | undefined
    let stopped = false
    /** A store that is back has runs that went on at once, and their leases are old. */
    async function look(): Promise<void> {
      clearTimeout(soon)
      if (!(await renew()) && !stopped) soon = setTimeout(() => void look(), Math.min(GIVE_BACK_MS, leaseMs / 10))
    }
    const timers = [setInterval(() => void look(), leaseMs / 3), setInterval(stopInTime, leaseMs / 10)]
    return {
      stop() {
        stopped = true
        for (const timer of timers) clearInterval(timer)
        clearTimeout(soon)
      },
    }
  }
}

/** What processes held that are certainly gone is due at once. */
async function releaseGone({ isGone, owner, log }: EngineDeps, leases: LeaseStore): Promise<void> {
  if (!isGone) return
  for (const name of await leases.owners()) {
    if (name === owner || !isGone(name)) continue
    const released = await leases.release(name)
    if (released > 0) log.info('runs of a process that is gone are taken over', { runs: released, owner: name })
  }
}

/** Sets aside what ended its process whenever it was taken up. */
async function setAside(deps: EngineDeps, leases: LeaseStore): Promise<void> {
  const { clock, log, metrics, nodeId, extraWhenSetAside = () => [] } = deps
  for (const { id, agentName } of await leases.setAside(nodeId(), clock.now().getTime(), extraWhenSetAside)) {
    metrics.setAside.add(1)
    log.error(
      'a run whose process ended whenever it was taken up is set aside: send it the signal "resume", or cancel it',
      {
        runId: id,
        agentName,
      },
    )
    deps.kept?.(true)
  }
}

/** The commit that found it set them aside. What their steps did since is known here alone, and would be done and paid again. */
function setAsideTorn(deps: EngineDeps, runIds: readonly string[]): void {
  const { db, log, metrics, extraWhenSetAside = () => [] } = deps
  metrics.setAside.add(runIds.length)
  log.error(
    'the store has lost what it had confirmed: it was restored, or its server lost its last commits; runs that it cuts short are set aside: send each the signal "resume" to do again what was lost, or cancel it',
    { runIds },
  )
  const report = extraWhenSetAside(runIds)
  if (report.length > 0)
    void db.write(report).catch((error: unknown) => log.warn('runs were set aside and not reported', { error }))
  deps.kept?.(true)
}

/** Resolves when nothing is executed here and nothing is due within what is left of `ms`, at the latest after `ms`. */
async function whenIdle(
  clock: Clock,
  executions: ReadonlyMap<string, Execution>,
  looks: ClaimLoop,
  ms: number,
): Promise<void> {
  const until = clock.monotonic() + ms
  let late: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<void>(resolve => {
    late = setTimeout(resolve, ms)
  })
  while (clock.monotonic() < until && !looks.stopped) {
    const { current, nextAt } = looks
    if (current) await Promise.race([current, over])
    else if (executions.size > 0) {
      const ends = [...executions.values()].map(run => run.done.catch(() => undefined))
      // A run that ended wakes the engine a few promises later, so that what it made due is claimed before anyone looks here again.
      await Promise.race([Promise.race(ends).then(() => new Promise<void>(resolve => setTimeout(resolve, 0))), over])
    } else if (nextAt !== undefined && nextAt < until)
      await Promise.race([new Promise(resolve => setTimeout(resolve, nextAt - clock.monotonic())), over])
    else break
  }
  clearTimeout(late)
}

/** Resolves when what is executed here has ended, at the latest after `ms`. */
async function whenDone(executions: ReadonlyMap<string, Execution>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise(resolve => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([Promise.allSettled([...executions.values()].map(run => run.done)), late])
  clearTimeout(timer)
}

/** The same set, with a second receiver of its events. */
function telling(room: RunWatchers, heard: (soon: boolean) => void): RunWatchers {
  return {
    ...room,
    kept(runId, entries) {
      room.kept(runId, entries)
      heard(entries.at(-1)?.kind === 'step_waiting')
    },
    ended(runId, seq) {
      room.ended(runId, seq)
      heard(true)
    },
    get watched() {
      return room.watched
    },
  }
}

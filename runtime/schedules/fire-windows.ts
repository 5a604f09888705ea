import type { InStatement } from '@libsql/client/web'
import type { Log } from '../../shared/log/log.ts'
import type { Counter, Histogram } from '../../shared/metrics/metrics.ts'
import { dbFault } from '../../shared/sql/db-fault.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { redactedInput } from '../privacy/redaction.ts'
import { placeholderInput, type SealInput } from '../runs/sealed-input.ts'
import type { RunCandidate } from '../runs/service.ts'
import type { NewRun, RunStore } from '../runs/store.ts'
import { type Claim, type ClaimedWindow, claimStatements } from './claim.ts'
import { decideWindows, MOST_MISSED } from './decide-windows.ts'
import { type DueSchedule, type ScheduleStore, sealInputOf } from './store.ts'
import { windowsUpTo } from './windows.ts'
import type { Zones } from './zones.ts'

export interface ScheduledAgent {
  agentId: string
  versionId: string
  manifest: Manifest
  /** Where its prompt is sealed to. */
  sealed?: { pool: string } | undefined
}

export interface Refused {
  tenantId: string
  scheduleId: string
  agentName: string
  reason: string
  windowMs: number
  /** The revision on which the refusal stands: a statement about it must hold that condition. */
  revision: number
}

export interface WindowFirerDeps {
  store: Pick<ScheduleStore, 'due' | 'released'>
  runs: Pick<RunStore, 'createForWindows'>
  zones: Pick<Zones, 'firingsOf'>
  /** The current version of an agent of that tenant. */
  findAgent: (tenantId: string, name: string) => Promise<ScheduledAgent | undefined>
  /** What keeps one more run within its agent's budget, for the transaction that makes it; undefined: there is no room. */
  admits: (
    candidate: RunCandidate,
    runId: string,
  ) => Promise<{ statements: InStatement[]; exceeded: boolean } | undefined>
  /** Seals the input where only a pool of nodes may read it. */
  sealInput: SealInput
  /** The calendar day that a run counts for. */
  dayOf: (ms: number) => string
  /** What else is written when a window is refused. */
  refused: (refused: Refused, nowMs: number) => InStatement[]
  now: () => Date
  newId: () => string
  fires: Counter
  lagSeconds: Histogram
  log: Log
}

/** Schedules in one transaction. */
const BATCH = 200

/** Windows after which a transaction takes no further schedule: one alone may have a hundred to catch up. */
const MOST_WINDOWS = 200

/** Of one call; what is left is due again at once. */
const MOST_ROUNDS = 50

interface Decided {
  claim: Claim
  runs: NewRun[]
  refused: Refused[]
  /** The input, which was readable until now. */
  seals: InStatement[]
}

/**
 * Starts what is due now. Windows before `missedBeforeMs` count as missed: no process was running at their time. However many
 * processes call it at once, each window gets one run (see `claimStatements`).
 */
export function windowFirer(deps: WindowFirerDeps) {
  const { store, now } = deps

  return async ({ missedBeforeMs }: { missedBeforeMs: number }): Promise<void> => {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const nowMs = now().getTime()
      const due = await store.due(nowMs, BATCH)
      const known = new Set(due.map(({ id }) => id))
      const released = (await store.released(BATCH)).filter(({ id }) => !known.has(id))
      const schedules = alternating(due, released)
      if (schedules.length === 0) return
      const decided: Decided[] = []
      let windows = 0
      for (const schedule of schedules) {
        if (windows >= MOST_WINDOWS) break
        const one = await decide(deps, schedule, nowMs, missedBeforeMs)
        windows += one.claim.windows.length
        decided.push(one)
      }
      await carryOutAll(deps, decided, nowMs)
      if (decided.length === schedules.length && due.length < BATCH && released.length < BATCH) return
    }
  }
}

const alternating = <T>(some: readonly T[], others: readonly T[]): T[] =>
  Array.from({ length: Math.max(some.length, others.length) }, (_, at) => [
    ...some.slice(at, at + 1),
    ...others.slice(at, at + 1),
  ]).flat()

async function fateOf(
  deps: WindowFirerDeps,
  schedule: DueSchedule,
  nowMs: number,
  missedBeforeMs: number,
): Promise<Decided> {
  const { id: scheduleId, tenantId, agentName, revision, dueMs, isRunning, pendingMs } = schedule
  const due = dueMs !== null && dueMs <= nowMs
  const seen = due
    ? windowsUpTo(deps.zones.firingsOf(schedule), { dueMs, nowMs, missedBeforeMs, most: MOST_MISSED })
    : { missed: [], onTime: [], next: dueMs ?? undefined }
  const fates = decideWindows({ policy: schedule, isRunning, pendingMs }, seen)
  const wanted = [
    ...(fates.released === undefined ? [] : [{ windowMs: fates.released, outcome: 'started', waited: true } as const]),
    ...fates.windows.map(window => ({ ...window, waited: false })),
  ]
  const made: Decided = {
    claim: {
      scheduleId,
      revision,
      pendingMs: fates.pendingMs,
      dueMs: seen.next ?? null,
      windows: [],
      lastError: schedule.lastError ?? null,
    },
    runs: [],
    refused: [],
    seals: [],
  }
  let { sealed } = schedule
  const windows: ClaimedWindow[] = []
  for (const window of wanted) {
    if (window.outcome !== 'started') {
      windows.push(window)
      continue
    }
    const agent = await deps.findAgent(tenantId, agentName)
    const runId = deps.newId()
    let { input } = schedule
    if (agent && sealed === undefined) {
      input = redactedInput(agent.manifest, input)
      sealed = await deps.sealInput({ tenantId, agentName, sealed: agent.sealed }, scheduleId, input)
      if (sealed) made.seals.push(sealInputOf(schedule, sealed))
    }
    if (sealed) input = placeholderInput(sealed)
    const admission = agent && (await deps.admits({ ...agent, tenantId, agentName, input }, runId))
    if (admission === undefined || agent === undefined) {
      const reason = agent === undefined ? 'agent_not_found' : 'budget_exceeded'
      windows.push({ ...window, outcome: 'refused', reason })
      made.claim.lastError = reason
      made.refused.push({ tenantId, scheduleId, agentName, reason, windowMs: window.windowMs, revision })
      continue
    }
    windows.push({ ...window, runId })
    made.claim.lastError = null
    made.runs.push({
      id: runId,
      tenantId,
      agentName,
      agentId: agent.agentId,
      versionId: agent.versionId,
      createdMs: nowMs,
      input: sealed ? '{}' : input,
      sealedInput: sealed,
      labels: '{}',
      isolation: agent.manifest.isolation,
      scheduleId,
      day: deps.dayOf(nowMs),
      budgetExceeded: admission.exceeded,
      also: admission.statements,
      trigger: { kind: 'schedule', ref: scheduleId },
    })
  }
  return { ...made, claim: { ...made.claim, windows } }
}

async function decide(
  deps: WindowFirerDeps,
  schedule: DueSchedule,
  nowMs: number,
  missedBeforeMs: number,
): Promise<Decided> {
  try {
    return await fateOf(deps, schedule, nowMs, missedBeforeMs)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    // Its zone or expression is not to be read on this host; the others go on.
    deps.log.error('a schedule cannot be timed and stands still', { error, scheduleId: schedule.id })
    const { id: scheduleId, revision, pendingMs } = schedule
    const claim = { scheduleId, revision, windows: [], dueMs: null, pendingMs, lastError: 'not_timed' }
    return { claim, runs: [], refused: [], seals: [] }
  }
}

async function carryOut(deps: WindowFirerDeps, decided: readonly Decided[], nowMs: number): Promise<void> {
  const { take, settle } = claimStatements(
    decided.map(({ claim }) => claim),
    nowMs,
  )
  const told = decided.flatMap(one => [...one.refused.flatMap(refused => deps.refused(refused, nowMs)), ...one.seals])
  const results = await deps.runs.createForWindows(
    decided.flatMap(one => one.runs),
    { take, settle: [...told, ...settle] },
  )
  const taken = new Set(results.flatMap(({ rows }) => rows.map(row => `${row.schedule_id} ${row.window_ms}`)))
  const doneMs = deps.now().getTime()
  for (const { claim } of decided) {
    for (const { windowMs, outcome, reason, waited } of claim.windows) {
      if (!taken.has(`${claim.scheduleId} ${windowMs}`)) continue
      deps.fires.add(1, { outcome })
      if (outcome !== 'started') continue
      if (reason === undefined && !waited) deps.lagSeconds.observe(Math.max(0, doneMs - windowMs) / 1000)
    }
  }
}

/** One transaction for all of them; where it is refused, one for each, so that none holds up the others. */
async function carryOutAll(deps: WindowFirerDeps, decided: readonly Decided[], nowMs: number): Promise<void> {
  try {
    await carryOut(deps, decided, nowMs)
  } catch (error) {
    if (dbFault(error) !== 'statement' || decided.length === 1) throw error
    for (const one of decided) {
      await carryOut(deps, [one], nowMs).catch((fault: unknown) => {
        deps.log.error('a schedule could not be fired', { error: fault, scheduleId: one.claim.scheduleId })
      })
    }
  }
}

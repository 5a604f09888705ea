import type { NanoUsd } from '../../shared/money/money.ts'
import { sumNano } from '../../shared/money/money.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { sleep } from '../../shared/time/sleep.ts'
import { broken, type Gate, type GateInput, type GateJudge, type GateVerdict } from './gate.ts'
import { normaliseVerdict } from './verdict.ts'

/** One gate on one choice. */
export interface GateTake {
  readonly verdict: GateVerdict
  /** `cancelled` runs say nothing about the gate, `error` runs count against it. */
  readonly outcome: 'ran' | 'error' | 'cancelled'
  /** The flat price as soon as it was started, and what the gate added if it came to its end. */
  readonly costNano: NanoUsd
  /** On the monotonic clock. */
  readonly endedAt: number
}

/** A cancelled call settles within the same turn of the loop or two; a transport that does not is not waited for. */
const BILL_WAIT_MS = 250
const TIMED_OUT = Symbol('timed out')
const CANCELLED: GateVerdict = { verdict: 'abstain', reason: 'cancelled' }

/**
 * Runs a gate within its time, the wait for a slot included, until `stop` aborts. The answer does not wait for what an
 * aborted run leaves behind, but its slot does.
 */
export async function runGate(
  gate: Gate,
  input: GateInput,
  stop: AbortSignal,
  clock: Pick<Clock, 'monotonic'>,
): Promise<GateTake> {
  if (gate.inline && !stop.aborted) return runInline(gate.inline, gate, input, clock)
  const own = new AbortController()
  const timer = setTimeout(() => own.abort(TIMED_OUT), gate.timeoutMs)
  const cancel = () => own.abort()
  stop.addEventListener('abort', cancel, { once: true })
  if (stop.aborted) cancel()
  let running: Promise<GateVerdict> | undefined
  const done = (verdict: GateVerdict, outcome: GateTake['outcome'], late = 0): GateTake => {
    const costs = running === undefined ? [] : [gate.costNano, verdict.costNano ?? late]
    return { verdict, outcome, costNano: sumNano(costs), endedAt: clock.monotonic() }
  }
  try {
    const giveBack = await gate.slots.take(own.signal, input.tenantId)
    running = settle(gate, input, own.signal)
    void running.then(giveBack)
    const verdict = normaliseVerdict(await beforeAbort(running, own.signal))
    return done(verdict, verdict.error === true ? 'error' : 'ran')
  } catch (error) {
    if (!own.signal.aborted) throw error
    const late = gate.callsModels && running !== undefined ? await billOf(running) : 0
    return own.signal.reason === TIMED_OUT ? done(broken('timeout'), 'error', late) : done(CANCELLED, 'cancelled', late)
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', cancel)
  }
}

/** A gate that judges where it stands. */
export function runInline(
  judge: GateJudge,
  { costNano }: Gate,
  input: GateInput,
  clock: Pick<Clock, 'monotonic'>,
): GateTake {
  let verdict: GateVerdict
  try {
    verdict = normaliseVerdict(judge(input))
  } catch {
    verdict = broken('crashed')
  }
  const outcome = verdict.error === true ? 'error' : 'ran'
  return { verdict, outcome, costNano: sumNano([costNano, verdict.costNano ?? 0]), endedAt: clock.monotonic() }
}

/** What the calls of an aborted run have cost so far: the transport ends them at once, and what they used is priced then. */
async function billOf(running: Promise<GateVerdict>): Promise<NanoUsd> {
  const enough = new AbortController()
  const waited = sleep(BILL_WAIT_MS, enough.signal).catch(() => undefined)
  const verdict = await Promise.race([running, waited])
  enough.abort()
  return verdict?.costNano ?? 0
}

/** A gate that throws has crashed; what it threw may quote the answer and goes no further. */
async function settle(gate: Gate, input: GateInput, signal: AbortSignal): Promise<GateVerdict> {
  try {
    return await gate.run(input, signal)
  } catch {
    return broken('crashed')
  }
}

function beforeAbort<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    void running.then(value => {
      signal.removeEventListener('abort', onAbort)
      resolve(value)
    })
  })
}

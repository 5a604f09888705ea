import type { RateRule } from './definition.ts'
import { VendorFailure } from './vendor-failure.ts'

export interface RateGateDeps {
  monotonic: () => number
  wait: (ms: number, signal: AbortSignal) => Promise<void>
}

interface Gate {
  active: number
  waiting: number
  /** The turn of the caller that came last; the next waits for it, so that they go through in order. */
  last: Promise<unknown>
  /** When the next may start. */
  freeAt: number
  /** Until when the vendor wants to be left alone. */
  pausedUntil: number
  freed: (() => void) | undefined
}

/** Longest pause that a call waits for. */
export const LONGEST_PAUSE_MS = 10_000
/** Longest time that one answer of a vendor may hold up everybody else. */
const MOST_PAUSE_MS = 30_000
const KEPT_IDLE = 1000

/**
 * Keeps the calls of each install within its connector's rule: first come, first served, never more than `concurrent` at a
 * time, and starts at least 1/`perSecond` apart. A vendor that asks for a pause gets it from all of them.
 */
export function rateGates({ monotonic, wait }: RateGateDeps) {
  const gates = new Map<string, Gate>()

  function gateOf(install: string): Gate {
    let gate = gates.get(install)
    if (!gate) {
      if (gates.size >= KEPT_IDLE) forgetIdle()
      gate = { active: 0, waiting: 0, last: Promise.resolve(), freeAt: 0, pausedUntil: 0, freed: undefined }
      gates.set(install, gate)
    }
    return gate
  }

  function forgetIdle(): void {
    for (const [install, { active, waiting, freeAt, pausedUntil }] of gates) {
      if (active === 0 && waiting === 0 && Math.max(freeAt, pausedUntil) <= monotonic()) gates.delete(install)
    }
  }

  async function turn(gate: Gate, rule: RateRule, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      if (gate.active >= rule.concurrent) {
        await slotOf(gate, signal)
        continue
      }
      const pauseMs = gate.pausedUntil - monotonic()
      if (pauseMs > LONGEST_PAUSE_MS) throw leftAlone(pauseMs)
      const early = Math.max(pauseMs, gate.freeAt - monotonic())
      if (early <= 0) break
      await wait(early, signal)
    }
    gate.active++
    if (rule.perSecond !== undefined) gate.freeAt = monotonic() + 1000 / rule.perSecond
  }

  return {
    /** Resolves when the call may start; the answer gives its place back and must be called once. */
    async enter(install: string, rule: RateRule, signal: AbortSignal): Promise<() => void> {
      const gate = gateOf(install)
      gate.waiting++
      const mine = gate.last.then(() => turn(gate, rule, signal))
      gate.last = mine.catch(() => undefined)
      try {
        await mine
      } finally {
        gate.waiting--
      }
      return () => {
        gate.active--
        gate.freed?.()
      }
    },

    /** The vendor wants to be left alone for a while. */
    pause(install: string, ms: number): void {
      const gate = gateOf(install)
      gate.pausedUntil = Math.max(gate.pausedUntil, monotonic() + Math.min(ms, MOST_PAUSE_MS))
    },
  }
}

function leftAlone(pauseMs: number): VendorFailure {
  const message = `not sent: the vendor asked for a pause, which lasts ${Math.ceil(pauseMs / 1000)} s more`
  return new VendorFailure({ message, later: true, retryAfterMs: pauseMs, declined: true })
}

/** Only one waits here at a time: the others wait for its turn to end. */
function slotOf(gate: Gate, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      gate.freed = undefined
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    gate.freed = () => {
      gate.freed = undefined
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
  })
}

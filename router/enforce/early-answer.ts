import type { AnswerProgress } from '../../shared/dialects/accumulator.ts'
import { earlyRelease } from '../gates/early-release.ts'
import type { Gate, GateVerdict } from '../gates/gate.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { Follower } from './call-upstream.ts'

/** Where frames go that leave before their answer is whole. */
export interface EarlyOut {
  begin(head: { status: number; headers: HeaderList }): void
  send(frame: Uint8Array): void
}

export type EarlyAnswer = ReturnType<typeof earlyAnswer>

/**
 * Lets the frames of an answer go as soon as no gate of the route is open (docs/spec/router.md §4.1). No frame goes out with
 * which a gate has failed, and the frames that say how an answer ends wait for the decision on the whole.
 */
export function earlyAnswer(
  /** All of them decide on prefixes; those that their error budget has switched off are not among them. */
  gates: readonly Gate[],
  judge: (gate: Gate, text: string) => Promise<GateVerdict>,
  out: EarlyOut,
) {
  const known = new Map<string, GateVerdict>()
  const running = new Map<string, Promise<void>>()
  let held: Uint8Array[] = []
  let sent = 0
  let began = false
  let stopped = false
  let latest: { progress: AnswerProgress; head: { status: number; headers: HeaderList } } | undefined

  function look(): void {
    if (stopped || !latest) return
    const { progress, head } = latest
    if (progress.ending || progress.choices > 1) {
      stop()
      return
    }
    if (progress.choices === 0 || (!began && !progress.replayable)) return
    const verdicts = new Map([...known].map(([id, { verdict }]) => [id, verdict]))
    const { ready, failed, mayFlow } = earlyRelease(judging(), progress, verdicts)
    if (failed !== null) {
      stop()
      return
    }
    for (const id of ready) if (!running.has(id)) running.set(id, run(id, progress.text))
    if (!mayFlow) return
    if (!began) {
      began = true
      out.begin(head)
    }
    for (const frame of held) out.send(frame)
    sent += held.length
    held = []
  }

  /** Once frames flow, only an upper bound can still be broken. */
  function judging() {
    return gates.filter(({ onPrefix }) => onPrefix && (!began || onPrefix.canFailLater))
  }

  async function run(id: string, text: string): Promise<void> {
    known.set(id, await judge(gates.find(gate => gate.id === id)!, text))
    look()
  }

  function stop(): void {
    stopped = true
    held = []
  }

  return {
    frame(raw, progress, head) {
      if (stopped) return
      held.push(raw)
      latest = { progress, head }
      look()
    },
    get began() {
      return began
    },
    /** How many frames have gone out. */
    get sent() {
      return sent
    },
    /** The verdicts that were reached on the beginning of the answer, which are those on the whole; nothing goes out after. */
    async verdicts(): Promise<ReadonlyMap<string, GateVerdict>> {
      stop()
      await Promise.all(running.values())
      return known
    },
  } satisfies Follower & Record<string, unknown>
}

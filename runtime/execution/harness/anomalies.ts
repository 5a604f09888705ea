import type { PayloadOf } from '../../../shared/wire/runtime/journal.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { RunFailure } from '../failure.ts'
import type { Loop } from './agent-run.ts'
import { ask } from './tool-calls.ts'

export type AnomalyKind = PayloadOf<'anomaly_detected'>['kind']

export interface Observed {
  steps: number
  retries: number
  costNano: number
  tokens: number
}

export interface Finding {
  kind: AnomalyKind
  observed: number
  limit: number
  message: string
}

/** Longest cycle that is seen as one: A-A-A, A-B-A-B, A-B-C-A-B-C. */
const LONGEST_CYCLE = 3

/**
 * Counts how long a run has been going in circles: turns whose calls repeat with a period of one to three, or whose results
 * do not change. Constant work per turn.
 */
export function loopDetector() {
  const recent: string[] = []
  const streaks = Array.from({ length: LONGEST_CYCLE }, () => 0)
  let lastResult: string | undefined
  let sameResult = 0
  return {
    /** A turn's calls and results, as texts; gives the length of the circle so far in turns. */
    turn(calls: string, results: string): number {
      for (let period = 1; period <= LONGEST_CYCLE; period++) {
        streaks[period - 1] = recent.at(-period) === calls ? (streaks[period - 1] ?? 0) + 1 : 0
      }
      recent.push(calls)
      if (recent.length > LONGEST_CYCLE) recent.shift()
      sameResult = results === lastResult ? sameResult + 1 : 0
      lastResult = results
      const longest = Math.max(sameResult, ...streaks)
      return longest === 0 ? 0 : longest + 1
    },
  }
}

/** What is over its limit, strictly, and was not reported before. */
function findAnomalies(
  limits: Manifest['anomalies'],
  { steps, retries, costNano, tokens }: Observed,
  circle: number,
  reported: ReadonlySet<string>,
): Finding[] {
  const found: Finding[] = []
  const look = (kind: AnomalyKind, observed: number, limit: number, what: string) => {
    if (observed > limit && !reported.has(kind)) {
      found.push({ kind, observed, limit, message: `${what}: ${observed}, more than ${limit}` })
    }
  }
  look('runaway_loop', circle, limits.loopIterations, 'turns that go in circles')
  look('excessive_steps', steps, limits.steps, 'steps')
  look('retry_storm', retries, limits.retries, 'retries')
  look('cost_spike', costNano / 1e9, limits.costUsd, 'US dollars')
  look('token_spike', tokens, limits.tokens, 'tokens')
  return found
}

/** Looks for anomalies after a turn or a call, and does about them what the manifest says. */
export async function watch(loop: Loop, stepId: string, circle: number): Promise<void> {
  const { manifest, history, journal, steps, used } = loop
  const observed = {
    steps: steps.started,
    retries: history.retries,
    costNano: used.costNano + history.lost.costNano,
    tokens: used.tokensIn + used.tokensOut + history.lost.tokensIn + history.lost.tokensOut,
  }
  for (const finding of findAnomalies(manifest.anomalies, observed, circle, history.anomalies)) {
    const { action } = manifest.anomalies
    journal.append({ kind: 'anomaly_detected', stepId, attempt: 1, payload: { ...finding, action } })
    history.anomalies.add(finding.kind)
    if (action === 'fail') throw new RunFailure('anomaly', finding.message, { stepId })
  }
  if (manifest.anomalies.action !== 'wait') return
  for (const kind of history.anomalies) {
    if (loop.passed.has(kind)) continue
    const refusal = await ask(loop, `approval-anomaly-${kind}`, 'anomaly', `Go on although: ${kind}?`)
    if (refusal !== undefined) throw new RunFailure('anomaly', refusal)
    loop.passed.add(kind)
  }
}

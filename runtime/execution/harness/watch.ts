import { RunFailure } from '../failure.ts'
import type { Loop } from './agent-run.ts'
import { findAnomalies } from './anomalies.ts'
import { ask } from './tool-calls.ts'

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

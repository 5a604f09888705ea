import type { CandidateChoice } from '../../shared/dialects/candidate.ts'
import { sumNano } from '../../shared/money/money.ts'
import { isUsable, meanAgreement } from './agreement.ts'
import { broken, type GateInput, type GateRun } from './gate.ts'
import type { ConsistencyConfig } from './gate-config.ts'

/** The request is answered again, all samples at once, and the answers are compared (docs/spec/router.md §5.2). */
export function consistencyGate({ k, threshold, model }: ConsistencyConfig): GateRun {
  return async (input, signal) => {
    const { choice } = input
    if (!isUsable(choice)) return { verdict: 'abstain', reason: 'candidate_unusable' }
    const beside = model === null ? otherChoices(input).slice(0, k - 1) : []
    const asked = await Promise.all(
      Array.from({ length: k - 1 - beside.length }, () => input.models.repeat(model, signal)),
    )
    const costNano = sumNano(asked.map(one => one.costNano))
    const samples = asked.flatMap(one => (one.kind === 'answered' ? (one.candidate.choices[0] ?? []) : []))
    const usable = [choice, ...beside, ...samples].filter(isUsable)
    const score = meanAgreement(usable)
    if (score === undefined) {
      const failed = asked.find(one => one.kind === 'failed')
      const reason = failed?.kind === 'failed' ? failed.reason : 'too_few_samples'
      const isFault = asked.some(one => one.kind === 'failed' && one.isFault)
      return { ...(isFault ? broken(reason) : { verdict: 'abstain', reason }), costNano }
    }
    const evidenceRef = `samples:${usable.length}/${k}`
    return { verdict: score >= threshold ? 'pass' : 'fail', score, costNano, evidenceRef }
  }
}

/** Choices of one answer are samples of one model on one request, and they are paid already. */
function otherChoices({ candidate, choice }: GateInput): CandidateChoice[] {
  return candidate.choices.filter(other => other !== choice)
}

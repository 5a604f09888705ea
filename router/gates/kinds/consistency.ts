import type { CandidateChoice } from '../../../shared/dialects/candidate.ts'
import { sumNano } from '../../../shared/money/money.ts'
import { decimal, modelRef, whole } from '../../config/table-fields.ts'
import { isUsable, meanAgreement } from '../agreement.ts'
import { defineGate } from '../define-gate.ts'
import { broken, type GateInput } from '../gate.ts'

const UNPRICED = 'a model that is sampled must have a price, add a [[price]] for it'

/** The request is answered again, all samples at once, and the answers are compared (docs/spec/router.md §5.2). */
export const consistency = defineGate({
  kind: 'consistency',
  about: 'The request is answered several times, and the answers must agree.',
  slow: true,
  scores: true,
  callsModels: true,
  keys: {
    k: whole(2, 8).default(3),
    threshold: decimal(0, 1).default(0.6),
    model: modelRef.optional(),
  },
  words: {
    k: 'How many answers are compared.',
    threshold: 'The lowest agreement that passes.',
    model: { about: 'The model that answers again.', unset: 'that of the rung' },
  },
  // Without a model, the one that wrote the answer is sampled.
  resolve: ({ k, threshold, model }, context) => ({
    k,
    threshold,
    model: model === undefined ? null : (context.model('model', model, UNPRICED) ?? null),
  }),
  models: ({ model }) => ({ model }),
  refuseRoute({ id, model }, ladder) {
    const unpriced = model === null && ladder.find(({ price }) => price === null)
    if (!unpriced) return undefined
    return `"${id}" samples "${unpriced.model}", and a model that is sampled must have a price: add a [[price]] for it`
  },
  build: ({ k, threshold, model }) => ({
    async run(input, signal) {
      const { choice } = input
      if (!isUsable(choice)) return { verdict: 'abstain', reason: 'candidate_unusable' }
      const otherSamples = model === null ? otherChoices(input).slice(0, k - 1) : []
      const asked = await Promise.all(
        Array.from({ length: k - 1 - otherSamples.length }, () => input.models.repeat(model, signal)),
      )
      const costNano = sumNano(asked.map(one => one.costNano))
      const samples = asked.flatMap(one => (one.kind === 'answered' ? (one.candidate.choices[0] ?? []) : []))
      const usable = [choice, ...otherSamples, ...samples].filter(isUsable)
      const score = meanAgreement(usable)
      if (score === undefined) {
        const failed = asked.find(one => one.kind === 'failed')
        const reason = failed?.kind === 'failed' ? failed.reason : 'too_few_samples'
        const isFault = asked.some(one => one.kind === 'failed' && one.isFault)
        return { ...(isFault ? broken(reason) : { verdict: 'abstain', reason }), costNano }
      }
      const evidenceRef = `samples:${usable.length}/${k}`
      return { verdict: score >= threshold ? 'pass' : 'fail', score, costNano, evidenceRef }
    },
  }),
})

/** Choices of one answer are samples of one model on one request, and they are paid already. */
function otherChoices({ candidate, choice }: GateInput): CandidateChoice[] {
  return candidate.choices.filter(other => other !== choice)
}

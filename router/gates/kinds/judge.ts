import { text } from '../../../shared/wire/bounds.ts'
import { isSameModel, type Model } from '../../config/model.ts'
import { decimal, flag, modelRef, whole } from '../../config/table-fields.ts'
import { defineGate } from '../define-gate.ts'
import { broken, type GateInput } from '../gate.ts'
import { judgePrompt, newNonce, promptHash, readGrade } from '../judge-prompt.ts'

const UNPRICED = 'a judge must have a price, add a [[price]] for it'

/** A model grades the answer of another one (docs/spec/router.md §5.5). */
export const judge = defineGate({
  kind: 'judge',
  about: 'A model grades the answer. It never grades its own.',
  slow: true,
  scores: true,
  callsModels: true,
  keys: {
    model: modelRef,
    rubric: text(1, 20_000),
    threshold: decimal(0, 1).default(0.7),
    include_request: flag.default(true),
    max_output_tokens: whole(16, 32_768).default(512),
    fallback_model: modelRef.optional(),
  },
  words: {
    model: 'The model that grades. It must have a price.',
    rubric: 'What it is to look for.',
    threshold: 'The lowest grade that passes.',
    include_request: 'Whether it sees the request.',
    max_output_tokens: 'The longest grading.',
    fallback_model: { about: 'Who grades what the first model wrote.', unset: 'the gate abstains' },
  },
  resolve(table, context) {
    const model = context.model('model', table.model, UNPRICED)
    const { fallback_model } = table
    const fallback = fallback_model && context.model('fallback_model', fallback_model, UNPRICED)
    if (model && fallback && isSameModel(model, fallback))
      context.report(
        ['fallback_model'],
        'expected another model than "model": a fallback stands in where the judge wrote the answer',
      )
    if (model === undefined) return undefined
    return {
      model,
      rubric: table.rubric,
      threshold: table.threshold,
      includeRequest: table.include_request,
      maxOutputTokens: table.max_output_tokens,
      fallbackModel: fallback || null,
    }
  },
  models: ({ model, fallbackModel }) => ({ model, fallbackModel }),
  refuseRoute({ id, model, fallbackModel }, ladder) {
    if (fallbackModel !== null || ladder.length === 0 || !ladder.every(rung => isSameModel(model, rung)))
      return undefined
    return `judge "${id}" is the only model of the ladder and never grades itself: give it a fallback_model`
  },
  build(config) {
    const { rubric, threshold, maxOutputTokens } = config
    const prompt = `prompt:sha256:${promptHash(rubric)}`
    return {
      async run(input, signal) {
        const grader = [config.model, config.fallbackModel].find(model => model !== null && !wrote(model, input))
        if (!grader) return { verdict: 'abstain', reason: 'maker_is_checker' }
        const evidenceRef = `${prompt} model:${grader.model}`
        const question = { ...judgePrompt(config, input, newNonce()), maxOutputTokens }
        const asked = await input.models.ask(grader, question, signal)
        const { costNano } = asked
        if (asked.kind === 'failed') {
          const { reason, isFault } = asked
          return { ...(isFault ? broken(reason) : { verdict: 'abstain', reason }), costNano, evidenceRef }
        }
        const { model: named } = asked.candidate
        if (named !== null && wrote({ model: named, upstreamModel: named }, input))
          return { verdict: 'abstain', reason: 'maker_is_checker', costNano, evidenceRef }
        return { ...readGrade(asked.candidate.choices[0]?.text ?? '', threshold), costNano, evidenceRef }
      },
    }
  },
})

/**
 * A model never grades its own answer: neither by its name in the ladder, nor upstream, nor as the upstream names itself.
 * A name that stands for several models (`auto`) is known only once it has answered.
 */
function wrote(
  grader: Pick<Model, 'model' | 'upstreamModel'>,
  { model, upstreamModel, candidate }: GateInput,
): boolean {
  const named = candidate.model ?? upstreamModel
  return isSameModel(grader, { model, upstreamModel }) || isSameModel(grader, { model: named, upstreamModel: named })
}

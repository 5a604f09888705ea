import { fromUsd } from '../../../shared/money/money.ts'
import type { Model } from '../../config/model.ts'
import type { ModelCall, ModelCalls, Question } from '../gate.ts'
import { type AnswerParts, subjectOf } from './subject.ts'

export const COST = fromUsd(0.001)

/** `provider/model` with everything a gate may look at. */
export function modelOf(model: string, upstreamModel = model.slice(model.indexOf('/') + 1)): Model {
  return {
    model,
    provider: model.slice(0, model.indexOf('/')),
    dialect: 'chat',
    responses: false,
    upstreamModel,
    tools: true,
    images: true,
    maxInputTokens: null,
    maxOutputTokens: 100,
    price: null,
  }
}

/** `named` is what the model that answered calls itself. */
export const answered = (part: AnswerParts, named: string | null = null): ModelCall => ({
  kind: 'answered',
  candidate: { ...subjectOf([part]).candidate, model: named },
  costNano: COST,
})

export const failed = (reason: string, isFault = true): ModelCall => ({
  kind: 'failed',
  reason,
  isFault,
  costNano: COST,
})

/** Models that answer as a test says, and what they were asked. */
export function fakeModels(answers: {
  ask?: (question: Question, model: string) => ModelCall
  repeat?: (n: number) => ModelCall
}) {
  const asked: { model: string; question: Question }[] = []
  const repeated: (string | null)[] = []
  const models: ModelCalls = {
    async ask(model, question) {
      asked.push({ model: model.model, question })
      return answers.ask!(question, model.model)
    },
    async repeat(model) {
      repeated.push(model?.model ?? null)
      return answers.repeat!(repeated.length - 1)
    },
  }
  return { models, asked, repeated }
}

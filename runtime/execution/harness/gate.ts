import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import type { EventDraft } from '../journal/event.ts'
import type { Message, ModelAnswer, ModelTool } from '../models/model.ts'
import type { StepResult, StepSpec } from '../step-spec.ts'
import { type Loop, modelCall, recorded, use } from './agent-run.ts'
import { agreement, proposalOf, proposalOfCall, VERBALIZED, verbalizedScore } from './confidence.ts'

export interface GateQuestion {
  /** `3-2`, or `3` for the final text. */
  place: string
  gate: string
  /** The call that is judged; absent for the final text. */
  tool?: string
  arguments?: Record<string, unknown>
  text?: string
  /** What the model was sent when it proposed this. */
  before: readonly Message[]
  policy: NonNullable<Manifest['confidence']>
}

/** How sure the model is, as steps; the last of them carries the `confidence_evaluated` event in its commit. */
export async function gate(loop: Loop, question: GateQuestion): Promise<number> {
  return question.policy.estimator === 'verbalized' ? verbalized(loop, question) : selfConsistent(loop, question)
}

async function verbalized(loop: Loop, question: GateQuestion): Promise<number> {
  const { place, tool, arguments: given, text, before } = question
  const proposed = tool === undefined ? (text ?? '') : `I want to call ${tool} with ${JSON.stringify(given)}.`
  const messages: Message[] = [
    ...before,
    { role: 'assistant', text: proposed, toolCalls: [] },
    { role: 'user', text: VERBALIZED },
  ]
  const outcome = await loop.steps.run(spec(loop, `confidence-${place}`), async call => {
    const answer = await loop.model.ask(
      { system: loop.manifest.systemPrompt, messages, tools: [], maxOutputTokens: 64 },
      modelCall(call),
    )
    const score = verbalizedScore(answer.text)
    return judged(answer, { score }, evaluated(question, `confidence-${place}`, call.attempt, score))
  })
  use(loop, outcome)
  return (outcome.output as { score: number }).score
}

async function selfConsistent(loop: Loop, question: GateQuestion): Promise<number> {
  const { place, tool, arguments: given = {}, text = '', before, policy } = question
  const proposal = tool === undefined ? text.trim() : proposalOfCall({ name: tool, arguments: given })
  const tools: ModelTool[] = tool === undefined ? [] : [...loop.tools.values()]
  const samples: string[] = []
  let score = 0
  for (let n = 1; n <= policy.samples; n++) {
    const stepId = `confidence-${place}-${n}`
    const outcome = await loop.steps.run(spec(loop, stepId), async call => {
      const answer = await loop.model.ask(
        {
          system: loop.manifest.systemPrompt,
          messages: before,
          tools,
          temperature: 1,
          maxOutputTokens: loop.manifest.limits.maxOutputTokens,
        },
        modelCall(call),
      )
      const sample = proposalOf(answer, tool)
      const share = agreement(proposal, [...samples, sample])
      const last = n === policy.samples
      return judged(
        answer,
        { sample, score: share },
        ...(last ? [evaluated(question, stepId, call.attempt, share)] : []),
      )
    })
    use(loop, outcome)
    const output = outcome.output as { sample: string; score: number }
    samples.push(output.sample)
    score = output.score
  }
  return score
}

function spec({ model, talk }: Loop, stepId: string): StepSpec {
  const { inputHash } = talk
  const { id: name, ready } = model
  return { stepId, kind: 'confidence', name, inputHash, effect: 'idempotent', onInterrupted: 'retry', ready }
}

function judged(answer: ModelAnswer, output: unknown, ...also: EventDraft[]): StepResult {
  return { ...recorded(answer), output, also }
}

function evaluated(
  { gate, policy: { threshold, estimator } }: GateQuestion,
  stepId: string,
  attempt: number,
  score: number,
): EventDraft {
  return {
    kind: 'confidence_evaluated',
    stepId,
    attempt,
    payload: { score, threshold, decision: score >= threshold ? 'execute' : 'divert', estimator, gate },
  }
}

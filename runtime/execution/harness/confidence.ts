import { canonicalize } from '../../../shared/sign/jcs.ts'
import type { ModelAnswer, ToolCall } from '../models/model.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'

/** Whether a confidence gate covers a call: by its family, or by its own name. */
export function gateOf(gates: readonly string[], tool: Pick<ExposedTool, 'name' | 'family'>): string | undefined {
  return gates.find(gate => gate === tool.name) ?? gates.find(gate => gate === tool.family)
}

export const VERBALIZED =
  'How sure are you that the step you just proposed is right and safe to carry out? Answer with one JSON object, {"confidence": n}, where n is between 0 (not at all) and 1 (certain), and nothing else.'

/** The number in an answer to the question above. No number counts as no confidence: the gate fails closed. */
export function verbalizedScore(text: string): number {
  const found = /"confidence"\s*:\s*([0-9.]+)/.exec(text)?.[1] ?? /^\s*([01](?:\.\d+)?|0?\.\d+)\s*$/.exec(text)?.[1]
  const score = Number(found)
  return found !== undefined && score >= 0 && score <= 1 ? score : 0
}

/** Share of the samples that propose the same: the same call with the same arguments, or the same text. */
export function agreement(proposal: string, samples: readonly string[]): number {
  if (samples.length === 0) return 0
  return samples.filter(sample => sample === proposal).length / samples.length
}

export function proposalOfCall({ name, arguments: given }: Pick<ToolCall, 'name' | 'arguments'>): string {
  return `${name} ${canonicalize(given)}`
}

/** What a sample proposes where the original proposed this call: its call of the same tool, if it has one. */
export function proposalOf(answer: ModelAnswer, tool: string | undefined): string {
  if (tool === undefined) return answer.text.trim()
  const call = answer.toolCalls.find(one => one.name === tool)
  return call ? proposalOfCall(call) : ''
}

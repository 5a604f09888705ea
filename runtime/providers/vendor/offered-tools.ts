import type { ModelTool } from '../../execution/models/model.ts'
import type { Vendor } from '../vendors.ts'
import { ANSWER_TOOL_DESCRIPTION, answerToolName, type OutputRequest } from './structured-output.ts'
import type { ToolNames } from './tool-names.ts'

export interface BodyOptions {
  model: string
  names: ToolNames
  vendor: Pick<Vendor, 'maxTokens'>
  /** How an answer of a form is asked for. */
  output?: OutputRequest | undefined
}

/** The tools under the names that travel, and the one that the answer is given by, where there is one. */
export function offeredTools(
  tools: readonly ModelTool[],
  names: ToolNames,
  output: OutputRequest | undefined,
): ModelTool[] {
  const offered = tools.map(({ name, description, parameters }) => ({
    name: names.toWire(name),
    description,
    parameters,
  }))
  if (output?.by !== 'tool') return offered
  const name = answerToolName(offered.map(tool => tool.name))
  return [...offered, { name, description: ANSWER_TOOL_DESCRIPTION, parameters: output.schema }]
}

import type { McpServer } from '../../../shared/wire/runtime/manifest-parts.ts'
import { interruptedDefault } from '../../../shared/wire/runtime/tool.ts'
import { effectOf, type McpDefinition } from '../mcp/definition.ts'
import type { StepResult } from '../step-spec.ts'
import type { ExposedTool } from './exposed-tool.ts'

export type CallMcp = (
  tool: McpDefinition,
  args: Record<string, unknown>,
  call: { key: string; signal: AbortSignal; stepId: string },
) => Promise<StepResult>

/** A tool of an MCP server under the name that models and approvals know it by. */
export function mcpTool(server: McpServer, definition: McpDefinition, call: CallMcp): ExposedTool {
  const { name, title, description, inputSchema, annotations } = definition
  const effect = effectOf(definition, server)
  return {
    name: `mcp__${server.name}__${name}`,
    kind: 'mcp',
    family: 'mcp',
    needsApproval: server.needsApproval,
    description: description ?? title ?? annotations?.title ?? name,
    parameters: inputSchema,
    effect: () => effect,
    onInterrupted: () => interruptedDefault(effect),
    timeoutMs: server.timeoutSeconds * 1000,
    call: (given, { stepId }, { key, signal }) => call(definition, given, { key, signal, stepId }),
  }
}

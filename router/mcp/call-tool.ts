import { ApiError } from '../../shared/http/api-error.ts'
import type { Log } from '../../shared/log/log.ts'
import { check, sentence } from '../../shared/wire/issues.ts'
import { type McpToolName, mcpTools } from '../../shared/wire/router/mcp.ts'
import { CursorError } from '../traces/store.ts'
import type { AuditTools } from './audit-tools.ts'

/** The answer to `tools/call`: what a tool found, as JSON and as the same JSON in text, or why it did not. */
export interface ToolResult {
  [key: string]: unknown
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: true
}

/**
 * Calls a tool by its name. Input is checked by the tool's schema, so that a complaint is a sentence about a field; whatever fails is
 * an answer and never the end of the session.
 */
export async function callTool(tools: AuditTools, name: string, input: unknown, log: Log): Promise<ToolResult> {
  if (!Object.hasOwn(mcpTools, name)) return failure(`there is no tool with the name ${name}`)
  try {
    const found = await called(tools, name as McpToolName, input ?? {})
    return { content: [{ type: 'text', text: JSON.stringify(found) }], structuredContent: found }
  } catch (error) {
    if (error instanceof ApiError || error instanceof CursorError) return failure(error.message)
    log.error('a tool failed', { tool: name, error })
    return failure('internal error: the log of this process says more')
  }
}

async function called<N extends McpToolName>(tools: AuditTools, name: N, input: unknown) {
  const checked = check(mcpTools[name].input, input)
  if (!checked.ok) throw new ApiError('validation_failed', sentence(checked.details), { details: checked.details })
  // The table gives each name its own input; that the two belong together is beyond what a type says of a computed name.
  const tool = tools[name] as (given: unknown) => Promise<Record<string, unknown>>
  return tool(checked.value)
}

function failure(message: string): ToolResult {
  return { content: [{ type: 'text', text: message }], isError: true }
}

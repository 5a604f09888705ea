import { StepFailure } from '../failure.ts'
import type { ExposedTool } from './exposed-tool.ts'

export type ToolChoice = 'all' | 'none' | 'readOnly'

type Tools = ReadonlyMap<string, ExposedTool>

/** What of its tools an agent may use in one turn of a session. */
export function allowedTools(tools: Tools, choice: ToolChoice): Tools {
  if (choice === 'all') return tools
  if (choice === 'none') return new Map()
  return new Map([...tools].flatMap(([name, tool]) => (onlyReads(tool) ? [[name, readingOnly(tool)]] : [])))
}

/** What waits or asks changes nothing outside; another agent may do anything. */
const HARMLESS = new Set(['timer', 'signal', 'approval'])

function onlyReads({ kind, effect }: ExposedTool): boolean {
  // What an action of a connector or a tool of an MCP server does is the same for every call.
  return HARMLESS.has(kind) || kind === 'tool' || ((kind === 'connector' || kind === 'mcp') && effect({}) === 'read')
}

/** A tool whose calls may read or write refuses the ones that write. */
function readingOnly(tool: ExposedTool): ExposedTool {
  if (HARMLESS.has(tool.kind)) return tool
  return {
    ...tool,
    async call(given, place, call) {
      if (tool.effect(given) === 'read') return tool.call(given, place, call)
      throw new StepFailure(
        'read_only',
        `${tool.name} may only read in this turn, and this call would change something`,
      )
    },
  }
}

import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { browseTool } from '../browse/browse-tool.ts'
import { StepFailure } from '../failure.ts'
import { isSandboxTool } from '../sandbox/placement.ts'
import type { SandboxOfRun } from '../sandbox/run-sandbox.ts'
import type { ToolChoice } from '../turn.ts'
import { type ConnectorAction, connectorTool } from './connector-tool.ts'
import type { ExposedTool } from './exposed-tool.ts'
import { httpRequestTool, type Outbound } from './http-request-tool.ts'
import { sandboxTool } from './sandbox-tools.ts'
import { type SubAgentDeps, subAgentTool } from './sub-agent-tool.ts'
import { askHumanTool, type WaitingDeps, waitSignalTool, waitTool } from './waiting-tools.ts'

/** The tools of one run by the names that its model sees. */
export function toolbox(
  manifest: Manifest,
  deps: WaitingDeps &
    SubAgentDeps & {
      outbound: Outbound
      connectors: readonly ConnectorAction[]
      mcp: readonly ExposedTool[]
      sandbox: SandboxOfRun | undefined
    },
): ReadonlyMap<string, ExposedTool> {
  const all: ExposedTool[] = []
  for (const tool of manifest.tools) {
    if (tool.name === 'wait') all.push(waitTool(deps, tool))
    else if (tool.name === 'wait_signal') all.push(waitSignalTool(deps, tool))
    else if (tool.name === 'ask_human') all.push(askHumanTool(deps))
    else if (tool.name === 'http_request') all.push(httpRequestTool(deps, manifest.egress, tool))
    else if (deps.sandbox && isSandboxTool(tool.name)) {
      const { name } = tool
      all.push(name === 'browse' ? browseTool(tool, deps.sandbox) : sandboxTool({ ...tool, name }, deps.sandbox))
    }
  }
  for (const action of deps.connectors) all.push(connectorTool(action))
  all.push(...deps.mcp)
  for (const agent of manifest.subAgents) all.push(subAgentTool(deps, agent))
  return new Map(all.map(tool => [tool.name, tool]))
}

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

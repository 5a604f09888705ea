import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { type ConnectorAction, connectorTool } from './connector-tool.ts'
import type { ExposedTool } from './exposed-tool.ts'
import { httpRequestTool, type Outbound } from './http-request-tool.ts'
import { type SubAgentDeps, subAgentTool } from './sub-agent-tool.ts'
import { askHumanTool, type WaitingDeps, waitSignalTool, waitTool } from './waiting-tools.ts'

const SANDBOX_TOOLS = new Set([
  ...['exec', 'python', 'node', 'read_file', 'list_files', 'write_file', 'install_packages', 'browse'],
])

/** What a manifest asks for and this node cannot do; a run of it ends before its first step. `commands`: it can start them. */
export function missing(
  manifest: Manifest,
  { commands }: { commands: boolean },
): { code: 'isolation_unavailable'; message: string } | undefined {
  const { isolation, tools, entrypoint, mcpServers } = manifest
  const sandbox = tools.map(tool => tool.name).filter(name => SANDBOX_TOOLS.has(name))
  if (isolation !== 'shared' || sandbox.length > 0 || entrypoint) {
    const needs = isolation !== 'shared' ? isolation : 'a microVM'
    const why = entrypoint ? 'its entrypoint' : sandbox.length > 0 ? sandbox.join(', ') : 'its isolation'
    return {
      code: 'isolation_unavailable',
      message: `${why} needs ${needs}, and no enrolled node offers it; this node offers shared`,
    }
  }
  const command = commands ? undefined : mcpServers.find(server => server.command !== undefined)
  if (command) {
    const why = `the MCP server ${command.name} is a command, which runs inside a sandbox and never on the host itself`
    return { code: 'isolation_unavailable', message: `${why}; this node has no sandbox: give the server a url instead` }
  }
  return undefined
}

/** The tools of one run by the names that its model sees. */
export function toolbox(
  manifest: Manifest,
  deps: WaitingDeps &
    SubAgentDeps & { outbound: Outbound; connectors: readonly ConnectorAction[]; mcp: readonly ExposedTool[] },
): ReadonlyMap<string, ExposedTool> {
  const all: ExposedTool[] = []
  for (const tool of manifest.tools) {
    if (tool.name === 'wait') all.push(waitTool(deps, tool))
    else if (tool.name === 'wait_signal') all.push(waitSignalTool(deps, tool))
    else if (tool.name === 'ask_human') all.push(askHumanTool(deps))
    else if (tool.name === 'http_request') all.push(httpRequestTool(deps, manifest.egress, tool))
  }
  for (const action of deps.connectors) all.push(connectorTool(action))
  all.push(...deps.mcp)
  for (const agent of manifest.subAgents) all.push(subAgentTool(deps, agent))
  return new Map(all.map(tool => [tool.name, tool]))
}

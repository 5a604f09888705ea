import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { browseTool } from '../browse/browse-tool.ts'
import { isSandboxTool } from '../sandbox/placement.ts'
import type { SandboxOfRun } from '../sandbox/run-sandbox.ts'
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

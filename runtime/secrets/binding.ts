import type { HostRule } from '../../shared/wire/runtime/host-rule.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { SecretBinding } from '../../shared/wire/runtime/provider.ts'
import { hostMatches, portOf } from '../execution/tools/egress.ts'

/** The ways by which what a sandbox holds can leave an agent. */
export type EgressChannels = Pick<Manifest, 'egress' | 'mcpServers' | 'connectors' | 'subAgents' | 'session'>

/** What a secret is opened for. */
export type SecretUse =
  | { tool: 'mcp'; server: string; url: string }
  /** A process that has the value can send it by every way out of its agent. */
  | { tool: 'sandbox'; agent: EgressChannels }

const USED_BY = {
  mcp: 'the headers of an MCP server',
  sandbox: 'the environment of a sandbox',
} as const

/** Why a secret may not be opened for a use; undefined when it may. */
export function refusalOf(name: string, { hosts, tools }: SecretBinding, use: SecretUse): string | undefined {
  if (tools && !tools.includes(use.tool)) {
    return `secret/${name} is for ${tools.join(' and ')} alone, and the manifest puts it into ${USED_BY[use.tool]}: take it out there, or add ${use.tool} to the tools of the secret`
  }
  if (!hosts) return undefined
  return use.tool === 'mcp' ? serverRefusal(name, hosts, use) : sandboxRefusal(name, hosts, use.agent)
}

function serverRefusal(name: string, hosts: readonly HostRule[], { server, url }: { server: string; url: string }) {
  const to = new URL(url)
  const [host, port] = [to.hostname.toLowerCase(), portOf(to)]
  if (covers(hosts, host, port)) return undefined
  return `${unnamed(name, host, port)}, where the MCP server ${server} is: give the server another address, or add this one to the hosts of the secret`
}

function sandboxRefusal(
  name: string,
  hosts: readonly HostRule[],
  { egress, mcpServers, connectors, subAgents, session }: EgressChannels,
): string | undefined {
  for (const { host, ports } of egress) {
    const port = ports.find(one => !covers(hosts, host, one))
    if (port === undefined) continue
    return `${unnamed(name, host, port)}, which egress opens to the sandbox that has the value: take it out of egress, or add it to the hosts of the secret`
  }
  for (const { name: server, url } of mcpServers) {
    const refusal = url === undefined ? undefined : serverRefusal(name, hosts, { server, url })
    if (refusal !== undefined) return refusal
  }
  const way =
    (connectors.length > 0 && 'connectors') ||
    (subAgents.length > 0 && 'subAgents') ||
    (session.dedicatedMicrovm && 'session.dedicatedMicrovm')
  if (!way) return undefined
  return `secret/${name} is bound to hosts, and by ${way} its value could go on from the sandbox to others: take the secret or ${way} out of the manifest`
}

const unnamed = (name: string, host: string, port: number) =>
  `the hosts of secret/${name} do not name ${host} with the port ${port}`

const covers = (hosts: readonly HostRule[], host: string, port: number): boolean =>
  hosts.some(rule => rule.ports.includes(port) && hostMatches(rule.host, host))

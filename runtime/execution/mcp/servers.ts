import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import type { McpServer } from '../../../shared/wire/runtime/manifest-parts.ts'
import { RunFailure, StepFailure } from '../failure.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'
import { mcpTool } from '../tools/mcp-tool.ts'
import { allowed, hashOf } from './definition.ts'
import type { McpServersDeps, Pin } from './deps.ts'
import { type McpLink, mcpLink } from './link.ts'

export interface RunMcp {
  tools: readonly ExposedTool[]
  close(): void
}

/**
 * The MCP servers of one run. What an agent version was shown when it first saw a server is what it is shown ever after,
 * so a run whose servers are known asks none of them before its model wants a call.
 */
export async function mcpServers(deps: McpServersDeps, { mcpServers: servers, isolation }: Manifest): Promise<RunMcp> {
  const links: McpLink[] = []
  const close = () => {
    for (const link of links) link.close()
  }
  try {
    const tools: ExposedTool[] = []
    for (const server of servers) {
      const openHeaders = () => headersOf(deps, server)
      // What is missing or refused ends the run before its model is asked.
      await openHeaders()
      const link = mcpLink({ ...deps, isolation, openHeaders }, server)
      links.push(link)
      const known = await deps.pins.get(deps.run.versionId, server.name)
      // A listing that was cut off is made again, known or not: its step is owed a last word.
      const begun = deps.history.steps.get(listStep(server))
      const owed = begun !== undefined && begun.is !== 'completed'
      const pin = known && !owed ? known : await firstLook(deps, server, link)
      link.expect(pin.definitions)
      tools.push(...pin.definitions.map(definition => mcpTool(server, definition, link.call)))
    }
    return { tools, close }
  } catch (error) {
    close()
    throw error
  }
}

const listStep = ({ name }: McpServer) => `mcp-list-${name}`

/** The first listing for a version, as a step of its own. */
async function firstLook({ pins, run, steps, sha256 }: McpServersDeps, server: McpServer, link: McpLink): Promise<Pin> {
  const stepId = listStep(server)
  try {
    await steps.run(
      {
        stepId,
        kind: 'mcp',
        name: `mcp__${server.name}`,
        effect: 'read',
        onInterrupted: 'retry',
        timeoutMs: server.timeoutSeconds * 1000,
      },
      async ({ signal }) => {
        const definitions = allowed(await link.list(signal), server)
        if (typeof definitions === 'string') throw new StepFailure('mcp_failed', definitions)
        const pin = await pins.keep(run.versionId, server.name, { hash: hashOf(definitions, sha256), definitions })
        return { output: { tools: pin.definitions.map(({ name }) => name), hash: pin.hash }, ...(await link.place()) }
      },
    )
  } catch (error) {
    if (!(error instanceof StepFailure)) throw error
    throw new RunFailure('mcp_failed', error.message, { stepId, cause: error })
  }
  const kept = await pins.get(run.versionId, server.name)
  if (!kept) throw new Error(`the tools of ${server.name} were listed and are not in the store`)
  return kept
}

/** What a server is greeted with; the values go to it and nowhere else. */
async function headersOf(
  { secretOf, run }: McpServersDeps,
  { name, headers, url = '' }: McpServer,
): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const [header, { secretRef }] of Object.entries(headers ?? {})) {
    const secret = secretRef.slice('secret/'.length)
    const value = (await secretOf(run, secret, { tool: 'mcp', server: name, url }))?.trim()
    if (value === undefined) {
      const message = `the MCP server ${name} needs ${secretRef}: store it with PUT /v1/secrets/${secret}`
      throw new RunFailure('secret_missing', message)
    }
    if (!PRINTABLE.test(value)) {
      throw new RunFailure('mcp_failed', `${secretRef} has characters that cannot stand in the header ${header}`)
    }
    found.set(header.toLowerCase(), value)
  }
  return found
}

const PRINTABLE = /^[\x20-\x7e]+$/

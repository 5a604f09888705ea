import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import { neverSent } from '../../../shared/http/outbound/never-sent.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import type { McpServer } from '../../../shared/wire/runtime/manifest-parts.ts'
import type { Effect } from '../../../shared/wire/runtime/tool.ts'
import { RunFailure, StepFailure } from '../failure.ts'
import { wellFormed } from '../journal/well-formed.ts'
import type { StepResult } from '../step-spec.ts'
import type { CallMcp } from '../tools/mcp-tool.ts'
import { connectMcp, type McpConnection, type McpResult } from './connection.ts'
import { effectOf, hashOf, type McpDefinition } from './definition.ts'
import type { McpGrants, McpServersDeps } from './deps.ts'
import { faultOf, isForgotten, redactValues, ToolRefusal } from './fault.ts'
import { httpTransport } from './http-transport.ts'
import { pipeTransport } from './pipe-transport.ts'

/** How long a listing is believed when a server does not say that it changed. */
const LISTING_MS = 60_000
const MOST_ERROR_TEXT = 4000

interface LinkDeps extends McpServersDeps {
  isolation: string
  /** The values of its headers, opened anew; a RunFailure where one is missing or refused. */
  openHeaders: () => Promise<ReadonlyMap<string, string>>
}

export interface McpLink {
  list(signal: AbortSignal): Promise<McpDefinition[]>
  /** What the agent was shown; a tool that is not the same any more is not called. */
  expect(definitions: readonly McpDefinition[]): void
  call: CallMcp
  /** For the journal, where the server is a command. */
  place(): Promise<Omit<StepResult, 'output'>>
  close(): void
}

/** The way to one server for the length of a run: opened when it is needed, and again when it broke. */
export function mcpLink(deps: LinkDeps, server: McpServer): McpLink {
  const { sha256, clock } = deps
  const secrets = new Set<string>()
  let redact = redactValues([])
  let expected: ReadonlyMap<string, string> = new Map()
  let offered: { hashes: ReadonlyMap<string, string>; at: number } | undefined
  /** Calls side by side look once. */
  let relisting: Promise<unknown> | undefined

  const failed = (error: unknown, said: Parameters<typeof faultOf>[2]) => faultOf(server.name, error, said, redact)

  /** Secrets of the run are in the environment of its commands. */
  function withoutSecrets(result: McpResult): McpResult {
    const redacted = redact.json(result)
    if (!deps.sandbox || server.command === undefined) return redacted as McpResult
    return readJson(deps.sandbox.withoutSecrets(JSON.stringify(redacted))) as McpResult
  }

  function learn(secret: string): void {
    if (secrets.has(secret)) return
    secrets.add(secret)
    redact = redactValues([...secrets])
  }

  const { connected, drop, close } = oneConnection(openingOf(deps, server, learn), () => {
    offered = undefined
  })

  async function listed(connection: McpConnection, signal: AbortSignal): Promise<McpDefinition[]> {
    const definitions = await connection.list(signal)
    offered = { hashes: new Map(definitions.map(one => [one.name, hashOf([one], sha256)])), at: clock.monotonic() }
    return definitions
  }

  async function checkUnchanged(connection: McpConnection, stepId: string, signal: AbortSignal): Promise<void> {
    if (!offered || connection.changed || clock.monotonic() - offered.at > LISTING_MS) {
      relisting ??= listed(connection, signal).finally(() => {
        relisting = undefined
      })
      await relisting
    }
    refuseChanged(expected, offered?.hashes ?? new Map(), server.name, stepId)
  }

  return {
    async list(signal) {
      try {
        return await listed(await connected(signal), signal)
      } catch (error) {
        drop()
        if (error instanceof RunFailure) throw error
        throw failed(error, 'read')
      }
    },

    expect(definitions) {
      expected = new Map(definitions.map(one => [one.name, hashOf([one], sha256)]))
    },

    async call(tool, args, { key, signal, stepId }) {
      for (let tries = 1; ; tries++) {
        let connection: McpConnection
        try {
          connection = await connected(signal)
          await checkUnchanged(connection, stepId, signal)
        } catch (error) {
          if (error instanceof RunFailure) throw inStep(error, stepId)
          drop()
          if (tries === 1 && isForgotten(error)) continue
          // Nothing was asked of the tool yet.
          throw failed(error, 'read')
        }
        try {
          const result = await connection.call(tool, args, { key, signal })
          return {
            output: toOutput(withoutSecrets(wellFormed(result) as McpResult), tool.name),
            ...(await isolationOf(deps, server, effectOf(tool, server))),
          }
        } catch (error) {
          if (signal.aborted) throw signal.reason
          if (error instanceof RunFailure) throw inStep(error, stepId)
          // A server that has forgotten the session did nothing with the call.
          if (tries === 1 && isForgotten(error)) {
            drop()
            continue
          }
          if (!connection.alive) drop()
          // Without a connection nothing was asked of the tool.
          throw failed(error, neverSent(error) ? 'read' : effectOf(tool, server))
        }
      }
    },

    place: () => isolationOf(deps, server),
    close,
  }
}

/** Opens a connection to a server, with the headers of the manifest or what a person has granted. */
function openingOf(deps: LinkDeps, server: McpServer, learn: (secret: string) => void): () => Promise<McpConnection> {
  const { run, openHeaders } = deps
  const names = Object.keys(server.headers ?? {}).map(name => name.toLowerCase())

  /** Opened for each request, so that a secret which was changed, bound or removed since then counts at once. */
  const withHeaders: McpServersDeps['fetch'] = async (to, init) => {
    const headers = await openHeaders()
    for (const value of headers.values()) learn(value)
    return deps.fetch(to, { ...init, headers: { ...init.headers, ...Object.fromEntries(headers) } })
  }

  /** A header of the manifest goes before what a person has granted. */
  function fetchOf(url: string): McpServersDeps['fetch'] {
    const { grants } = deps
    const fetch = names.length === 0 ? deps.fetch : withHeaders
    if (!grants || names.includes('authorization')) return fetch
    const of = new URL(url)
    of.hash = ''
    return grantedFetch({ fetch, grants, tenantId: run.tenantId, url: of.href, learn })
  }

  return async () => {
    const { url, command, args = [], name } = server
    const late = new AbortController()
    const timer = setTimeout(
      () => late.abort(new StepFailure('timeout', `the MCP server ${name} was not reached in time`)),
      server.timeoutSeconds * 1000,
    )
    try {
      return await connectMcp(async broken => {
        if (url !== undefined) return httpTransport(new URL(url), fetchOf(url), broken)
        const { id, tenantId, versionId } = run
        const { isolation, sandbox, stdioTransportOf } = deps
        if (stdioTransportOf) {
          return stdioTransportOf({ id, tenantId, versionId, isolation }, { name, command: command!, args })
        }
        if (!sandbox) throw new RunFailure('isolation_unavailable', `${name} needs a sandbox`)
        const room = await sandbox.get()
        return pipeTransport(await room.pipe([command!, ...args]))
      }, late.signal)
    } finally {
      clearTimeout(timer)
    }
  }
}

/** One connection for all calls of a run, opened when it is needed; a call that is given up does not take it from the others. */
function oneConnection(open: () => Promise<McpConnection>, dropped: () => void) {
  let opening: Promise<McpConnection> | undefined
  let closed = false

  async function connected(signal: AbortSignal, again = false): Promise<McpConnection> {
    signal.throwIfAborted()
    if (closed) throw new Error('the run is over')
    const made = opening ?? open()
    opening = made
    try {
      const connection = await made
      if (connection.alive) return connection
    } catch (error) {
      if (opening === made) opening = undefined
      throw error
    }
    if (opening === made) drop()
    if (again) throw new StepFailure('mcp_failed', 'the server ends every connection at once', { transient: true })
    return connected(signal, true)
  }

  function drop(): void {
    const gone = opening
    opening = undefined
    dropped()
    gone?.then(
      connection => connection.close(),
      () => undefined,
    )
  }

  return {
    connected,
    drop,
    close(): void {
      closed = true
      drop()
    },
  }
}

/** Where a command did it. Its files are kept before its result is on record, as for every tool of the sandbox. */
async function isolationOf(deps: LinkDeps, server: McpServer, effect?: Effect): Promise<Omit<StepResult, 'output'>> {
  if (!deps.sandbox || server.command === undefined || deps.stdioTransportOf) return {}
  const room = await deps.sandbox.get()
  if (effect !== undefined && effect !== 'read') await room.keep()
  const { backend, accel, image } = room.offered
  const { kernelRelease } = room
  return { isolationUsed: backend, meta: { backend, kernelRelease, ...(accel && { accel }), ...(image && { image }) } }
}

type Hashes = ReadonlyMap<string, string>

/** Ends the run where a server is not what the version was shown: what it is now was never reviewed. */
function refuseChanged(expected: Hashes, offered: Hashes, server: string, stepId: string): void {
  for (const [name, hash] of expected) {
    const now = offered.get(name)
    if (now === hash) continue
    const what = now === undefined ? 'no longer offers' : 'has changed the definition of'
    const message = `the MCP server ${server} ${what} ${name} since this version of the agent first saw it`
    throw new RunFailure('mcp_failed', `${message}: look at it and publish a new version`, { stepId })
  }
}

function toOutput({ isError, ...rest }: McpResult, name: string): unknown {
  if (!isError) return rest
  const text = textOf(rest.content).slice(0, MOST_ERROR_TEXT)
  throw new ToolRefusal(text === '' ? `${name} failed without saying why` : text)
}

function inStep(failure: RunFailure, stepId: string): RunFailure {
  return failure.stepId === undefined
    ? new RunFailure(failure.code, failure.message, { stepId, cause: failure })
    : failure
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return ''
  return content
    .flatMap((one: unknown) =>
      typeof one === 'object' && one !== null && 'text' in one && typeof one.text === 'string' ? [one.text] : [],
    )
    .join('\n')
}

interface GrantedFetch {
  fetch: EgressClient['fetch']
  grants: McpGrants
  tenantId: string
  url: string
  /** Receives each token before it is sent. */
  learn: (token: string) => void
}

/**
 * Sends what goes to a server with the token that was granted for it, and once more with another where that one is refused:
 * a 401 has done nothing. Without a grant everything is sent as it is.
 */
function grantedFetch({ fetch, grants, tenantId, url, learn }: GrantedFetch): EgressClient['fetch'] {
  return async (to, init) => {
    const token = await grants.tokenFor(tenantId, url)
    if (token === undefined) return fetch(to, init)
    const send = (used: string) => {
      learn(used)
      return fetch(to, { ...init, headers: { ...init.headers, authorization: `Bearer ${used}` } })
    }
    const answer = await send(token)
    if (answer.status !== 401) return answer
    const other = await grants.renewed(tenantId, url, token)
    if (other === undefined) return answer
    await answer.body?.cancel()
    return send(other)
  }
}

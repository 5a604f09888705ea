import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { VERSION } from '../../../shared/version.ts'
import { StepFailure } from '../failure.ts'
import { definitionOf, type McpDefinition } from './definition.ts'
import { type Broken, KEY_META } from './http-transport.ts'

/** What a tool gave, without what is meant for the protocol alone. */
export interface McpResult {
  content: unknown
  structuredContent?: unknown
  isError: boolean
}

export interface McpConnection {
  /** False once the other side is gone. */
  readonly alive: boolean
  /** The server said that its tools have changed since they were last listed. */
  readonly changed: boolean
  list(signal: AbortSignal): Promise<McpDefinition[]>
  call(name: string, args: Record<string, unknown>, call: { key: string; signal: AbortSignal }): Promise<McpResult>
  close(): void
}

export type OpenTransport = (broken: Broken) => Promise<Transport & { terminateSession?: () => Promise<void> }>

const MOST_PAGES = 50
const MOST_TOOLS = 500
const MOST_LISTED = 1024 * 1024
/** Deadlines are the step's; the SDK's own would only be in the way. */
const NEVER_MS = 2 ** 31 - 1
const GOODBYE_MS = 2000

type SdkTypes = typeof import('@modelcontextprotocol/sdk/types.js')

const within = (signal: AbortSignal) => ({ signal, timeout: NEVER_MS })

/** A session with one server: greeted, and ready to be asked. */
export async function connectMcp(open: OpenTransport, signal: AbortSignal): Promise<McpConnection> {
  const [{ Client: McpClient }, { CfWorkerJsonSchemaValidator }, types] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/validation/cfworker'),
    import('@modelcontextprotocol/sdk/types.js'),
  ])
  const waiting = new Map<string, (error: StepFailure) => void>()
  const transport = await open((key, error) => waiting.get(key)?.(error))
  // It offers nothing to the server: nothing of a run is sampled, asked or listed from outside.
  const client: Client = new McpClient(
    { name: 'waybill', version: VERSION },
    { capabilities: {}, jsonSchemaValidator: new CfWorkerJsonSchemaValidator() },
  )
  let alive = true
  let changed = false
  client.onclose = () => {
    alive = false
  }
  // Of a connection that ended the SDK says no more than that; a pipe says why.
  let why: StepFailure | undefined
  client.onerror = error => {
    if (error instanceof StepFailure) why = error
  }
  const told = (error: unknown): unknown => (!alive && why ? why : error)
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => {
    changed = true
  })
  const leave = () => void transport.close().catch(() => undefined)
  try {
    await client.connect(transport, within(signal))
  } catch (error) {
    leave()
    throw told(error)
  }

  return {
    get alive() {
      return alive
    },
    get changed() {
      return changed
    },
    async list(of) {
      changed = false
      try {
        return await listTools(client, types, of)
      } catch (error) {
        throw told(error)
      }
    },
    async call(name, args, { key, signal: of }) {
      const lost = Promise.withResolvers<never>()
      waiting.set(key, lost.reject)
      const stop = new AbortController()
      const onAbort = () => stop.abort(of.reason)
      if (of.aborted) onAbort()
      of.addEventListener('abort', onAbort, { once: true })
      try {
        const params = { name, arguments: args, _meta: { [KEY_META]: key } }
        const asked = client.request({ method: 'tools/call', params }, types.CallToolResultSchema, within(stop.signal))
        const { content, structuredContent, isError } = await Promise.race([asked, lost.promise])
        return { content, isError: isError === true, ...(structuredContent !== undefined && { structuredContent }) }
      } catch (error) {
        throw told(error)
      } finally {
        waiting.delete(key)
        of.removeEventListener('abort', onAbort)
        stop.abort(new Error('the call is over'))
      }
    },
    close() {
      alive = false
      const { terminateSession } = transport
      if (terminateSession === undefined) return leave()
      // Said without waiting for an answer: the run has its result.
      const timer = setTimeout(leave, GOODBYE_MS)
      void terminateSession
        .call(transport)
        .catch(() => undefined)
        .finally(() => {
          clearTimeout(timer)
          leave()
        })
    },
  }
}

/** Every page of what a server offers, up to a bound. */
async function listTools(client: Client, types: SdkTypes, of: AbortSignal): Promise<McpDefinition[]> {
  const found: McpDefinition[] = []
  let size = 0
  let cursor: string | undefined
  for (let page = 1; ; page++) {
    const params = cursor === undefined ? {} : { cursor }
    const listed = await client.request({ method: 'tools/list', params }, types.ListToolsResultSchema, within(of))
    found.push(...listed.tools.map(definitionOf))
    size += JSON.stringify(listed.tools).length
    if (found.length > MOST_TOOLS || size > MOST_LISTED) {
      const most = `${MOST_TOOLS} tools or ${MOST_LISTED} characters of definitions`
      throw new StepFailure('mcp_failed', `the server lists more than ${most}`)
    }
    cursor = listed.nextCursor
    if (cursor === undefined) return found
    if (page === MOST_PAGES) throw new StepFailure('mcp_failed', `the server lists its tools without an end`)
  }
}

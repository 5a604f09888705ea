import type { Client, Transport } from '@modelcontextprotocol/client'
import { VERSION } from '../../../shared/version.ts'
import { StepFailure } from '../failure.ts'
import { definitionOf, type McpDefinition } from './definition.ts'
import { refusesGreeting } from './fault.ts'
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
  call(
    tool: McpDefinition,
    args: Record<string, unknown>,
    call: { key: string; signal: AbortSignal },
  ): Promise<McpResult>
  close(): void
}

export type OpenTransport = (broken: Broken) => Promise<Transport & { terminateSession?: () => Promise<void> }>

const MOST_PAGES = 50
const MOST_TOOLS = 500
const MOST_LISTED = 1024 * 1024
/** Deadlines are the step's; the SDK's own would only be in the way. */
const NEVER_MS = 2 ** 31 - 1
const GOODBYE_MS = 2000
/** Answers to a server that are under way at once; it gets no others meanwhile. */
export const MOST_ANSWERS = 16

/** The revision without a greeting: each request says all that the server has to know of the client. */
const WITHOUT_GREETING = '2026-07-28'

const within = (signal: AbortSignal) => ({ signal, timeout: NEVER_MS })

/**
 * A connection to one server, ready to be asked. Servers are greeted as all revisions until 2025-11-25 want it; one that refuses the greeting
 * is asked whether it speaks the revision without. The other way round a server of today would see a request that it does not know.
 */
export async function connectMcp(open: OpenTransport, signal: AbortSignal): Promise<McpConnection> {
  try {
    return await connect(open, signal, 'legacy')
  } catch (refused) {
    if (!refusesGreeting(refused)) throw refused
    return connect(open, signal, { pin: WITHOUT_GREETING }).catch(() => {
      throw signal.aborted ? signal.reason : refused
    })
  }
}

type Negotiation = 'legacy' | { pin: string }

/** It offers nothing to the server: nothing of a run is sampled, asked or listed from outside. */
async function createClient(mode: Negotiation): Promise<Client> {
  const [{ Client: McpClient }, { CfWorkerJsonSchemaValidator }] = await Promise.all([
    import('@modelcontextprotocol/client'),
    import('@modelcontextprotocol/client/validators/cf-worker'),
  ])
  return new McpClient(
    { name: 'waybill', version: VERSION },
    {
      capabilities: {},
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
      versionNegotiation: { mode },
      inputRequired: { autoFulfill: false },
    },
  )
}

async function connect(open: OpenTransport, signal: AbortSignal, mode: Negotiation): Promise<McpConnection> {
  const waiting = new Map<string, (error: StepFailure) => void>()
  const transport = await open((key, error) => waiting.get(key)?.(error))
  limitAnswers(transport)
  const client = await createClient(mode)
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
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    changed = true
  })
  const leave = () => void transport.close().catch(() => undefined)
  // The SDK asks for the revision without the caller's signal.
  signal.addEventListener('abort', leave, { once: true })
  try {
    signal.throwIfAborted()
    await client.connect(transport, within(signal))
  } catch (error) {
    leave()
    throw signal.aborted ? signal.reason : told(error)
  } finally {
    signal.removeEventListener('abort', leave)
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
        return await listTools(client, of)
      } catch (error) {
        throw told(error)
      }
    },
    async call({ name, inputSchema }, args, { key, signal: of }) {
      const lost = Promise.withResolvers<never>()
      waiting.set(key, lost.reject)
      const stop = new AbortController()
      const onAbort = () => stop.abort(of.reason)
      if (of.aborted) onAbort()
      of.addEventListener('abort', onAbort, { once: true })
      try {
        const params = { name, arguments: args, _meta: { [KEY_META]: key } }
        // Of the definition the SDK gets what names headers, and not the schema of a result, which it would hold against it on this thread.
        const asked = client.callTool(params, { ...within(stop.signal), toolDefinition: { name, inputSchema } })
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

/** A server is answered with a refusal or to its ping. One that asks without an end gets no answer beyond a few at a time: each is a request to it. */
function limitAnswers(transport: Transport): void {
  const send = transport.send.bind(transport)
  let open = 0
  transport.send = async (message, options) => {
    if ('method' in message) return send(message, options)
    if (open === MOST_ANSWERS) return
    open++
    try {
      await send(message, options)
    } finally {
      open--
    }
  }
}

/** Every page of what a server offers, up to a bound. */
async function listTools(client: Client, of: AbortSignal): Promise<McpDefinition[]> {
  const found: McpDefinition[] = []
  let size = 0
  let cursor: string | undefined
  for (let page = 1; ; page++) {
    const params = cursor === undefined ? {} : { cursor }
    const listed = await client.request({ method: 'tools/list', params }, within(of))
    const definitions = listed.tools.map(definitionOf)
    found.push(...definitions)
    size += JSON.stringify(definitions).length
    if (found.length > MOST_TOOLS || size > MOST_LISTED) {
      const most = `${MOST_TOOLS} tools or ${MOST_LISTED} characters of definitions`
      throw new StepFailure('mcp_failed', `the server lists more than ${most}`)
    }
    cursor = listed.nextCursor
    if (cursor === undefined) return found
    if (page === MOST_PAGES) throw new StepFailure('mcp_failed', `the server lists its tools without an end`)
  }
}

import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import { Hono } from 'hono'
import { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import { readBody } from '../../shared/http/body-limit.ts'
import { parseJson } from '../../shared/http/validate.ts'
import { VERSION } from '../../shared/version.ts'
import { freeForm, int, text } from '../../shared/wire/bounds.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import { check, sentence } from '../../shared/wire/issues.ts'
import { approvalStatus } from '../../shared/wire/runtime/approval.ts'
import { agentEndpoints } from '../../shared/wire/runtime/endpoints/agents.ts'
import { approvalEndpoints } from '../../shared/wire/runtime/endpoints/approvals.ts'
import { runEndpoints } from '../../shared/wire/runtime/endpoints/runs.ts'
import { runStatus } from '../../shared/wire/runtime/run.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import { inexactProblem } from '../execution/inexact-problem.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'

export interface McpRouteDeps {
  /** The API of this very service, as any client would call it. */
  call: (request: Request) => Promise<Response>
  maxBodyBytes: number
  /** Whose pages may call. Programs name no origin. */
  origins: readonly string[]
}

const INSTRUCTIONS = 'Starts and follows runs of agents, and decides what they wait for. Runs go on by themselves.'

/**
 * The runtime as an MCP server over streamable HTTP, behind the gate of the API. Each request stands alone: there is no
 * session to lose, so any process may answer it and a restart is not noticed.
 */
export function mcpRoute({ call, maxBodyBytes, origins }: McpRouteDeps) {
  return new Hono<RuntimeHttpEnv>()
    .post('/mcp', async c => {
      const origin = c.req.header('origin')
      if (origin !== undefined && !origins.includes(origin)) throw foreignPage(origin)
      const { body: parsedBody, inexact } = parse(await readBody(c.req.raw, maxBodyBytes))
      const [sdk, { CfWorkerJsonSchemaValidator }] = await Promise.all([
        import('@modelcontextprotocol/server'),
        import('@modelcontextprotocol/server/validators/cf-worker'),
      ])
      const { scopes } = c.get('principal')
      const caller = { authorization: c.req.header('authorization') ?? '', requestId: c.get('requestId'), call }
      const serverOf = () => {
        const server = new sdk.Server(
          { name: 'waybill-runtime', version: VERSION },
          {
            capabilities: { tools: {} },
            instructions: INSTRUCTIONS,
            jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
          },
        )
        server.setRequestHandler('tools/list', async () => ({ tools: toolsFor(scopes) }))
        server.setRequestHandler('tools/call', async ({ params }) =>
          inexact === undefined ? callTool(caller, params.name, params.arguments, params._meta) : failure(inexact),
        )
        return server
      }
      const { method, url, headers } = c.req.raw
      const request = new Request(url, { method, headers })
      if (!(await sdk.isLegacyRequest(request, parsedBody))) {
        // Nothing of it changes while a client listens, so there is nothing to subscribe to.
        const handler = sdk.createMcpHandler(serverOf, { legacy: 'reject', maxSubscriptions: 0 })
        return handler.fetch(request, { parsedBody })
      }
      const transport = new sdk.WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
      await serverOf().connect(transport)
      return transport.handleRequest(request, { parsedBody })
    })
    .on(['GET', 'DELETE'], '/mcp', c => {
      // The protocol's own word for a server that streams nothing by itself and keeps no sessions.
      return c.json({ error: 'this server answers POST only', code: 'not_found' }, 405, { allow: 'POST' })
    })
}

/** The protocol wants it refused with 403, whatever key the page has; the host of the request is no proof, since a page chooses its name. */
const foreignPage = (origin: string) =>
  new ApiError(
    'csrf',
    `a page of ${origin} sent this: put its origin into PLATFORM_CORS_ORIGINS, or call from a program`,
  )

function parse(bytes: Uint8Array): { body: unknown; inexact: string | undefined } {
  const body = parseJson(bytes)
  if (body === undefined) throw new ApiError('bad_json', 'the body is empty: send a JSON-RPC message')
  return { body, inexact: inexactProblem(new TextDecoder().decode(bytes)) }
}

/** What a key may not do is not offered to its model. */
function toolsFor(scopes: readonly string[]): Tool[] {
  return Object.entries(runtimeTools).flatMap(([name, { endpoint, description, input }]) => {
    if (!allows(scopes, endpoint.scopes ?? [])) return []
    const { $schema: _, ...inputSchema } = z.toJSONSchema(input.strict(), { io: 'input' })
    const readOnlyHint = endpoint.method === 'GET'
    return [
      {
        name,
        description,
        inputSchema: inputSchema as Tool['inputSchema'],
        annotations: { title: endpoint.summary, readOnlyHint, destructiveHint: !readOnlyHint && name !== 'start_run' },
      },
    ]
  })
}

interface Caller {
  /** The bearer header of the request that the call came with. */
  authorization: string
  requestId: string
  call: (request: Request) => Promise<Response>
}

/** Where a client says under which key a call counts once. */
const KEY_META = 'waybill/idempotencyKey'
/** Characters of a member of a run. */
const MOST_IN_LIST = 1000
const HERE = 'http://runtime.invalid'

/** Calls a tool: the operation behind it, with the key of the caller. Whatever it answers, refusals included, is a result. */
async function callTool(
  { authorization, requestId, call }: Caller,
  name: string,
  given: unknown,
  meta: Readonly<Record<string, unknown>> = {},
): Promise<CallToolResult> {
  const tool = Object.hasOwn(runtimeTools, name) ? runtimeTools[name] : undefined
  if (!tool) return failure(`there is no tool called ${name}; there are ${Object.keys(runtimeTools).join(', ')}`)
  const checked = check(tool.input.strict(), given ?? {})
  if (!checked.ok) return failure(sentence(checked.details))
  const key = meta[KEY_META]
  const headers = {
    authorization,
    'x-request-id': requestId,
    'content-type': 'application/json',
    ...(tool.endpoint.idempotent && typeof key === 'string' && { 'idempotency-key': key }),
  }
  const answer = await call(requestOf(tool, checked.value, headers))
  const body = (await answer.json()) as unknown
  if (!answer.ok) return failure(messageIn(body))
  const items = name === 'list_runs' ? (body as object[]).map(brief) : body
  const found = Array.isArray(items) ? { items, ...next(answer) } : (body as Record<string, unknown>)
  return { content: [{ type: 'text', text: JSON.stringify(found) }], structuredContent: found }
}

function requestOf(
  { endpoint }: RuntimeTool,
  given: Record<string, unknown>,
  headers: Record<string, string>,
): Request {
  const rest = { ...given }
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = String(rest[name])
    delete rest[name]
    // A segment of dots alone would climb out of its place; encoded twice it names nothing.
    return /^\.+$/.test(value) ? encodeURIComponent('%2e') : encodeURIComponent(value.toWellFormed())
  })
  const url = new URL(path, HERE)
  if (endpoint.method !== 'GET') {
    return new Request(url, { method: endpoint.method, headers, body: JSON.stringify(rest) })
  }
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) url.searchParams.set(name, String(value))
  return new Request(url, { headers })
}

/** A run as a list shows it to a model, whose context fifty prompts would fill. */
function brief(run: object): object {
  const members = Object.entries(run).map(([name, value]: [string, unknown]) => {
    const said = typeof value === 'string' ? value : JSON.stringify(value)
    if (said.length <= MOST_IN_LIST) return [name, value]
    const beginning = said.slice(0, MOST_IN_LIST).toWellFormed()
    return [name, `${beginning}… (${said.length} characters in all: get_run has them)`]
  })
  return Object.fromEntries(members) as object
}

function next(answer: Response): { nextCursor?: string } {
  const [, link] = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '') ?? []
  const cursor = link === undefined ? null : new URL(link, HERE).searchParams.get('cursor')
  return cursor === null ? {} : { nextCursor: cursor }
}

function messageIn(body: unknown): string {
  const { error, code } = (typeof body === 'object' && body !== null ? body : {}) as { error?: string; code?: string }
  return `${error ?? 'failed'}${code === undefined ? '' : ` (${code})`}`
}

function failure(message: string): CallToolResult {
  return { content: [{ type: 'text', text: message }], isError: true }
}

/** An operation of the API under a name that models read; scopes and checks are those of the operation. */
interface RuntimeTool {
  endpoint: Endpoint
  description: string
  input: z.ZodObject
}

const page = {
  limit: int(1, 200).optional().describe('How many at most; 50 unless told'),
  cursor: text(1, 4096).optional().describe('The nextCursor of the page before'),
}
const runId = z.object({ id: text(1, 512).describe('The id of the run') })
const approvalId = { id: text(1, 512).describe('The id of the approval') }
const comment = text(0, 4000).optional().describe('Kept with the decision')

const runtimeTools: Readonly<Record<string, RuntimeTool>> = {
  list_agents: {
    endpoint: agentEndpoints.list,
    description: 'Lists the agents, newest first.',
    input: z.object(page),
  },
  get_agent: {
    endpoint: agentEndpoints.get,
    description: 'Reads an agent with its manifest.',
    input: z.object({ name: text(1, 128).describe('The name of the agent') }),
  },
  start_run: {
    endpoint: runEndpoints.create,
    description: 'Starts a run of an agent and answers at once; get_run says how it goes.',
    input: z.object({
      agentName: text(1, 128).describe('The name of the agent'),
      input: freeForm.optional().describe('For a plain task: {"prompt": "…"}'),
      labels: z.record(z.string(), z.string()).optional(),
    }),
  },
  get_run: { endpoint: runEndpoints.get, description: 'Reads a run: its status, output, cost or error.', input: runId },
  list_runs: {
    endpoint: runEndpoints.list,
    description: 'Lists runs, newest first; what is long is cut, and get_run has it whole.',
    input: z.object({ agentName: text(1, 128).optional(), status: runStatus.optional(), ...page }),
  },
  list_steps: {
    endpoint: runEndpoints.steps,
    description: 'The steps of a run: model calls, tool calls, approvals.',
    input: runId,
  },
  cancel_run: {
    endpoint: runEndpoints.cancel,
    description: 'Cancels a run that has not ended.',
    input: runId.extend({ reason: text(0, 2000).optional() }),
  },
  list_approvals: {
    endpoint: approvalEndpoints.list,
    description: 'Lists what runs wait for a human to decide, and what was decided.',
    input: z.object({ status: approvalStatus.optional(), runId: text(1, 512).optional(), ...page }),
  },
  approve: {
    endpoint: approvalEndpoints.approve,
    description:
      'Approves what a run waits for. A question is answered with output; an uncertain step needs resolution.',
    input: z.object({
      ...approvalId,
      comment,
      resolution: z.enum(['retry', 'completed']).optional(),
      output: z.unknown().optional(),
    }),
  },
  reject: {
    endpoint: approvalEndpoints.reject,
    description: 'Rejects what a run waits for.',
    input: z.object({ ...approvalId, comment }),
  },
}

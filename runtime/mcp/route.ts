import type { Tool } from '@modelcontextprotocol/server'
import { Hono } from 'hono'
import { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import { readBody } from '../../shared/http/body-limit.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { VERSION } from '../../shared/version.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import { inexactProblem } from '../execution/inexact-problem.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import { callTool, failure } from './call-tool.ts'
import { runtimeTools } from './tools.ts'

export interface McpRouteDeps {
  /** The API of this very service, as any client would call it. */
  call: (request: Request) => Promise<Response>
  maxBodyBytes: number
}

const INSTRUCTIONS = 'Starts and follows runs of agents, and decides what they wait for. Runs go on by themselves.'

/**
 * The runtime as an MCP server over streamable HTTP, behind the gate of the API. Each request stands alone: there is no
 * session to lose, so any process may answer it and a restart is not noticed.
 */
export function mcpRoute({ call, maxBodyBytes }: McpRouteDeps) {
  return new Hono<RuntimeHttpEnv>()
    .post('/mcp', async c => {
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

function parse(bytes: Uint8Array): { body: unknown; inexact: string | undefined } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { body: readJson(text), inexact: inexactProblem(text) }
  } catch (cause) {
    throw new ApiError('bad_json', 'the body is not JSON: send a JSON-RPC message', { cause })
  }
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

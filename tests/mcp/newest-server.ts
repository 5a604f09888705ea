import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { type CallToolResult, createMcpHandler, type InputRequiredResult, Server } from '@modelcontextprotocol/server'

type OnCall = (params: {
  name: string
  arguments?: Record<string, unknown>
  _meta?: Record<string, unknown>
}) => CallToolResult | InputRequiredResult

const tools = [
  { name: 'look', inputSchema: { type: 'object' as const }, annotations: { readOnlyHint: true } },
  {
    name: 'place',
    // A server of this revision holds the header against the argument, and refuses the call where they differ.
    inputSchema: {
      type: 'object' as const,
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, amount: { type: 'number' } },
    },
    outputSchema: { type: 'object' as const, properties: { amount: { type: 'number' } } },
  },
]

/** A server of the official SDK that speaks the revision of 2026-07-28 and no other. */
export async function newestServer(onCall: OnCall) {
  const seen: { method: string; headers: Headers }[] = []
  const state = {
    /** Answers calls after the first with this, past the SDK. */
    onSecondCall: undefined as object | undefined,
  }
  const handler = createMcpHandler(
    () => {
      const server = new Server({ name: 'newest', version: '1' }, { capabilities: { tools: {} } })
      server.setRequestHandler('tools/list', () => ({ tools }))
      server.setRequestHandler('tools/call', ({ params }) => onCall(params))
      return server
    },
    { legacy: 'reject' },
  )
  const server = createServer(
    getRequestListener(async request => {
      const body = (await request.json()) as { id: number; method: string }
      seen.push({ method: body.method, headers: request.headers })
      if (state.onSecondCall && seen.filter(({ method }) => method === 'tools/call').length > 1) {
        return Response.json({ jsonrpc: '2.0', id: body.id, result: state.onSecondCall })
      }
      return handler.fetch(request, { parsedBody: body })
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(state, {
    origin,
    url: `${origin}/mcp`,
    seen,
    async close() {
      await handler.close()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

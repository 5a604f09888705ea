import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ToolCallSeen {
  name: string
  arguments: Record<string, unknown>
  meta: Record<string, unknown>
  headers: IncomingHttpHeaders
}

/** Answers a call: with a result, or by doing something odd to the response; then nothing may be returned. */
export type OnCall = (
  call: ToolCallSeen,
  raw: { response: ServerResponse; id: unknown },
) => object | undefined | Promise<object | undefined>

export const tool = (name: string, annotations: object = {}, description = `does ${name}`) => ({
  name,
  description,
  annotations,
  inputSchema: { type: 'object', properties: { n: { type: 'number' } } },
})

export const text = (said: string) => ({ content: [{ type: 'text', text: said }] })

/** An MCP server over streamable HTTP that a test speaks for, down to the bytes of an answer. */
export async function scriptedServer() {
  const state = {
    tools: [tool('look', { readOnlyHint: true }), tool('write')] as object[],
    onCall: (({ name }) => text(`${name} done`)) as OnCall,
    /** The answer to a stream that is resumed. */
    onResume: undefined as ((response: ServerResponse, lastEventId: string) => void) | undefined,
    /** The bytes of an answer, for those that no value here could be written as. */
    written: (text: string) => text,
    onAnswer: (response: ServerResponse): unknown => response.writeHead(202).end(),
    /** Sessions of another number are not known. */
    session: 1,
    /** Answers everything with this. */
    status: undefined as number | undefined,
    seen: [] as string[],
    calls: [] as ToolCallSeen[],
  }

  const server = createServer(async (request, response) => {
    const { method, headers } = request
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (state.status !== undefined) return response.writeHead(state.status).end()
    if (method === 'GET' && state.onResume) {
      return state.onResume(response, String(headers['last-event-id']))
    }
    if (method !== 'POST') return response.writeHead(method === 'DELETE' ? 200 : 405).end()
    const message = JSON.parse(Buffer.concat(chunks).toString()) as {
      id?: unknown
      method?: string
      params?: { name: string; arguments?: Record<string, unknown>; _meta?: Record<string, unknown> }
    }
    // An answer to what the server asked.
    if (message.method === undefined) return state.onAnswer(response)
    state.seen.push(message.method)
    const answer = (result: object) =>
      response
        .writeHead(200, {
          'content-type': 'application/json',
          ...(message.method === 'initialize' && { 'mcp-session-id': `s${state.session}` }),
        })
        .end(state.written(JSON.stringify({ jsonrpc: '2.0', id: message.id, result })))
    if (message.method === 'initialize') {
      const capabilities = { tools: { listChanged: true } }
      return answer({ protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'scripted', version: '1' } })
    }
    if (headers['mcp-session-id'] !== `s${state.session}`) {
      return response.writeHead(404, { 'content-type': 'text/plain' }).end('session not found')
    }
    if (message.id === undefined) return response.writeHead(202).end()
    if (message.method === 'tools/list') return answer({ tools: state.tools })
    const { name, arguments: given = {}, _meta: meta = {} } = message.params!
    const call = { name, arguments: given, meta, headers }
    state.calls.push(call)
    const result = await state.onCall(call, { response, id: message.id })
    if (result) answer(result)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(state, {
    origin,
    url: `${origin}/mcp`,
    /** Takes no connection for so long. */
    restart(ms: number) {
      const { port } = server.address() as AddressInfo
      server.close()
      server.closeAllConnections()
      setTimeout(() => server.listen(port, '127.0.0.1'), ms)
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

export type ScriptedServer = Awaited<ReturnType<typeof scriptedServer>>

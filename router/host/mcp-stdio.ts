import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { ApiError } from '../../shared/http/api-error.ts'
import { VERSION } from '../../shared/version.ts'
import { describeTools } from '../mcp/describe-tools.ts'
import { RESOURCE_TEMPLATES, RESOURCES } from '../mcp/resources.ts'
import type { auditSession } from './audit-session.ts'

type Session = Awaited<ReturnType<typeof auditSession>>

/**
 * Serves an audit session over standard input and output, until the client closes it. Requests are answered by the low-level server: tools
 * check their own input, so that a complaint is a sentence, and print their own schemas.
 */
export async function serveAudit(session: Session): Promise<void> {
  // Before the first byte is read: a client may say goodbye at once.
  const ended = once(process.stdin, 'end')
  // The transport drops what is under way when its input ends, so it does not hear of the end: a script writes its calls and closes.
  const input = process.stdin.pipe(new PassThrough(), { end: false })
  const open = new Set<Promise<unknown>>()
  const served = serveStdio(() => auditServer(session, open), { transport: new StdioServerTransport(input) })
  await ended
  // What was read last has started by then, and an answer is written a turn after it is there.
  for (let turns = 0; turns < 2; turns = open.size > 0 ? 0 : turns + 1) {
    await Promise.allSettled(open)
    await setImmediate()
  }
  await served.close()
}

function auditServer(session: Session, open: Set<Promise<unknown>>): Server {
  const followed = <T>(call: Promise<T>): Promise<T> => {
    open.add(call)
    const over = () => open.delete(call)
    call.then(over, over)
    return call
  }
  const server = new Server(
    { name: 'waybill-router', version: VERSION },
    { capabilities: { tools: {}, resources: {} } },
  )
  server.setRequestHandler('tools/list', async () => ({ tools: describeTools() }))
  server.setRequestHandler('tools/call', ({ params }) => followed(session.call(params.name, params.arguments)))
  server.setRequestHandler('resources/list', async () => ({ resources: RESOURCES }))
  server.setRequestHandler('resources/templates/list', async () => ({ resourceTemplates: RESOURCE_TEMPLATES }))
  server.setRequestHandler('resources/read', async ({ params }) => {
    try {
      return await followed(session.read(params.uri))
    } catch (error) {
      if (!(error instanceof ApiError)) throw new ProtocolError(ProtocolErrorCode.InternalError, 'internal error')
      throw new ResourceNotFoundError(params.uri, error.message)
    }
  })
  return server
}

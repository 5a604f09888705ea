import { once } from 'node:events'
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
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
  const served = serveStdio(() => auditServer(session))
  await ended
  await served.close()
}

function auditServer(session: Session): Server {
  const server = new Server(
    { name: 'waybill-router', version: VERSION },
    { capabilities: { tools: {}, resources: {} } },
  )
  server.setRequestHandler('tools/list', async () => ({ tools: describeTools() }))
  server.setRequestHandler('tools/call', ({ params }) => session.call(params.name, params.arguments))
  server.setRequestHandler('resources/list', async () => ({ resources: RESOURCES }))
  server.setRequestHandler('resources/templates/list', async () => ({ resourceTemplates: RESOURCE_TEMPLATES }))
  server.setRequestHandler('resources/read', async ({ params }) => {
    try {
      return await session.read(params.uri)
    } catch (error) {
      if (!(error instanceof ApiError)) throw new ProtocolError(ProtocolErrorCode.InternalError, 'internal error')
      throw new ResourceNotFoundError(params.uri, error.message)
    }
  })
  return server
}

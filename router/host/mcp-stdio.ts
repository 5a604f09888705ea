import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { ApiError } from '../../shared/http/api-error.ts'
import { VERSION } from '../../shared/version.ts'
import { describeTools } from '../mcp/describe-tools.ts'
import { RESOURCE_TEMPLATES, RESOURCES } from '../mcp/resources.ts'
import type { auditSession } from './audit-session.ts'

type Session = Awaited<ReturnType<typeof auditSession>>

/** Not found, in the numbers of the protocol. */
const RESOURCE_NOT_FOUND = -32002

/**
 * Serves an audit session over standard input and output, until the client closes it. Requests are answered by the low-level server: tools
 * check their own input, so that a complaint is a sentence, and print their own schemas.
 */
export async function serveAudit(session: Session): Promise<void> {
  const server = new Server(
    { name: 'waybill-router', version: VERSION },
    { capabilities: { tools: {}, resources: {} } },
  )
  server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: describeTools() }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => session.call(params.name, params.arguments))
  server.setRequestHandler(ListResourcesRequestSchema, async () => ({ resources: RESOURCES }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, async () => ({ resourceTemplates: RESOURCE_TEMPLATES }))
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params }) => {
    try {
      return await session.read(params.uri)
    } catch (error) {
      if (!(error instanceof ApiError)) throw new McpError(ErrorCode.InternalError, 'internal error')
      throw new McpError(RESOURCE_NOT_FOUND, error.message, { uri: params.uri })
    }
  })
  const closed = new Promise<void>(resolve => {
    server.onclose = resolve
  })
  // The transport does not look for the end of its input, which is how a client says goodbye.
  process.stdin.once('end', () => void server.close())
  await server.connect(new StdioServerTransport())
  await closed
}

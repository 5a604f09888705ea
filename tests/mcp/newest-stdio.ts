import { Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

// A command that speaks the revision of 2026-07-28 and no other.
serveStdio(
  () => {
    const server = new Server({ name: 'newest', version: '1' }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'look', inputSchema: { type: 'object' } }] }))
    server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: 'seen' }] }))
    return server
  },
  { legacy: 'reject' },
)

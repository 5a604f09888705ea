import { createServer } from 'node:http'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'

/** Reads HTTP from connections of a guest. Whatever it sends, the parser is Node's, and the worst it gets is a 400. */
export function httpOver(answer: (request: Request) => Promise<Response>): (stream: Duplex) => void {
  const server = createServer({ maxHeaderSize: 8192 }, getRequestListener(answer, { overrideGlobalObjects: false }))
  return stream => void server.emit('connection', stream)
}

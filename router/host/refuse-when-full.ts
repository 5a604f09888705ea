import type { IncomingMessage, ServerResponse } from 'node:http'
import { dialects } from '../../shared/dialects/dialects.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import { targetOf } from '../observe/target.ts'
import { pairs } from './undici-transport.ts'

/**
 * Refuses a provider call when as many as are allowed are being answered: 503 at once, in the caller's dialect, with no
 * waiting line. False for the router's own paths, which must answer while it is busy.
 */
export function refuseWhenFull(request: IncomingMessage, response: ServerResponse, outHeaders: boolean): boolean {
  const { method = 'GET', url = '/', rawHeaders } = request
  const to = targetOf(method, url.split('?', 1)[0]!, pairs(rawHeaders))
  if (!to) return false
  const traceId = uuidv7()
  const message = 'as many calls as this router takes at once are being answered: try again'
  const { status, headers, body } = dialects[to.dialect].routerError('overloaded', message, traceId)
  const own = outHeaders ? [responseHeaders.traceId, traceId] : []
  response.writeHead(status, [...headers.flat(), ...own, 'content-length', String(body.length), 'connection', 'close'])
  response.end(body)
  return true
}

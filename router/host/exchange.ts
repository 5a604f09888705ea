import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Target } from '../observe/target.ts'
import type { HeaderList } from '../upstream/transport.ts'

/** A request that was taken, on Node's own objects. */
export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  traceId: string
  method: string
  path: string
  /** Path and query, as they came. */
  target: string
  headers: HeaderList
  to: Target
}

/** Gives the whole body of a request, once it is there. */
export function collect(request: IncomingMessage, use: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => use(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
}

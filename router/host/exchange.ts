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

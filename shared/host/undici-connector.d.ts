// Two more parts of the pinned client beside those that the router names: what opens a socket for a pool, and a call with a body to read.
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export = buildConnector
}
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici'

  /** A method that only the entry file puts on the dispatchers. */
  const request: (this: Dispatcher, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>
  export = request
}

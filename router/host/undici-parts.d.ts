// The three parts of the client that are used. Its entry file loads everything else it has, a second fetch and
// WebSockets among it: 16 MB and 95 ms of every start. The version is pinned, so the paths hold.
declare module 'undici/lib/dispatcher/agent.js' {
  import { Agent } from 'undici'
  export = Agent
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici'
  export = errors
}
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici'

  /** A method that only the entry file puts on the dispatchers. */
  const request: (this: Dispatcher, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>
  export = request
}

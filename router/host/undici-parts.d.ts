// The two parts of the client that are used. Its entry file loads everything else it has, a second fetch and
// WebSockets among it: 16 MB and 95 ms of every start. The version is pinned, so the paths hold.
declare module 'undici/lib/dispatcher/agent.js' {
  import { Agent } from 'undici'
  export = Agent
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici'
  export = errors
}

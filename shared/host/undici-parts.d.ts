/** Parts of undici by their own files: its index loads four times as much, of which a pool of connections uses nothing. */
declare module 'undici/lib/dispatcher/agent.js' {
  import { Agent } from 'undici'
  export = Agent
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici'
  export = errors
}

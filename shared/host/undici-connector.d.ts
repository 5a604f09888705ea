// One more part of the pinned client beside those that the router names: what opens a socket for a pool.
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export = buildConnector
}

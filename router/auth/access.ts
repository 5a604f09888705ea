import type { RequestIdEnv } from '../../shared/http/request-id.ts'
import type { RouterKey } from './keys.ts'

/** Who can reach this router: programs of this machine, anyone on a network, or only the program that holds it. */
export type Reach = 'loopback' | 'network' | 'program'

export interface Access {
  keys: readonly RouterKey[]
  reach: Reach
  /** ROUTER_INSECURE: the audit is open on a network without keys. */
  insecure: boolean
  /** ROUTER_METRICS_OPEN: /metrics asks for no key. */
  metricsOpen: boolean
  /** ROUTER_ALLOWED_ORIGINS: pages that may call providers, and names besides loopback's that the router is called by. */
  allowedOrigins?: readonly string[]
}

/** Without keys callers are not distinguished; the program that holds the router decides who reaches it. */
export const OPEN_ACCESS: Access = { keys: [], reach: 'program', insecure: false, metricsOpen: false }

export interface Caller {
  /** Whose records its calls become. */
  tenantId: string
  /** The tenant it may ask about; undefined sees all. */
  sees: string | undefined
  admin: boolean
}

export interface CallerEnv {
  Variables: {
    caller: Caller
  }
}

/** What every handler behind the guard finds in its context. */
export type RouterHttpEnv = RequestIdEnv & CallerEnv

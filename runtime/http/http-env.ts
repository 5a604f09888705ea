import type { RequestIdEnv } from '../../shared/http/request-id.ts'
import type { DamagedRowError } from '../../shared/sql/db.ts'

/** The caller, once a key or a login has been accepted. */
export interface Principal {
  tenantId: string
  /** What a record names as its author: the id of the key, or of the person who is logged in. */
  keyId: string
  scopes: readonly string[]
  /** When the key ends, where it has an end: what it mints ends with it. */
  expiresMs?: number
}

/** What a host knows about a connection and a request cannot say of itself. */
export interface Connection {
  /** The caller's address, where the host can see one it may trust. */
  address?: string
  /** The caller, where the host has recognised them by another store of this installation. */
  principal?: Principal
}

/** What every handler behind the gate finds in its context. */
export type RuntimeHttpEnv = RequestIdEnv & {
  Bindings: Connection
  Variables: {
    principal: Principal
    /** Whether their key or login still holds, where that can be looked up: a stream outlives the request that opened it. */
    admitted: (() => Promise<boolean>) | undefined
    /** The checked body of a call, where its operation has one. */
    body: unknown
    /** Rows that the answer leaves out. */
    damaged?: readonly DamagedRowError[]
  }
}

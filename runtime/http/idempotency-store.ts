import type { InStatement } from '@libsql/client/web'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { retryBusy } from '../../shared/sql/db-fault.ts'
import type { idempotency } from '../schema/tables.ts'
import { openMaybe, type RecordAad, type Records } from '../vault/records.ts'

/** An attempt that was not renewed for so long is of a process that died. */
export const ATTEMPT_MS = 15_000
export const KEPT_MS = 24 * 60 * 60 * 1000

/** One use of a key. `route` is method and path, so that a key used on two objects is two keys. */
export interface Use {
  tenantId: string
  route: string
  key: string
}

export interface Attempt extends Use {
  attempt: string
  bodyHash: string
  nowMs: number
}

export interface Known {
  /** Whose it is. */
  attempt: string
  bodyHash: string
  /** The object that the call created, once that is committed. */
  bound: string | undefined
  /** The first answer, once that is stored. */
  answer: { status: number; text: string } | undefined
}

const CLEAN_EVERY_MS = 60_000

type Stored = Pick<RowOf<typeof idempotency>, 'attempt' | 'body_hash' | 'bound' | 'status' | 'answer'>

export type IdempotencyStore = ReturnType<typeof idempotencyStore>

export function idempotencyStore(db: Db, records: Records) {
  let cleanMs = 0

  return {
    /** True when this attempt may do the work: the key is unused, or its user is out of time. One statement, so of many one wins. */
    async claim({ tenantId, route, key, attempt, bodyHash, nowMs }: Attempt): Promise<boolean> {
      const claim: InStatement = {
        sql: `insert into idempotency (tenant_id, route, key, attempt, body_hash, started_ms, expires_ms)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict (tenant_id, route, key) do update set attempt = excluded.attempt, body_hash = excluded.body_hash,
  started_ms = excluded.started_ms, expires_ms = excluded.expires_ms, bound = null, status = null, answer = null
where idempotency.expires_ms <= ?6`,
        args: [tenantId, route, key, attempt, bodyHash, nowMs, nowMs + ATTEMPT_MS],
      }
      const cleaning = nowMs >= cleanMs
      if (cleaning) cleanMs = nowMs + CLEAN_EVERY_MS
      const done = await retryBusy(() => (cleaning ? db.write([claim, expired(nowMs)]) : db.write([claim])))
      return done[0]?.rowsAffected === 1
    },

    /** The first attempt is still at work. */
    async renew(attempt: Attempt, nowMs: number): Promise<void> {
      await db.execute({
        sql: `update idempotency set expires_ms = ?
where tenant_id = ? and route = ? and key = ? and attempt = ? and bound is null and status is null`,
        args: [nowMs + ATTEMPT_MS, ...place(attempt)],
      })
    },

    async get({ tenantId, route, key }: Use): Promise<Known | undefined> {
      const found = await db.execute({
        sql: 'select attempt, body_hash, bound, status, answer from idempotency where tenant_id = ? and route = ? and key = ?',
        args: [tenantId, route, key],
      })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toKnown(rows[0], records, answerAad({ tenantId, route, key }))
    },

    /** For the handler's own transaction. A lost claim makes `attempt` null, which the column refuses. */
    bind({ tenantId, route, key, attempt }: Attempt, objectId: string): InStatement {
      return {
        sql: `update idempotency set bound = ?, expires_ms = started_ms + ?, attempt = case when attempt = ? then attempt end
where tenant_id = ? and route = ? and key = ?`,
        args: [objectId, KEPT_MS, attempt, tenantId, route, key],
      }
    },

    unbind(attempt: Attempt): InStatement {
      return {
        sql: 'update idempotency set bound = null where tenant_id = ? and route = ? and key = ? and attempt = ?',
        args: place(attempt),
      }
    },

    async complete(attempt: Attempt, { status, text }: { status: number; text: string }): Promise<void> {
      await retryBusy(() =>
        db.execute({
          sql: `update idempotency set status = ?, answer = ?, expires_ms = started_ms + ?
where tenant_id = ? and route = ? and key = ? and attempt = ?`,
          args: [status, records.seal(text, answerAad(attempt)), KEPT_MS, ...place(attempt)],
        }),
      )
    },

    /** Gives the key back after a refusal; what has created something keeps it. */
    async release(attempt: Attempt): Promise<void> {
      await retryBusy(() =>
        db.execute({
          sql: 'delete from idempotency where tenant_id = ? and route = ? and key = ? and attempt = ? and bound is null',
          args: place(attempt),
        }),
      )
    },
  }
}

/** An answer may hold what a run was given or came to. */
function answerAad({ tenantId, route, key }: Use): RecordAad {
  return { record: `idempotency ${tenantId}`, field: `${route}\n${key}` }
}

function place({ tenantId, route, key, attempt }: Attempt): string[] {
  return [tenantId, route, key, attempt]
}

/** An hour beyond their end, so that an attempt that was held up still finds its row taken or ended, not gone. */
function expired(nowMs: number): InStatement {
  return {
    sql: 'delete from idempotency where rowid in (select rowid from idempotency where expires_ms <= ? limit 500)',
    args: [nowMs - 60 * 60 * 1000],
  }
}

function toKnown({ attempt, body_hash, bound, status, answer }: Stored, records: Records, place: RecordAad): Known {
  return {
    attempt,
    bodyHash: body_hash,
    bound: bound ?? undefined,
    answer: status === null ? undefined : { status, text: openMaybe(records, answer, place) ?? '' },
  }
}

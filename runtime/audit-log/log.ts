import type { InStatement } from '@libsql/client/web'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { type Db, objectIn, type RowOf, readRow, readRows, rowsOf } from '../../shared/sql/db.ts'
import { retryBusy } from '../../shared/sql/db-fault.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import { workQueue } from '../../shared/time/work-queue.ts'
import type { AuditEntry, AuditVerified } from '../../shared/wire/runtime/audit.ts'
import { againAfterConflict } from '../agents/conflict.ts'
import { type PageOf, readPage } from '../http/page.ts'
import type { auditHeads, auditIntents, auditLog as auditTable } from '../schema/tables.ts'
import { type AuditHead, auditChecker, auditGenesis, sealEntry } from './chain.ts'

/** What is known of an act before it is done. */
export type Act = Pick<AuditEntry, 'tenantId' | 'actor' | 'via' | 'action' | 'target' | 'requestId'>

export interface Done {
  outcome: AuditEntry['outcome']
  object?: string | undefined
  reason?: string | undefined
  fields?: string[] | undefined
  /** Another tenant whom the act concerns: its log gets the entry as well. */
  alsoTenant?: string | undefined
}

export interface AuditLogDeps {
  db: Db
  now: () => Date
  newId: () => string
  /** The portable one where none is given. */
  sha256?: Sha256
}

/** Longer than any call may take: an act without a stored end by then was interrupted. */
const INTERRUPTED_MS = 150_000
const RECOVER_EVERY_MS = 60_000
const PAGE = 250

type Entry = RowOf<typeof auditTable>
type Head = Omit<RowOf<typeof auditHeads>, 'tenant_id'>

export type AuditLog = ReturnType<typeof auditLog>

/**
 * Administrative acts, in a chain for each tenant. An act is announced before it is done, and the entry about it takes the
 * place of the announcement: a process that dies in between leaves one that becomes an entry with an unknown outcome.
 */
export function auditLog({ db, now, newId, sha256 }: AuditLogDeps) {
  /** One after the other in a process, so that they do not contend for the end of a chain. */
  const { run: inTurn } = workQueue()
  let recoverMs = 0

  async function recover(): Promise<void> {
    const found = await db.execute({
      sql: 'select id, entry from audit_intents where at_ms < ? order by at_ms limit 100',
      args: [now().getTime() - INTERRUPTED_MS],
    })
    // One that is damaged stays where it is: the acts of today do not fail for it.
    const rows = readRows(
      rowsOf<Omit<RowOf<typeof auditIntents>, 'at_ms'>>(found),
      row => readRow('an announced act', row, () => ({ id: row.id, entry: objectIn<Act & { at: string }>(row.entry) })),
      () => undefined,
    )
    for (const row of rows) {
      await inTurn(() => writeEntries(db, row.id, [{ ...row.entry, outcome: 'unknown' }]))
    }
  }

  return {
    ...auditReads(db, sha256),

    /** Announces an act that is about to be done. */
    async intend(act: Act): Promise<string> {
      const nowMs = now().getTime()
      if (nowMs >= recoverMs) {
        recoverMs = nowMs + RECOVER_EVERY_MS
        await recover()
      }
      const id = newId()
      const entry = JSON.stringify({ ...act, at: new Date(nowMs).toISOString() })
      await retryBusy(() =>
        db.execute({ sql: 'insert into audit_intents (id, at_ms, entry) values (?, ?, ?)', args: [id, nowMs, entry] }),
      )
      return id
    },

    /** Writes down how it went. */
    async done(intentId: string, act: Act, { outcome, object, reason, fields, alsoTenant }: Done): Promise<void> {
      const entry = {
        ...act,
        at: now().toISOString(),
        outcome,
        ...(object !== undefined && { object }),
        ...(reason !== undefined && { reason }),
        ...(fields !== undefined && { fields }),
      }
      const tenants = new Set([act.tenantId, alsoTenant ?? act.tenantId])
      const entries = [...tenants].map(tenantId => ({ ...entry, tenantId }))
      await inTurn(() => writeEntries(db, intentId, entries))
    },

    /** It was refused: nothing was done. */
    async drop(intentId: string): Promise<void> {
      await retryBusy(() => db.execute(removal(intentId)))
    },

    /** Entries for acts without an end. */
    recover,
  }
}

/** The log as it is read. */
function auditReads(db: Db, sha256?: Sha256) {
  return {
    async list(tenantId: string, page: PageOf): Promise<AuditEntry[]> {
      const { limit, after } = page
      const found = await db.execute({
        sql: 'select seq, hash, body from audit_log where tenant_id = ? and seq < ? order by seq desc limit ?',
        args: [tenantId, after?.at ?? Number.MAX_SAFE_INTEGER, limit + 1],
      })
      return readPage(
        page,
        rowsOf<Pick<Entry, 'seq' | 'hash' | 'body'>>(found),
        row =>
          readRow(`entry ${row.seq} of the audit log`, row, () => ({
            ...objectIn<AuditEntry>(row.body),
            hash: row.hash,
          })),
        ({ seq }) => ({ at: seq, id: String(seq) }),
      )
    },

    /** Recomputes the chain of a tenant, some entries at a time; other calls pass in between. */
    async verify(tenantId: string, noted: Partial<AuditHead> = {}): Promise<AuditVerified> {
      const checker = auditChecker({ tenantId, noted }, sha256)
      for (let seq = 0; ; ) {
        // Of one moment: an entry that is added meanwhile has moved the end as well.
        const [page, heads] = await db.read([
          {
            sql: `select seq, hash, body from audit_log where tenant_id = ? and seq > ? order by seq limit ${PAGE}`,
            args: [tenantId, seq],
          },
          { sql: 'select seq, hash from audit_heads where tenant_id = ?', args: [tenantId] },
        ])
        const found = rowsOf<Omit<Entry, 'tenant_id'>>(page!)
        for (const { seq, hash, body } of found) checker.push({ seq, hash, body })
        seq = found.at(-1)?.seq ?? seq
        if (found.length === PAGE) {
          await pageTurn()
          continue
        }
        const [end] = rowsOf<Head>(heads!)
        return checker.end(end && { seq: end.seq, hash: end.hash })
      }
    },
  }
}

async function headOf(db: Db, tenantId: string): Promise<AuditHead> {
  const found = await db.execute({
    sql: 'select seq, hash from audit_heads where tenant_id = ?',
    args: [tenantId],
  })
  const [head] = rowsOf<Head>(found)
  return head ? { seq: head.seq, hash: head.hash } : auditGenesis(tenantId)
}

/** Writes the entries and removes the intent, all or nothing; nothing at all when another process removed it before. */
async function writeEntries(
  db: Db,
  intentId: string,
  entries: readonly Omit<AuditEntry, 'seq' | 'hash'>[],
): Promise<void> {
  const announced = 'exists (select 1 from audit_intents where id = ?)'
  // Another process may have added to the chain since its head was read: the place is then taken.
  await againAfterConflict(() =>
    retryBusy(async () => {
      const statements: InStatement[] = []
      for (const entry of entries) {
        const { seq, hash, body } = sealEntry(await headOf(db, entry.tenantId), entry)
        statements.push(
          {
            sql: `insert into audit_log (tenant_id, seq, hash, body) select ?, ?, ?, ? where ${announced}`,
            args: [entry.tenantId, seq, hash, body, intentId],
          },
          {
            sql: `insert into audit_heads (tenant_id, seq, hash) select ?, ?, ? where ${announced}
on conflict (tenant_id) do update set seq = excluded.seq, hash = excluded.hash`,
            args: [entry.tenantId, seq, hash, intentId],
          },
        )
      }
      await db.write([...statements, removal(intentId)])
    }),
  )
}

function removal(intentId: string): InStatement {
  return { sql: 'delete from audit_intents where id = ?', args: [intentId] }
}

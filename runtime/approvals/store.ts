import type { InValue } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import type { Approval, ApprovalDecision } from '../../shared/wire/runtime/approval.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import type { approvals } from '../schema/tables.ts'
import { openMaybe, type Records, sealMaybe } from '../vault/records.ts'

export interface ApprovalRow extends Approval {
  tenantId: string
}

export interface ApprovalFilter {
  status?: string | undefined
  runId?: string | undefined
  agentName?: string | undefined
}

type Stored = RowOf<typeof approvals>

export type ApprovalStore = ReturnType<typeof approvalStore>

export function approvalStore(db: Db, records: Records) {
  const read = (row: Stored) => toApproval(row, records)
  async function get(id: string): Promise<ApprovalRow | undefined> {
    const found = await db.execute({ sql: 'select * from approvals where id = ?', args: [id.toWellFormed()] })
    const rows = rowsOf<Stored>(found)
    return rows[0] && read(rows[0])
  }

  return {
    get,
    /** What is known in this process: of a run on a node elsewhere, not what is asked. */
    near: get,

    async list(tenantId: string, { status, runId, agentName }: ApprovalFilter, page: PageOf): Promise<ApprovalRow[]> {
      // A run has few, and the index of its steps has them.
      const conditions = [runId === undefined ? 'tenant_id = ?' : '+tenant_id = ?']
      const args: InValue[] = [tenantId]
      for (const [column, value] of [
        ['status', status],
        ['run_id', runId],
        ['agent_name', agentName],
      ] as const) {
        if (value === undefined) continue
        conditions.push(`${column} = ?`)
        args.push(value.toWellFormed())
      }
      const { where, order, args: more } = pageSql(page)
      const found = await db.execute({
        sql: `select * from approvals where ${conditions.join(' and ')} ${where} ${order}`,
        args: [...args, ...more],
      })
      return readPage(page, rowsOf<Stored>(found), read)
    },

    async ofIds(ids: readonly string[]): Promise<ApprovalRow[]> {
      const found = await db.execute({
        sql: 'select * from approvals where id in (select value from json_each(?))',
        args: [JSON.stringify(ids)],
      })
      return rowsOf<Stored>(found).map(read)
    },

    async ofRun(runId: string): Promise<ApprovalRow[]> {
      const found = await db.execute({
        sql: 'select * from approvals where run_id = ? order by created_ms desc, id desc',
        args: [runId],
      })
      return rowsOf<Stored>(found).map(read)
    },

    /**
     * Writes the decision and makes the run due, in one transaction. False: it was decided, had expired, or its run had
     * ended in the meantime; of two decisions at the same moment one is first.
     */
    async decide(
      { id, runId }: { id: string; runId: string },
      { approve, by, atMs, decision }: { approve: boolean; by: string; atMs: number; decision: ApprovalDecision },
    ): Promise<boolean> {
      const { comment, ...rest } = decision
      const [decided] = await db.write([
        {
          sql: `update approvals set status = ?1, decided_ms = ?2, decided_by = ?3, comment = ?4, decision = ?5
            where id = ?6 and status = 'pending' and expires_ms > ?2
              and exists (select 1 from runs where runs.id = run_id and runs.status in ('running', 'waiting'))`,
          args: [
            ...[approve ? 'approved' : 'rejected', atMs, by],
            sealMaybe(records, comment === undefined ? null : storableText(comment), {
              record: runId,
              field: `comment ${id}`,
            }),
            records.seal(JSON.stringify(rest), { record: runId, field: `decision ${id}` }),
            id,
          ],
        },
        {
          // Of the statement before: a decision that changed nothing wakes no run.
          sql: `update runs set due_ms = 0 where changes() = 1 and owner is null and status = 'waiting'
            and id = (select run_id from approvals where id = ?)`,
          args: [id],
        },
      ])
      return decided?.rowsAffected === 1
    },
  }
}

function toApproval(row: Stored, records: Records): ApprovalRow {
  return readRow(`approval ${row.id}`, row, () => {
    const { id } = row
    const text = (value: string | null, what: string) =>
      openMaybe(records, value, { record: row.run_id, field: `${what} ${id}` })
    const action = text(row.action, 'action')
    const comment = text(row.comment, 'comment')
    return {
      id,
      tenantId: row.tenant_id,
      runId: row.run_id,
      agentName: row.agent_name,
      stepId: row.step_id,
      status: row.status,
      reason: row.reason,
      prompt: text(row.prompt, 'prompt') ?? '',
      ...(action !== null && { action: readJson(action) as Approval['action'] }),
      createdAt: new Date(row.created_ms).toISOString(),
      expiresAt: new Date(row.expires_ms).toISOString(),
      ...(row.decided_ms !== null && { decidedAt: new Date(row.decided_ms).toISOString() }),
      ...(row.decided_by !== null && { decidedBy: row.decided_by }),
      ...(comment !== null && { comment }),
    }
  })
}

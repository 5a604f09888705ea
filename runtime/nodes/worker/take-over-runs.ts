import type { InStatement } from '@libsql/client/web'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { POISONED } from '../../execution/claim-statement.ts'

/**
 * The other nodes with the same store. A run belongs to the one whose claim its lease holds, and a node that claims it from another takes over
 * the reports that are still pending, in one transaction and before its own first one, so that they arrive in order.
 */
export function takeOverRuns(nodeId: string, db: Db) {
  const takeOver = (runs: string, args: (string | number)[]): InStatement[] => {
    const its = `frame ->> 'run' in (${runs}) and node_id is not ?1`
    return [
      {
        sql: `insert into tunnel_outbox (frame, node_id) select json_object('t', 'takeover', 'run', run_id), ?1 from tunnel_runs
          where run_id in (${runs}) and node_id is not ?1`,
        args: [nodeId, ...args],
      },
      {
        sql: `insert into tunnel_outbox (frame, node_id) select frame, ?1 from tunnel_outbox where ${its} order by id`,
        args: [nodeId, ...args],
      },
      { sql: `delete from tunnel_outbox where ${its}`, args: [nodeId, ...args] },
      {
        sql: `update tunnel_runs set node_id = ?1 where run_id in (${runs}) and node_id is not ?1`,
        args: [nodeId, ...args],
      },
    ]
  }

  return {
    /** These runs were claimed; most often they were this node's before. */
    async claimed(ids: readonly string[]): Promise<void> {
      const these = JSON.stringify(ids)
      const runs = 'select value from json_each(?2)'
      const sql = `select 1 from tunnel_runs where run_id in (${runs}) and node_id is not ?1 limit 1`
      const { rows } = await db.execute({ sql, args: [nodeId, these] })
      if (rows.length > 0) await db.write(takeOver(runs, [these]))
    },

    /** These runs are set aside by this node, whichever had them: for the commit that does it, before its own report. */
    aside: (ids: readonly string[]): InStatement[] =>
      takeOver(`select id from runs where id in (select value from json_each(?2)) and parked = '${POISONED}'`, [
        JSON.stringify(ids),
      ]),

    /** Pending reports of a node that is gone, of runs that have ended; no claim takes them over. True: there were some. */
    async beat(nowMs: number, lostMs: number): Promise<boolean> {
      const gone = `select o.frame ->> 'run' as id from tunnel_outbox o join tunnel_nodes n on n.node_id = o.node_id
        join runs r on r.id = o.frame ->> 'run' where n.node_id is not ?1 and n.alive_ms < ?2 and r.finished_ms is not null`
      const [, found] = await db.write([
        {
          sql: 'insert into tunnel_nodes (node_id, alive_ms) values (?1, ?2) on conflict do update set alive_ms = ?2',
          args: [nodeId, nowMs],
        },
        { sql: `${gone} limit 1`, args: [nodeId, nowMs - lostMs] },
      ])
      if (found?.rows.length !== 1) return false
      const pending = await db.execute({ sql: gone, args: [nodeId, nowMs - lostMs] })
      const ids = rowsOf<{ id: string }>(pending).map(({ id }) => id)
      await db.write(takeOver('select value from json_each(?2)', [JSON.stringify(ids)]))
      return true
    },
  }
}

import { toBase64, utf8 } from '../../../shared/sign/bytes.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import { sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import type { ChildRuns } from '../../execution/tools/sub-agent-tool.ts'
import type { RunStore } from '../../runs/store.ts'
import type { tunnelChildren } from '../../schema/tables.ts'
import { inputAad } from '../sealed-payloads.ts'
import type { Report } from './report-rows.ts'
import type { WorkerIdentity } from './worker.ts'

/**
 * The runs that a run on a node calls. Its control plane makes them, which knows versions, budgets and how deep it may go, and orders
 * them here; until then it stands in the store that they were asked for, in the commit that asks.
 */
export function requestSubagents(
  { poolKeys, reportSoon, reportsAs }: Pick<WorkerIdentity, 'poolKeys' | 'reportSoon' | 'reportsAs'>,
  { db, runs, sha256 }: { db: Db; runs: Pick<RunStore, 'get'>; sha256: Sha256 },
) {
  return (parent: { id: string; epoch: number }): ChildRuns => ({
    async start({ id, agentName, input }) {
      const text = canonicalize(input)
      const box = toBase64(await sealTo(poolKeys.publicKey, utf8(text), inputAad(id)))
      const ask: Report = {
        t: 'child',
        run: parent.id,
        child: id,
        agent: agentName,
        box,
        hash: sha256Hex(utf8(text), sha256),
        length: text.length,
      }
      const owns = `exists (select 1 from runs where id = ?2 and epoch = ?3 and status = 'running')
        and not exists (select 1 from tunnel_children where child_id = ?1)`
      await db.write([
        {
          sql: `insert into tunnel_outbox (frame, node_id) select ?4, ?5 where ${owns}`,
          args: [id, parent.id, parent.epoch, JSON.stringify(ask), reportsAs],
        },
        {
          sql: `insert into tunnel_children (child_id, parent_id) select ?1, ?2 where ${owns}`,
          args: [id, parent.id, parent.epoch],
        },
      ])
      reportSoon(true)
      return 'started'
    },

    async look(id) {
      const run = await runs.get(id)
      if (run) {
        const { status, output, error } = run
        return { status, ...(output && { output }), ...(error && { error }) }
      }
      const sql = 'select error_code, error_message from tunnel_children where child_id = ?'
      const found = await db.execute({ sql, args: [id] })
      const [row] = rowsOf<Pick<RowOf<typeof tunnelChildren>, 'error_code' | 'error_message'>>(found)
      if (row === undefined) return undefined
      if (row.error_code === null) return { status: 'queued' }
      return { status: 'refused', error: { code: row.error_code, message: row.error_message! } }
    },
  })
}

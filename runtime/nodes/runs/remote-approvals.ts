import { utf8 } from '../../../shared/sign/bytes.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import type { ApprovalRow, ApprovalStore } from '../../approvals/store.ts'
import type { ReachableNodes } from '../peers/reachable-nodes.ts'
import type { NodeStore } from '../registry/store.ts'
import { decisionAad } from '../sealed-payloads.ts'
import { commandTarget } from './fallback-node.ts'
import type { RemoteReads } from './remote-reads.ts'
import { offline } from './remote-reads.ts'
import type { RemoteRun } from './remote-run.ts'

export interface RemoteApprovalsDeps {
  db: Db
  nodes: NodeStore
  reachableNodes: ReachableNodes
  data: RemoteReads
  remoteRunOf: (runId: string) => Promise<RemoteRun | undefined>
}

/** Questions of runs on nodes: what is asked stands on the node, that it was asked and decided stands here. */
export function remoteApprovals(
  approvals: ApprovalStore,
  { db, nodes, reachableNodes, data, remoteRunOf }: RemoteApprovalsDeps,
) {
  async function withTexts(rows: readonly ApprovalRow[]): Promise<{ rows: ApprovalRow[]; away: boolean }> {
    const empty = rows.filter(({ prompt }) => prompt === '')
    if (empty.length === 0) return { rows: [...rows], away: false }
    const nodeOf = new Map<string, string | undefined>()
    for (const runId of new Set(empty.map(row => row.runId))) nodeOf.set(runId, (await remoteRunOf(runId))?.nodeId)
    const byNode = new Map<string, string[]>()
    for (const { id, runId } of empty) {
      const nodeId = nodeOf.get(runId)
      if (nodeId === undefined) continue
      const ids = byNode.get(nodeId)
      if (ids) ids.push(id)
      else byNode.set(nodeId, [id])
    }
    const answers = await Promise.all([...byNode].map(([nodeId, ids]) => data.approvals(nodeId, ids)))
    const texts = new Map(answers.flatMap(answer => [...(answer ?? [])]))
    const asked = new Set([...byNode.values()].flat())
    return {
      rows: rows.map(row => {
        const text = texts.get(row.id)
        if (text === undefined) return asked.has(row.id) ? { ...row, dataAvailable: false } : row
        const { prompt, action, comment } = text
        return { ...row, prompt, ...(action && { action }), ...(comment && { comment }) }
      }),
      away: answers.includes(undefined),
    }
  }

  return {
    ...approvals,
    async get(id: string): Promise<ApprovalRow | undefined> {
      const row = await approvals.get(id)
      if (row === undefined) return undefined
      const { rows, away } = await withTexts([row])
      if (away) throw offline(`approval ${id}`)
      return rows[0]
    },

    async list(...args: Parameters<ApprovalStore['list']>): Promise<ApprovalRow[]> {
      return (await withTexts(await approvals.list(...args))).rows
    },

    async ofRun(runId: string): Promise<ApprovalRow[]> {
      return (await withTexts(await approvals.ofRun(runId))).rows
    },

    async decide(
      { id, runId }: Parameters<ApprovalStore['decide']>[0],
      deciding: Parameters<ApprovalStore['decide']>[1],
    ): Promise<boolean> {
      const row = await approvals.get(id)
      const run = row && (await remoteRunOf(row.runId))
      if (!row || run?.nodeId === undefined) return approvals.decide({ id, runId }, deciding)
      const { approve, by, atMs, decision } = deciding
      const poolKey = await nodes.poolKey(run.tenantId, run.pool)
      if (poolKey === undefined) throw offline(`approval ${id}`)
      const detail = { by, atMs, decision }
      const value = {
        runId: run.id,
        approvalId: id,
        decision: approve ? 'approve' : 'reject',
        detailSealed: await sealTo(poolKey, utf8(JSON.stringify(detail)), decisionAad(id)),
      }
      const node = await commandTarget(reachableNodes, nodes)(run.nodeId)
      const { controlBytes } = await import('../../../shared/tunnel/control-bytes.ts')
      const frame = controlBytes({ case: 'approval', value })
      const [decided] = await db.write([
        {
          sql: `update approvals set status = ?1, decided_ms = ?2, decided_by = ?3
            where id = ?4 and status = 'pending' and expires_ms > ?2
              and exists (select 1 from runs where runs.id = run_id and runs.status in ('running', 'waiting'))`,
          args: [approve ? 'approved' : 'rejected', atMs, by, id],
        },
        {
          sql: `insert into node_frames (node_id, frame) select ?, ?
            where exists (select 1 from approvals where id = ? and decided_ms = ? and decided_by = ?)`,
          args: [node, frame, id, atMs, by],
        },
      ])
      reachableNodes.wake(node)
      return decided?.rowsAffected === 1
    },
  }
}

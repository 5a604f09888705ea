import type { InStatement } from '@libsql/client/web'
import type { Db } from '../../../shared/sql/db.ts'
import type { NodeStore } from '../registry/store.ts'
import { cancelFrame } from './end-remote-run.ts'
import type { RemoteRun } from './remote-run.ts'

export interface AcceptTakeoverDeps {
  db: Db
  nodes: Pick<NodeStore, 'sharing' | 'frames' | 'frame'>
  wake: (nodeId: string) => void
}

const MOST_FRAMES = 10_000

/**
 * A node says that it has a run of another one. It is believed where both are of one pool and say the same of their store: there the
 * lease decided. The run is its from now on, with the orders that the other one has not acted on. Undefined: it is not believed.
 */
export function acceptTakeover({ db, nodes, wake }: AcceptTakeoverDeps) {
  return async (run: RemoteRun, nodeId: string): Promise<boolean> => {
    if (run.nodeId === undefined || !(await nodes.sharing(run.nodeId)).includes(nodeId)) return false
    const { fromBinary } = await import('@bufbuild/protobuf')
    const { ControlFrameSchema } = await import('../../../shared/tunnel/gateway.gen.ts')
    const orders = (await nodes.frames(run.nodeId, 0, MOST_FRAMES)).filter(({ frame }) => {
      const { value } = fromBinary(ControlFrameSchema, frame).body
      return value !== undefined && 'runId' in value && value.runId === run.id
    })
    const statements: InStatement[] = [
      {
        sql: 'update remote_runs set node_id = ? where run_id = ? and node_id = ?',
        args: [nodeId, run.id, run.nodeId],
      },
      { sql: 'update runs set node_id = ? where id = ? and node_id = ?', args: [nodeId, run.id, run.nodeId] },
      ...orders.flatMap(({ id, frame }) => [
        nodes.frame(nodeId, frame),
        { sql: 'delete from node_frames where id = ?', args: [id] },
      ]),
    ]
    // The other one may have died with the order in its hands.
    if (run.state === 'ending') statements.push(nodes.frame(nodeId, await cancelFrame(run.id, '', false)))
    await db.write(statements)
    wake(nodeId)
    return true
  }
}

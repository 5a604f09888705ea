import type { Log } from '../../shared/log/log.ts'
import type { Gauge } from '../../shared/metrics/metrics.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { satisfies } from '../agents/isolation.ts'
import { AGENT_DELETED } from '../execution/failure.ts'
import { enqueueEvent } from '../webhooks/enqueue.ts'
import type { TunnelTimes } from './gateway/timeouts.ts'
import type { ReachableNodes } from './peers/reachable-nodes.ts'
import { type NodeRow, statusOf } from './registry/node.ts'
import type { NodeLinks } from './registry/node-link.ts'
import type { NodeStore } from './registry/store.ts'
import type { RemoteRunCut } from './runs/end-remote-run.ts'
import { fallbackNode } from './runs/fallback-node.ts'
import type { RemoteRunStore } from './runs/remote-run-store.ts'

interface NodeSweepDeps {
  db: Db
  store: NodeStore
  remote: RemoteRunStore
  reachableNodes: ReachableNodes
  links: NodeLinks
  end: (id: string, how: RemoteRunCut) => Promise<boolean>
  /** What is decided from what stands about a run and then written; one after the other. */
  inTurn: <T>(work: () => Promise<T>) => Promise<T>
  now: () => Date
  absentMs: ReturnType<typeof absences>
  newId: () => string
  lostMs: TunnelTimes['lostMs']
  dispatchMs: number
  lostAfterMs: number
  /** Nodes by how they stand. */
  standing: Pick<Gauge, 'set'>
}

const SWEEP_MS = 5_000
const SWEPT = 200

/** Sweeps one at a time, while there are nodes. */
export function nodeSweeps({
  log,
  engaged,
  swept,
  ...deps
}: NodeSweepDeps & { log: Pick<Log, 'error'>; engaged: () => boolean; swept: () => void }) {
  let timer: ReturnType<typeof setInterval> | undefined
  let sweeping: Promise<void> | undefined
  const now = (): Promise<void> => {
    if (!engaged()) return Promise.resolve()
    sweeping ??= sweepNodes(deps)
      .then(swept)
      .catch(error => log.error('the sweep of nodes failed', { error }))
      .finally(() => {
        sweeping = undefined
      })
    return sweeping
  }
  return {
    now,
    start(): void {
      timer = setInterval(() => void now(), SWEEP_MS)
    },
    async close(): Promise<void> {
      clearInterval(timer)
      await sweeping
    },
  }
}

/** What no event reports: deadlines, deleted agents, nodes that stay away. */
async function sweepNodes(deps: NodeSweepDeps): Promise<void> {
  const { store, remote, links, end, now, absentMs, lostMs, lostAfterMs, standing } = deps
  const nowMs = now().getTime()
  for (const run of await remote.ending(SWEPT)) {
    await end(run.id, { status: 'failed', code: 'agent_deleted', message: AGENT_DELETED })
  }
  await endOverdue(deps, nowMs)
  const counts = { pending: 0, online: 0, draining: 0, lost: 0, offline: 0 }
  for (const node of await store.all()) {
    const status = statusOf(node, nowMs, lostMs)
    counts[status]++
    if (!node.signedOff && absentMs(node) <= lostMs) continue
    const away = node.lastSeenMs === undefined ? 0 : nowMs - node.lastSeenMs
    if (status === 'lost') await tellLost(deps, node.id, node.tenantId, node.pool)
    if (status === 'lost' || status === 'offline') await handOver(deps, node.id)
    if (lostAfterMs === 0 || away <= lostAfterMs || links.get(node.id)) continue
    for (const run of await remote.openOn(node.id)) {
      const message = `its node was away for more than ${Math.round(lostAfterMs / 3_600_000)} h`
      await end(run.id, { status: 'failed', code: 'node_lost', message, final: true })
    }
  }
  for (const [status, count] of Object.entries(counts)) standing.set(count, { status })
}

/**
 * For how long nothing was heard of a node while this process looked: a clock that jumps, or that differs from the one of the control
 * plane which hears the node, makes no node absent.
 */
export function absences(monotonic: Clock['monotonic']) {
  const heard = new Map<string, { lastSeenMs: number | undefined; at: number }>()
  return ({ id, lastSeenMs }: Pick<NodeRow, 'id' | 'lastSeenMs'>): number => {
    const known = heard.get(id)
    if (known && known.lastSeenMs === lastSeenMs) return monotonic() - known.at
    heard.set(id, { lastSeenMs, at: monotonic() })
    return 0
  }
}

/** Ends what no node came back for in time; what a node could take waits once more. */
async function endOverdue(deps: NodeSweepDeps, nowMs: number): Promise<void> {
  const { db, remote, reachableNodes, end, dispatchMs } = deps
  for (const run of await remote.overdue(nowMs, SWEPT)) {
    const able = (await reachableNodes.of(run.tenantId, run.pool)).some(
      ({ nodeId, backends }) => (run.pinned ?? nodeId) === nodeId && satisfies(run.isolation, backends),
    )
    if (able && run.state === 'queued') {
      await db.write([remote.later(run.id, nowMs + dispatchMs)])
      continue
    }
    await end(run.id, {
      status: 'failed',
      code: 'node_unavailable',
      message: `no node of pool ${run.pool} that ${run.pinned === undefined ? '' : 'has what it begins with and '}offers isolation ${run.isolation} came back within ${dispatchMs / 1000} s`,
    })
  }
}

/** What an absent node was to do, another one with its store can do. */
async function handOver({ db, store, reachableNodes, inTurn }: NodeSweepDeps, nodeId: string): Promise<void> {
  const other = await fallbackNode(reachableNodes, store, nodeId)
  if (other === undefined || other.nodeId === nodeId) return
  await inTurn(() => db.write(store.handOver(nodeId, other.nodeId)))
  other.wake()
}

/** Once for each absence, by the first process that notices it. */
async function tellLost(
  { db, newId, now }: NodeSweepDeps,
  nodeId: string,
  tenantId: string,
  pool: string,
): Promise<void> {
  const first = 'exists (select 1 from nodes where id = ? and lost_reported = 0)'
  await db.write([
    enqueueEvent(newId, {
      tenantId,
      type: 'node.lost',
      atMs: now().getTime(),
      data: { nodeId, pool },
      when: { sql: first, args: [nodeId] },
    }),
    { sql: 'update nodes set lost_reported = 1 where id = ?', args: [nodeId] },
  ])
}

import type { Log } from '../../../shared/log/log.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { coalesced } from '../../../shared/time/coalesced.ts'
import { isolationValues } from '../../../shared/wire/runtime/isolation.ts'
import { acceptsIsolation, type NodeLink, type NodeLinks } from '../registry/node-link.ts'
import type { NodeStore } from '../registry/store.ts'
import type { AssignFrames } from './assign-frames.ts'
import type { RemoteRunCut } from './end-remote-run.ts'
import type { NodeLoads } from './node-loads.ts'
import type { RemoteRun } from './remote-run.ts'
import type { RemoteRunStore } from './remote-run-store.ts'

export interface DispatcherDeps {
  db: Db
  log: Log
  now: () => Date
  links: Pick<NodeLinks, 'all'>
  loads: NodeLoads
  remote: RemoteRunStore
  nodes: Pick<NodeStore, 'poolKey'>
  frameOf: AssignFrames
}

const CHUNK = 64
/** So often a run is offered to nodes that refuse it. */
const MOST_OFFERS = 5

/** Hands queued runs to nodes that are connected, able and not full; the least busy first. */
export function dispatcher({ db, log, now, links, loads, remote, nodes, frameOf }: DispatcherDeps) {
  async function offer(link: NodeLink, runs: readonly RemoteRun[], poolKey: Uint8Array<ArrayBuffer>): Promise<void> {
    const limits = await remote.runLimits(runs.map(({ agentId }) => agentId))
    const inputs = await remote.inputsOf(runs.map(({ id }) => id))
    const statements = await Promise.all(
      runs.map(async run => {
        const input = inputs.get(run.id)
        if (input === undefined) return []
        const frame = await frameOf({ ...run, input, limit: limits.get(run.agentId) }, poolKey)
        return remote.offer(run, link.nodeId, frame)
      }),
    )
    await db.write(statements.flat())
    link.wake()
  }

  async function once(): Promise<void> {
    const nowMs = now().getTime()
    // Most often nothing waits, which is cheaper to know than what every node has to do.
    if (!(await remote.anyQueued())) {
      for (const link of links.all()) loads.idle(link)
      return
    }
    loads.read(await remote.load())
    for (;;) {
      let isCut = false
      for (const link of loads.withRoom()) {
        // A run that goes on at a node which is drained may still call others.
        const able = isolationValues.filter(value => acceptsIsolation(link, value, nowMs))
        if (able.length === 0) continue
        const most = Math.min(CHUNK, loads.room(link))
        const runs = await remote.queued(link, able, most, link.draining)
        if (runs.length < most && !link.draining) loads.idle(link)
        const poolKey = runs.length === 0 ? undefined : await nodes.poolKey(link.tenantId, link.pool)
        if (poolKey === undefined) continue
        await offer(link, runs, poolKey)
        loads.given(link.nodeId, runs.length)
        isCut ||= runs.length === most
      }
      // Each got all that there was for it; what comes meanwhile wakes this again.
      if (!isCut) return
    }
  }

  return coalesced(once, error => log.error('runs could not be handed to nodes', { error }))
}

interface AfterRefusalDeps {
  links: Pick<NodeLinks, 'get'>
  now: () => Date
  end: (id: string, how: RemoteRunCut) => Promise<boolean>
  log: Pick<Log, 'info'>
}

/** A node that refuses a run rests for a moment; a run that no other node can take, or that many have refused, ends. */
export function afterRefusal({ links, now, end, log }: AfterRefusalDeps) {
  return (nodeId: string, { id: runId, epoch: tries, pinned }: Pick<RemoteRun, 'id' | 'epoch' | 'pinned'>): void => {
    log.info('a node refused a run', { nodeId, runId })
    const link = links.get(nodeId)
    if (link) link.restingUntilMs = now().getTime() + 1000
    if (tries < MOST_OFFERS && pinned === undefined) return
    const message = pinned
      ? 'the node that has the journal it begins with refused it: the run it was forked from may be gone'
      : `nodes of its pool refused it ${tries} times: their logs say why`
    void end(runId, { status: 'failed', code: 'node_unavailable', message })
  }
}

import type { InStatement } from '@libsql/client/web'
import type { Log } from '../../../shared/log/log.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import type { Held } from '../../../shared/tunnel/gateway.gen.ts'
import { isTerminal, type RunErrorCode, type RunStatus } from '../../../shared/wire/runtime/run.ts'
import type { NodeRow } from '../registry/node.ts'
import type { NodeStore } from '../registry/store.ts'
import { type ApplyReportsDeps, EMPTY_OUTPUT_HASH } from './apply-reports.ts'
import { type Closing, closeRemoteRuns, type RemoteRunEnd } from './close-remote-runs.ts'
import type { CommandTarget } from './fallback-node.ts'
import type { RemoteRun } from './remote-run.ts'
import { isMoved, type RemoteRunStore } from './remote-run-store.ts'

interface EndRemoteRunDeps
  extends Pick<ApplyReportsDeps, 'signRemoteRun' | 'enqueueEvent' | 'ended' | 'watched' | 'dayOf' | 'now' | 'turn'> {
  db: Db
  remote: RemoteRunStore
  nodes: Pick<NodeStore, 'frame'>
  wakeNode: (nodeId: string) => void
  commandTarget: CommandTarget
}

export interface RemoteRunCut {
  status: 'failed' | 'cancelled'
  code?: RunErrorCode
  message?: string
  reason?: string
  /** The node will not be heard of any more: what it streamed is all there is. */
  final?: boolean
}

interface EndRemoteRunsDeps extends EndRemoteRunDeps {
  /** One decision about runs after the other. */
  inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** The open runs that a run has called. */
  children: (parentId: string) => Promise<string[]>
  log: Pick<Log, 'warn'>
}

/** Ends runs, and with one that failed the open runs that it called. */
export function endRemoteRuns({ inTurn, children, log, ...deps }: EndRemoteRunsDeps) {
  const endNow = ending(deps)

  async function end(id: string, how: RemoteRunCut): Promise<boolean> {
    const done = await inTurn(() => endNow(id, how))
    if (done && how.status === 'failed') void cancelChildren(id)
    return done
  }

  /** And theirs; it never throws. */
  async function cancelChildren(parentId: string): Promise<void> {
    try {
      for (const id of await children(parentId)) {
        await end(id, { status: 'cancelled' })
        await cancelChildren(id)
      }
    } catch (error) {
      log.warn('the child runs of a failed run could not be cancelled: cancel them', { error, runId: parentId })
    }
  }

  return { end, cancelChildren }
}

/**
 * Ends a run by the decision of the control plane. That is final at once; a node that has the run gets it, however long it is away,
 * and its journal's head, and with it the receipt, is known when it has answered (docs/spec/runtime.md §14).
 */
function ending({
  db,
  remote,
  nodes,
  commandTarget,
  wakeNode,
  signRemoteRun,
  enqueueEvent,
  ended,
  watched,
  dayOf,
  now,
  turn,
}: EndRemoteRunDeps) {
  /** False: it had ended. Undefined: it is not any more as it was read. */
  async function once(id: string, how: RemoteRunCut): Promise<boolean | undefined> {
    const { status, code, message, reason, final = false } = how
    const run = await remote.get(id)
    if (run === undefined || isTerminal(run.status)) return false
    const finishedMs = now().getTime()
    const end: RemoteRunEnd = {
      status,
      finishedMs,
      day: dayOf(finishedMs),
      errorCode: code,
      reason,
      errorMessage: message,
    }
    const told = run.state === 'offered' || run.state === 'accepted'
    const near = told ? run.nodeId : run.pinned
    const node = near === undefined ? undefined : await commandTarget(near)
    const statements: InStatement[] = [remote.asRead(run)]
    let closing: Closing = { run, end }
    if (told && node !== undefined) {
      statements.push(
        remote.state(id, 'ending'),
        nodes.frame(node, await cancelFrame(id, reason ?? message ?? '', false)),
      )
    }
    if (!told && run.parentRunId !== undefined && node !== undefined) {
      // Its parent's node has never heard of it, and would wait for ever.
      const refused = {
        code: code ?? status,
        message: message ?? reason ?? `the run of ${run.agentName} was ${status}`,
      }
      statements.push(nodes.frame(node, await refusedFrame(run.parentRunId, id, refused)))
    }
    if (!told || final) {
      const sealed: RemoteRun = { ...run, status, outputHash: EMPTY_OUTPUT_HASH, finishedMs }
      const receipt = await signRemoteRun(sealed, end)
      closing = {
        run: sealed,
        end,
        sealed: { outputHash: EMPTY_OUTPUT_HASH, models: [], receipt, atMs: finishedMs },
      }
    }
    statements.push(...closeRemoteRuns([closing]))
    turn.ending(run)
    try {
      await db.write([...statements, ...enqueueEvent([{ runId: id, epoch: run.epoch, status, atMs: finishedMs }])])
    } catch (error) {
      if (!isMoved(error)) throw error
      // How it ended elsewhere, if it did.
      turn.ended(run)
      return undefined
    }
    ended(status, run.spent.costNano)
    watched(id, run.eventSeq, true)
    turn.ended(run)
    if (node !== undefined) wakeNode(node)
    return true
  }

  return async (id: string, how: RemoteRunCut): Promise<boolean> => {
    // Each time another process has come a step further with it, and there are few.
    for (;;) {
      const done = await once(id, how)
      if (done !== undefined) return done
    }
  }
}

export async function cancelFrame(runId: string, reason: string, remove: boolean): Promise<Uint8Array> {
  const { controlBytes } = await import('../../../shared/tunnel/control-bytes.ts')
  return controlBytes({ case: 'cancel', value: { runId, reason, remove } })
}

export async function refusedFrame(
  runId: string,
  childId: string,
  { code, message }: { code: string; message: string },
): Promise<Uint8Array> {
  const { controlBytes } = await import('../../../shared/tunnel/control-bytes.ts')
  return controlBytes({ case: 'childRefused', value: { runId, childId, code, message } })
}

interface OverRunsDeps {
  db: Pick<Db, 'execute' | 'write'>
  remote: Pick<RemoteRunStore, 'these'>
  nodes: Pick<NodeStore, 'frame'>
  end: (id: string, how: RemoteRunCut) => Promise<boolean>
  log: Pick<Log, 'warn' | 'error'>
}

/**
 * Of the runs that a node would go on with as its process begins, those that are over here, or of which more was heard than the node knows: its
 * store was restored from an older copy, and would make calls again and pay them twice.
 */
export function overRuns({ db, remote, nodes, end, log }: OverRunsDeps) {
  /** Those that were deleted here; their receipts stay. */
  async function deleted(tenantId: string, ids: readonly string[]): Promise<string[]> {
    const sql = 'select run_id from receipts where tenant_id = ? and run_id in (select value from json_each(?))'
    const found = await db.execute({ sql, args: [tenantId, JSON.stringify(ids)] })
    return rowsOf<{ run_id: string }>(found).map(row => row.run_id)
  }

  return async (node: Pick<NodeRow, 'id' | 'tenantId'>, held: readonly Held[]): Promise<string[]> => {
    const open = held.filter(({ status }) => !isTerminal(status as RunStatus))
    if (open.length === 0) return []
    const known = await remote.these(open.map(({ runId }) => runId.toWellFormed()))
    const over: string[] = []
    const unknown: string[] = []
    for (const { runId, lastEvent } of open) {
      const run = known.get(runId)
      if (run?.tenantId !== node.tenantId) unknown.push(runId)
      else if (isTerminal(run.status)) over.push(runId)
      else if (run.nodeId === node.id && BigInt(run.eventSeq) > lastEvent) {
        over.push(runId)
        log.error('a node came back with an earlier state of a run: its store is an older copy', {
          nodeId: node.id,
          runId,
        })
        const message = 'its node came back with an earlier state of it: the store of the node is an older copy'
        await end(runId, { status: 'failed', code: 'node_lost', final: true, message })
      }
    }
    if (unknown.length > 0) {
      const removals = await Promise.all((await deleted(node.tenantId, unknown)).map(id => cancelFrame(id, '', true)))
      if (removals.length > 0) await db.write(removals.map(frame => nodes.frame(node.id, frame)))
      over.push(...unknown)
    }
    if (over.length > 0) {
      log.warn('a node came back with runs that are over, and does not go on with them', {
        nodeId: node.id,
        runs: over.length,
        runId: over[0],
      })
    }
    return over
  }
}

interface EndMissingDeps {
  remote: Pick<RemoteRunStore, 'openOn'>
  end: (id: string, how: RemoteRunCut) => Promise<boolean>
  log: Pick<Log, 'error'>
}

/** Ends the runs that a node had taken and came back without. */
export function endMissingRuns({ remote, end, log }: EndMissingDeps) {
  return async (nodeId: string, held: readonly Pick<Held, 'runId'>[]): Promise<void> => {
    const has = new Set(held.map(({ runId }) => runId))
    for (const run of await remote.openOn(nodeId)) {
      if (run.state === 'offered' || has.has(run.id)) continue
      log.error('a node came back without a run that it had taken', { nodeId, runId: run.id })
      await end(run.id, {
        status: 'failed',
        code: 'node_lost',
        final: true,
        message: 'its node came back without it: the store of the node is not the one it had',
      })
    }
  }
}

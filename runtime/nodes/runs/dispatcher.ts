import type { Log } from '../../../shared/log/log.ts'
import { toHex, utf8 } from '../../../shared/sign/bytes.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { coalesced } from '../../../shared/time/coalesced.ts'
import { sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import { isolationValues } from '../../../shared/wire/runtime/isolation.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import type { SealedTexts } from '../../agents/texts.ts'
import { type NodeLink, type NodeLinks, takes } from '../registry/node-link.ts'
import type { NodeStore } from '../registry/store.ts'
import { type ManifestEnvelope, manifestAad } from '../sealed-payloads.ts'
import type { RemoteRun } from './remote-run.ts'
import type { RemoteRunStore } from './remote-run-store.ts'

export interface DispatcherDeps {
  db: Db
  log: Log
  now: () => Date
  links: NodeLinks
  remote: RemoteRunStore
  nodes: NodeStore
  versionOf: (
    versionId: string,
  ) => Promise<
    { number: number; manifest: Manifest; manifestHash: string; sealed: SealedTexts | undefined } | undefined
  >
}

/** A node takes more than it works on at once, so that it never waits for the tunnel; the rest waits in its own queue. */
const QUEUE_FACTOR = 4
const CHUNK = 64

/** Hands queued runs to nodes that are connected, able and not full; the least busy first. */
export function dispatcher({ db, log, now, links, remote, nodes, versionOf }: DispatcherDeps) {
  const sealed = new Map<string, Uint8Array>()

  async function manifestOf(run: RemoteRun, poolKey: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
    const key = `${run.versionId} ${toHex(poolKey)}`
    const known = sealed.get(key)
    if (known !== undefined) return known
    const version = await versionOf(run.versionId)
    if (!version) throw new Error(`run ${run.id} is of a version that is gone: ${run.versionId}`)
    const { number, manifest, manifestHash } = version
    const envelope: ManifestEnvelope = {
      agentId: run.agentId,
      agentName: run.agentName,
      versionId: run.versionId,
      number,
      manifest,
      manifestHash,
    }
    const box = await sealTo(poolKey, utf8(JSON.stringify(envelope)), manifestAad(run.versionId))
    if (sealed.size > 500) sealed.clear()
    sealed.set(key, box)
    return box
  }

  async function offer(link: NodeLink, runs: readonly RemoteRun[], poolKey: Uint8Array<ArrayBuffer>): Promise<void> {
    const { controlBytes } = await import('../../../shared/tunnel/control-bytes.ts')
    const limits = await remote.runLimits(runs.map(({ agentId }) => agentId))
    const inputs = await remote.inputsOf(runs.map(({ id }) => id))
    const statements = await Promise.all(
      runs.map(async run => {
        const input = inputs.get(run.id)
        if (input === undefined) return []
        const limit = limits.get(run.agentId)
        const sealed = (await versionOf(run.versionId))?.sealed
        const frame = controlBytes({
          case: 'assign',
          value: {
            runId: run.id,
            epoch: BigInt(run.epoch),
            agentVersionId: run.versionId,
            inputSealed: input.sealed,
            ...(input.schedule !== undefined && { inputSchedule: input.schedule }),
            manifestSealed: await manifestOf(run, poolKey),
            createdUnixMs: BigInt(run.createdMs),
            ...(run.sessionId !== undefined && { sessionId: run.sessionId }),
            ...(run.parentRunId !== undefined && { parentRun: run.parentRunId, depth: run.depth }),
            ...(sealed && { textsSealed: sealed.box }),
            ...(run.forkedFrom && { forkedRun: run.forkedFrom.runId, forkedStep: run.forkedFrom.stepId }),
            ...(limit?.costNano !== undefined && { runCostNanoUsd: BigInt(limit.costNano), runCostHard: limit.hard }),
            askBudget: limit?.ofDay ?? false,
          },
        })
        return remote.offer(run, link.nodeId, frame)
      }),
    )
    await db.write(statements.flat())
    link.wake()
  }

  async function once(): Promise<void> {
    const nowMs = now().getTime()
    // Most often nothing waits, which is cheaper to know than what every node has to do.
    if (!(await remote.anyQueued())) return
    const load = await remote.load()
    const room = (link: NodeLink) => Math.max(1, link.slots) * QUEUE_FACTOR - (load.get(link.nodeId) ?? 0)
    for (;;) {
      const candidates = links
        .all()
        .filter(link => room(link) > 0)
        .sort((a, b) => (load.get(a.nodeId) ?? 0) / (a.slots || 1) - (load.get(b.nodeId) ?? 0) / (b.slots || 1))
      let isCut = false
      for (const link of candidates) {
        // A run that goes on at a node which is drained may still call others.
        const able = isolationValues.filter(value => takes(link, value, nowMs))
        if (able.length === 0) continue
        const most = Math.min(CHUNK, room(link))
        const runs = await remote.queued(link, able, most, link.draining)
        const poolKey = runs.length === 0 ? undefined : await nodes.poolKey(link.tenantId, link.pool)
        if (poolKey === undefined) continue
        await offer(link, runs, poolKey)
        load.set(link.nodeId, (load.get(link.nodeId) ?? 0) + runs.length)
        isCut ||= runs.length === most
      }
      // Each got all that there was for it; what comes meanwhile wakes this again.
      if (!isCut) return
    }
  }

  return coalesced(once, error => log.error('runs could not be handed to nodes', { error }))
}

import { ApiError } from '../../../shared/http/api-error.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import type { CurveKeys } from '../../../shared/sign/curve-keys.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import type { Db } from '../../../shared/sql/db.ts'
import type { Backend } from '../../../shared/wire/runtime/isolation.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { isTerminal, type Run, type RunErrorCode } from '../../../shared/wire/runtime/run.ts'
import { EMBEDDED_POOL, POOL_LABEL } from '../../agents/pool-label.ts'
import type { SealedTexts } from '../../agents/texts.ts'
import { genesis } from '../../execution/journal/event.ts'
import type { SealedInput } from '../../runs/sealed-input.ts'
import type { JournalPage, NewRun, RunStore, StreamOpening } from '../../runs/store.ts'
import type { ReachableNodes } from '../peers/reachable-nodes.ts'
import { provenBackends } from '../registry/node.ts'
import type { NodeLink, NodeLinks } from '../registry/node-link.ts'
import type { NodeStore } from '../registry/store.ts'
import { inputAad } from '../sealed-payloads.ts'
import type { RemoteSessions } from '../sessions/remote-sessions.ts'
import type { AssignFrames } from './assign-frames.ts'
import type { RemoteRunCut } from './end-remote-run.ts'
import { cancelFrame } from './end-remote-run.ts'
import { commandTarget } from './fallback-node.ts'
import type { NodeLoads } from './node-loads.ts'
import { type Placement, type PlacementFacts, place, placeNear } from './placement.ts'
import type { RemoteReads } from './remote-reads.ts'
import { offline, withData } from './remote-reads.ts'
import type { RemoteRun, RunPlace } from './remote-run.ts'
import type { NewRemoteRun, RemoteRunStore } from './remote-run-store.ts'

export interface PlacedRunsDeps {
  db: Db
  remote: RemoteRunStore
  nodes: NodeStore
  reachableNodes: ReachableNodes
  data: RemoteReads
  end: (id: string, end: RemoteRunCut) => Promise<boolean>
  dispatch: () => void
  links: Pick<NodeLinks, 'of'>
  loads: Pick<NodeLoads, 'take' | 'waiting' | 'ended'>
  frameOf: AssignFrames
  /** Whether any node has ever enrolled, or a run is elsewhere; while neither is so, nothing here costs anything. */
  engaged: () => boolean
  engage: () => void
  embedded: { on: boolean; backends: readonly Backend[] }
  dispatchMs: number
  sha256: Sha256
  sealTo: CurveKeys['sealTo']
  versionOf: (
    versionId: string,
  ) => Promise<{ manifest: Manifest; agentId: string; sealed: SealedTexts | undefined } | undefined>
  labelsOf: (tenantId: string, agentName: string) => Promise<Readonly<Record<string, string>>>
  sessions: Pick<RemoteSessions, 'connected'>
}

interface PlacedVersion {
  manifest: Manifest
  sealed: SealedTexts | undefined
  /** Of its agent, where they were read with it. */
  agentLabels?: Readonly<Record<string, string>> | undefined
}

type PinnedPlacement = Exclude<Placement, { on: 'pool' }> | { on: 'pool'; pool: string; pinned?: string }

interface Placed {
  run: NewRun
  /** The node here that it is offered to by the commit that makes it. */
  link?: NodeLink | undefined
  /** Ended as soon as it is stored: no node can execute it. */
  refused?: { code: RunErrorCode; message: string }
}

/** Of runs whose journals are being read. */
const MOST_PLACES = 1000

export type PlacedRuns = ReturnType<typeof placedRuns>

function trialElsewhere(): ApiError {
  const message = 'the run is executed by a node, which forks runs as a whole'
  return new ApiError('validation_failed', `onlyStep: ${message}`, { details: [{ path: 'onlyStep', message }] })
}

/**
 * The store of runs as the routes and services see it, where some of the runs are on nodes: creations are placed, and what only a
 * node has is asked of it. A run that is here goes straight to the store that is wrapped.
 */
export function placedRuns(runs: RunStore, deps: PlacedRunsDeps) {
  const { db, remote, nodes, reachableNodes, data } = deps
  const places = new Map<string, RunPlace>()

  /** A run stays with the node that has accepted it, or with another one of its store, which is found where that node is away. */
  async function readable(id: string): Promise<RunPlace | undefined> {
    const known = places.get(id)
    if (known !== undefined) return known
    const found = await locate(deps, id)
    if (found?.nodeId === undefined || found.state === 'queued' || found.state === 'offered') return found
    if (places.size >= MOST_PLACES) places.delete(places.keys().next().value as string)
    places.set(id, found)
    return found
  }

  return {
    ...runs,
    remoteRunOf: (id: string) => remoteRunOf(deps, id),

    placementFor: (tenantId: string, agentName: string, version: PlacedVersion) =>
      placementFor(deps, tenantId, agentName, version),

    async create(run: NewRun): Promise<NewRun> {
      if (await allHere(deps, [run])) return runs.create(run)
      const one = await placed(deps, run)
      if (run.onlyStep !== undefined && one.run.elsewhere) throw trialElsewhere()
      return made(deps, [one], () => runs.create(one.run))
    },

    async createForWindows(list: readonly NewRun[], around: Parameters<RunStore['createForWindows']>[1]) {
      if (await allHere(deps, list)) return runs.createForWindows(list, around)
      const all = await Promise.all(list.map(run => placed(deps, run)))
      const news = all.map(({ run }) => run)
      return made(deps, all, () => runs.createForWindows(news, around))
    },

    /** Asks the node; throws `node_offline` when it has the data and is away. What a node had that was removed is gone. */
    async get(id: string): Promise<Run | undefined> {
      const run = await runs.get(id)
      if (run === undefined || run.input !== undefined) return run
      const found = await remoteRunOf(deps, id)
      if (found === undefined) return run
      if (found.nodeId === undefined || found.state === 'queued' || found.state === 'offered') {
        return withData(run, found, undefined)
      }
      const held = await data.of(found.nodeId, [id])
      if (held === undefined && (await nodes.get(found.nodeId))) throw offline(`run ${id}`)
      return withData(run, found, held?.get(id))
    },

    /** Without a request to a node. */
    async near(id: string): Promise<Run | undefined> {
      const run = await runs.get(id)
      const found = run === undefined || run.input !== undefined ? undefined : await remoteRunOf(deps, id)
      return run && found ? withData(run, found, undefined) : run
    },

    async list(...[tenantId, query, page]: Parameters<RunStore['list']>): Promise<Run[]> {
      const found = await runs.list(tenantId, query, page)
      const isWhole = query.fields === 'summary' || found.every(run => run.input !== undefined)
      return isWhole ? found : withTexts(deps, found)
    },

    async events(runId: string, fromSeq: number, most: number) {
      const found = await readable(runId)
      return found ? data.events(found, fromSeq, most) : runs.events(runId, fromSeq, most)
    },

    async page(runId: string, fromSeq: number, most: number): Promise<JournalPage> {
      const found = await readable(runId)
      return found ? data.page(found, fromSeq, most) : runs.page(runId, fromSeq, most)
    },

    async streamOpening(runId: string, fromSeq: number, most: number): Promise<StreamOpening | undefined> {
      const found = await locate(deps, runId)
      if (found === undefined) return runs.streamOpening(runId, fromSeq, most)
      const { tenantId, status, eventSeq } = found
      // The reader has all that was reported, and the stream gets what comes.
      if (eventSeq < fromSeq && !isTerminal(status)) return { tenantId, status, page: { entries: [], isLast: true } }
      // Its node is asked by the stream: only once it is known whose run it is.
      return { tenantId, status }
    },

    async blob(runId: string, sha256: string): Promise<Uint8Array | undefined> {
      const found = await locate(deps, runId)
      return found ? data.blob(found, sha256) : runs.blob(runId, sha256)
    },

    async remove(id: string): Promise<boolean> {
      const found = await remoteRunOf(deps, id)
      if (found === undefined) return runs.remove(id)
      if (!isTerminal(found.status)) return false
      const node = found.nodeId === undefined ? undefined : await commandTarget(reachableNodes, nodes)(found.nodeId)
      await db.write([
        ...(node === undefined ? [] : [nodes.frame(node, await cancelFrame(id, '', true))]),
        ...remote.removal(id),
      ])
      places.delete(id)
      const removed = await runs.remove(id)
      if (node !== undefined) reachableNodes.wake(node)
      return removed
    },
  }
}

/** Runs with what their nodes have of them; one that does not answer is left out. */
async function withTexts({ remote, data }: PlacedRunsDeps, runs: readonly Run[]): Promise<Run[]> {
  const there = await remote.these(runs.filter(run => run.input === undefined).map(({ id }) => id))
  const byNode = new Map<string, string[]>()
  for (const { id, nodeId, state } of there.values()) {
    if (nodeId !== undefined && state !== 'offered') byNode.set(nodeId, [...(byNode.get(nodeId) ?? []), id])
  }
  const answers = await Promise.all([...byNode].map(([nodeId, ids]) => data.of(nodeId, ids)))
  const texts = new Map(answers.flatMap(answer => [...(answer ?? [])]))
  return runs.map(run => {
    const one = there.get(run.id)
    return one ? withData(run, one, texts.get(run.id)) : run
  })
}

/** A fork begins with a part of a journal, so it goes to where that is. */
async function forkPlacement(deps: PlacedRunsDeps, { forkedFrom }: NewRun): Promise<PinnedPlacement | undefined> {
  if (forkedFrom === undefined) return undefined
  const source = await remoteRunOf(deps, forkedFrom.runId)
  if (source?.nodeId !== undefined) return { on: 'pool', pool: source.pool, pinned: source.nodeId }
  if (deps.embedded.on) return { on: 'here' }
  const message = 'the journal it begins with is at the embedded node, which is switched off (PLATFORM_EMBEDDED_NODE)'
  return { on: 'nowhere', pool: 'local', message }
}

async function placementOf(deps: PlacedRunsDeps, run: NewRun): Promise<PinnedPlacement> {
  const forked = await forkPlacement(deps, run)
  if (forked) return forked
  const version = await deps.versionOf(run.versionId)
  if (version === undefined) return { on: 'here' }
  if (run.sessionId !== undefined) {
    const session = await deps.sessions.connected(run.sessionId)
    return session ? { on: 'pool', pool: session.pool, pinned: session.nodeId } : { on: 'here' }
  }
  const { manifest, sealed } = version
  const { agentLabels } = run
  return placementFor(deps, run.tenantId, run.agentName, { manifest, sealed, agentLabels }, run.sealedInput)
}

/** Where a run of that version goes that nothing binds to a place. */
async function placementFor(
  deps: PlacedRunsDeps,
  tenantId: string,
  agentName: string,
  version: PlacedVersion,
  input?: SealedInput,
): Promise<Placement> {
  const labels = version.agentLabels ?? (await deps.labelsOf(tenantId, agentName))
  const wanted = labels[POOL_LABEL] ?? version.sealed?.pool ?? input?.pool
  if (version.sealed && wanted !== version.sealed.pool) {
    const { pool } = version.sealed
    const message = `its prompt is sealed to pool ${pool}: publish it again with another ${POOL_LABEL}`
    return { on: 'nowhere', pool, message }
  }
  if (input && wanted !== input.pool) {
    const message = `the input of its schedule is sealed to pool ${input.pool}: send the schedule its config.input again`
    return { on: 'nowhere', pool: input.pool, message }
  }
  const facts = { manifest: version.manifest, wanted, embedded: deps.embedded }
  const here = (pool: string) => deps.links.of(tenantId, pool)
  return placeNear(facts, here) ?? place({ ...facts, nodes: await enrolledNodes(deps, tenantId) })
}

async function enrolledNodes(
  { nodes, reachableNodes }: PlacedRunsDeps,
  tenantId: string,
): Promise<PlacementFacts['nodes']> {
  return (await nodes.enrolled(tenantId)).map(node => ({
    pool: node.pool,
    backends: provenBackends(node),
    connected: reachableNodes.connected(node),
  }))
}

async function placed(deps: PlacedRunsDeps, run: NewRun): Promise<Placed> {
  const placement = await placementOf(deps, run)
  const { sealedInput } = run
  if (placement.on === 'here') {
    if (sealedInput) throw new Error(`run ${run.id} has an input that only pool ${sealedInput.pool} can read`)
    return { run }
  }
  deps.engage()
  const poolKey = placement.on === 'pool' ? await poolKeyOf(deps, run.tenantId, placement.pool) : undefined
  const fork = run.forkedFrom !== undefined
  const inputSealed =
    sealedInput?.box ?? (poolKey ? await deps.sealTo(poolKey, utf8(run.input), inputAad(run.id)) : null)
  const row = {
    id: run.id,
    tenantId: run.tenantId,
    pool: placement.pool,
    createdMs: run.createdMs,
    pinned: placement.on === 'pool' ? placement.pinned : undefined,
    isolation: run.isolation as RemoteRun['isolation'],
    dispatchByMs: run.createdMs + deps.dispatchMs,
    inputSealed,
    inputSchedule: sealedInput && run.scheduleId,
    inputHash: sealedInput?.hash ?? sha256Hex(run.input, deps.sha256),
    genesis: genesis(run.id, deps.sha256).hash,
  }
  const given = poolKey && inputSealed && !fork ? await offerTo(deps, run, row, poolKey, inputSealed) : undefined
  const { nodeId } = given?.link ?? {}
  const statements = deps.remote.insert({ ...row, offer: given && { nodeId: given.link.nodeId, frame: given.frame } })
  // The node copies the beginning of the journal itself; here it would be texts of a run.
  const elsewhere: NewRun = { ...run, events: [], elsewhere: { nodeId }, also: [...(run.also ?? []), ...statements] }
  if (placement.on === 'nowhere') {
    return { run: elsewhere, refused: { code: 'isolation_unavailable', message: placement.message } }
  }
  return { run: elsewhere, link: given?.link }
}

/** A node here that takes it at once, with the order for it; undefined: it waits, and the dispatcher finds one. */
async function offerTo(
  deps: PlacedRunsDeps,
  { agentId, agentName, versionId, createdMs, sessionId, parentRunId, depth = 0, ...run }: NewRun,
  { pool, pinned, isolation, inputSchedule }: Pick<NewRemoteRun, 'pool' | 'pinned' | 'isolation' | 'inputSchedule'>,
  poolKey: Uint8Array<ArrayBuffer>,
  sealed: Uint8Array,
): Promise<{ link: NodeLink; frame: Uint8Array } | undefined> {
  const { id, tenantId } = run
  const link = deps.loads.take({ tenantId, pool, pinned, isolation })
  if (link === undefined) {
    deps.loads.waiting(tenantId, pool)
    return undefined
  }
  try {
    const limit = run.unlimited ? undefined : (await deps.remote.runLimits([agentId])).get(agentId)
    const input = { sealed, schedule: inputSchedule }
    const facts = { id, epoch: 1, agentId, agentName, versionId, createdMs, sessionId, parentRunId, depth }
    return { link, frame: await deps.frameOf({ ...facts, input, limit }, poolKey) }
  } catch (error) {
    deps.loads.ended(link.nodeId, 1)
    throw error
  }
}

/** Of a pool that has a node here it stays: a pool changes its key when its last node goes. */
const poolKeys = new WeakMap<NodeLink, Uint8Array<ArrayBuffer>>()

async function poolKeyOf(
  { links, nodes }: PlacedRunsDeps,
  tenantId: string,
  pool: string,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const [link] = links.of(tenantId, pool)
  const known = link && poolKeys.get(link)
  if (known) return known
  const key = await nodes.poolKey(tenantId, pool)
  if (link && key) poolKeys.set(link, key)
  return key
}

/** Makes the runs, and has those that are elsewhere found by their nodes. */
async function made<T>(deps: PlacedRunsDeps, all: readonly Placed[], make: () => Promise<T>): Promise<T> {
  let results: T
  try {
    results = await make()
  } catch (error) {
    for (const { link } of all) if (link) deps.loads.ended(link.nodeId, 1)
    throw error
  }
  for (const { run, link, refused } of all) {
    if (refused) await deps.end(run.id, { status: 'failed', ...refused })
    else if (link) link.wake()
    else if (run.elsewhere) deps.dispatch()
  }
  return results
}

/** Whether runs of an agent go to a pool of nodes, and nowhere else. */
export const namesPool = (labels: Readonly<Record<string, string>>): boolean =>
  labels[POOL_LABEL] !== undefined && labels[POOL_LABEL] !== EMBEDDED_POOL

/** Without any node there is nothing to place, but for what only nodes can read or may execute. */
async function allHere(deps: PlacedRunsDeps, list: readonly NewRun[]): Promise<boolean> {
  if (!deps.embedded.on || deps.engaged()) return false
  for (const { tenantId, agentName, agentLabels, versionId, sealedInput } of list) {
    if (sealedInput || (await deps.versionOf(versionId))?.sealed) return false
    if (namesPool(agentLabels ?? (await deps.labelsOf(tenantId, agentName)))) return false
  }
  return true
}

/** The same, as far as it takes to ask its node. */
async function locate(deps: PlacedRunsDeps, id: string): Promise<RunPlace | undefined> {
  return deps.engaged() ? deps.remote.locate(id) : undefined
}

/** The run on a node; undefined for one that is here. */
async function remoteRunOf(deps: PlacedRunsDeps, id: string): Promise<RemoteRun | undefined> {
  return deps.engaged() ? deps.remote.get(id) : undefined
}

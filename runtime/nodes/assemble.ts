import { ApiError } from '../../shared/http/api-error.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { toHex, utf8 } from '../../shared/sign/bytes.ts'
import type { CurveKeys } from '../../shared/sign/curve-keys.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { workQueue } from '../../shared/time/work-queue.ts'
import { sealTo } from '../../shared/tunnel/sealed-payload.ts'
import type { Backend } from '../../shared/wire/runtime/isolation.ts'
import { isTerminal } from '../../shared/wire/runtime/run.ts'
import type { VersionRow } from '../agents/agent.ts'
import { type NodeBackends, satisfies } from '../agents/isolation.ts'
import { EMBEDDED_POOL, POOL_LABEL } from '../agents/pool-label.ts'
import type { Deleting } from '../agents/store.ts'
import { hasTexts, type SealTexts, textsOf } from '../agents/texts.ts'
import type { ApprovalStore } from '../approvals/store.ts'
import type { Budgets } from '../budgets/assemble.ts'
import type { Ledger } from '../budgets/ledger.ts'
import { OPEN_OF_AGENT } from '../runs/end-runs.ts'
import type { Admit, AgentVersion } from '../runs/service.ts'
import type { RequestsOfSteps } from '../runs/step-requests.ts'
import type { RunStore } from '../runs/store.ts'
import type { Sessions } from '../sessions/assemble.ts'
import type { Held } from '../sessions/service.ts'
import { assemblePeers, type PeerIdentity } from './assemble-peers.ts'
import { type PoolCredentialsDeps, poolCredentials } from './credentials/pool-credentials.ts'
import type { GatewayDeps, NodeGateway } from './gateway/gateway.ts'
import { type TunnelTimes, tunnelTimes } from './gateway/timeouts.ts'
import type { TunnelEndpoint } from './gateway/well-known-route.ts'
import type { SiblingPeers } from './peers/peer-client.ts'
import type { ReachableNodes } from './peers/reachable-nodes.ts'
import { enrolment } from './registry/enrolment.ts'
import { provenBackends } from './registry/node.ts'
import { nodeLinks } from './registry/node-link.ts'
import { type NodeStore, nodeStore } from './registry/store.ts'
import { acceptTakeover } from './runs/accept-takeover.ts'
import { type ApplyReportsDeps, applyReports } from './runs/apply-reports.ts'
import { assignFrames } from './runs/assign-frames.ts'
import { afterRefusal, dispatcher } from './runs/dispatcher.ts'
import { endMissingRuns, endRemoteRuns, overRuns } from './runs/end-remote-run.ts'
import { commandTarget } from './runs/fallback-node.ts'
import { nodeLoads } from './runs/node-loads.ts'
import { namesPool, type PlacedRuns, placedRuns } from './runs/placed-runs.ts'
import { remoteApprovals } from './runs/remote-approvals.ts'
import { remoteBudgets } from './runs/remote-budgets.ts'
import { type RemoteReads, remoteReads, remoteRequests } from './runs/remote-reads.ts'
import { type RemoteRunStore, remoteRunStore } from './runs/remote-run-store.ts'
import { remoteSubagents } from './runs/remote-subagents.ts'
import { scheduleInputs } from './runs/schedule-inputs.ts'
import { signalAad, textsAad } from './sealed-payloads.ts'
import { relayDeltas } from './sessions/relay-deltas.ts'
import { type RemoteSessions, remoteSessions } from './sessions/remote-sessions.ts'
import { absences, nodeSweeps } from './sweep.ts'

export interface NodesOptions {
  db: Db
  log: Log
  clock: Clock
  metrics: Metrics
  sha256: Sha256
  curveKeys: CurveKeys
  newId: () => string
  dayOf: (ms: number) => string
  maxBodyBytes: number
  signRemoteRun: ApplyReportsDeps['signRemoteRun']
  enqueueStatusEvents: ApplyReportsDeps['enqueueEvent']
  enqueueRemoteEvents: ApplyReportsDeps['enqueueRemoteEvents']
  spent: ApplyReportsDeps['spent']
  watched: ApplyReportsDeps['watched']
  ended: ApplyReportsDeps['ended']
  versionOf: (versionId: string) => Promise<VersionRow | undefined>
  labelsOf: (tenantId: string, agentName: string) => Promise<Readonly<Record<string, string>>>
  ownSessions: Pick<Sessions, 'store' | 'live'>
  admit: Admit
  grant: Ledger['grant']
  useTool: Budgets['useTool']
  /** The aliases, prices and windows that a tenant has set. */
  modelSettings: PoolCredentialsDeps['modelSettings']
  currentByName: (tenantId: string, name: string) => Promise<VersionRow | undefined>
  /** The node in this process. */
  embedded: { on: boolean; id: () => Promise<string>; backends: readonly Backend[] }
  times?: Partial<TunnelTimes> | undefined
  /** How long a run waits for a node that could take it. */
  dispatchMs: number
  /** After so long an absence of a node its runs end; 0: never. */
  lostAfterMs: number
  /** How other control planes of this store are reached and reach this one; undefined: they are not. */
  peer?: PeerIdentity | undefined
}

const decoder = new TextDecoder()

export type Nodes = ReturnType<typeof assembleNodes>

/** Nodes elsewhere, put together: who they are, the tunnel to them, their runs. */
export function assembleNodes(options: NodesOptions) {
  const { db, clock, metrics, newId, dayOf, embedded, dispatchMs, lostAfterMs } = options
  const { now } = clock
  const log = options.log.target('runtime.nodes')
  const times = { ...tunnelTimes, ...options.times }
  const store = nodeStore(db, options.peer?.url ?? null)
  const remote = remoteRunStore(db)
  const links = nodeLinks()
  const { maxBodyBytes, ownSessions } = options
  const peers = assemblePeers({
    peer: options.peer,
    links,
    store,
    remote,
    live: ownSessions.live,
    times,
    now,
    metrics,
    log,
    maxBodyBytes,
  })
  const { reachableNodes } = peers
  const data = remoteReads(reachableNodes, store)
  const credentials = poolCredentials({
    db,
    nodes: store,
    reachableNodes,
    now,
    redact: log.redact.opened,
    modelSettings: options.modelSettings,
  })
  const counts = nodeMetrics(metrics)
  const siblings = options.peer?.siblings
  const { engaged, engage, wanted, whenWanted, setKnown } = engagement(siblings)
  let endpoint: TunnelEndpoint | undefined

  const sessions = remoteSessions({ db, remote, nodes: store, reachableNodes, data, engaged })
  const talk = relayDeltas({
    remote,
    sessions: sessions.store(options.ownSessions.store),
    live: options.ownSessions.live,
    log,
  })

  const shared = {
    turn: talk,
    db,
    now,
    dayOf,
    signRemoteRun: options.signRemoteRun,
    verifySignature: options.curveKeys.verifySignature,
    enqueueEvent: options.enqueueStatusEvents,
    ended: options.ended,
    watched: options.watched,
  }
  /** What is decided from what stands about a run and then written; one after the other. */
  const { run: inTurn, idle } = workQueue()
  let ownRuns: RunStore | undefined
  const { end, cancelChildren } = endRemoteRuns({
    ...shared,
    remote,
    nodes: store,
    wakeNode: reachableNodes.wake,
    commandTarget: commandTarget(reachableNodes, store),
    inTurn,
    children: id => ownRuns!.children(id),
    log,
  })
  const loads = nodeLoads(links, now)
  const frameOf = assignFrames({ versionOf: options.versionOf, sealTo: options.curveKeys.sealTo })
  const offering = dispatcher({ db, log, now, links, loads, remote, nodes: store, frameOf })
  const dispatching = peers.dispatching(offering)
  const child = remoteSubagents({
    db,
    remote,
    nodes: store,
    links,
    now,
    dayOf,
    dispatchMs,
    sha256: options.sha256,
    admit: options.admit,
    versionOf: options.versionOf,
    currentByName: options.currentByName,
    runs: () => ownRuns!,
  })
  const write = applyReports({
    took: acceptTakeover({ db, nodes: store, wake: reachableNodes.wake }),
    child,
    ...shared,
    store: remote,
    log,
    dropped: counts.dropped,
    freed: loads.ended,
    enqueueRemoteEvents: options.enqueueRemoteEvents,
    spent: options.spent,
    setAside(runId, nodeId) {
      counts.setAside.add(1)
      log.error(
        'a run is set aside, since the process of its node ended whenever it was taken up: send it the signal "resume", or cancel it',
        { runId, nodeId },
      )
    },
    failed: ({ id }) => void cancelChildren(id),
    requeued: afterRefusal({ links, now, end, log }),
  })

  const enrolling = enrolment({
    store,
    now,
    poolKeyFor: (tenantId, pool, boxKey) => data.poolKey(tenantId, pool, toHex(boxKey)),
  })

  const endMissing = endMissingRuns({ remote, end, log })
  const gateway = lateGateway({
    store,
    links,
    clock,
    log,
    times,
    newId,
    reconnects: counts.reconnects,
    enrolment: {
      ...enrolling,
      async enrol(request) {
        const reply = await enrolling.enrol(request)
        engage()
        await credentials.welcome(reply.nodeId)
        return reply
      },
    },
    async applyReports(node, frames) {
      if (await inTurn(() => write(node, frames))) offering.wake()
    },
    over: overRuns({ db, remote, nodes: store, end, log }),
    async arrived(link, held, fresh) {
      engage()
      if (fresh) {
        await credentials.arrived({ ...link, id: link.nodeId })
        await endMissing(link.nodeId, held)
      }
      offering.wake()
    },
    heard: () => offering.wake(),
    limitsOn: remote.limitsOn,
    asked: remoteBudgets({ remote, grant: options.grant, useTool: options.useTool, dayOf, clock }),
    said: ({ id }, { sessionId, turnId, seq, delta }) =>
      talk.said(id, { sessionId, turnId, seq, delta: decoder.decode(delta) }),
  })

  const sweeps = nodeSweeps({
    db,
    log,
    engaged,
    swept: offering.wake,
    store,
    remote,
    reachableNodes,
    links,
    end,
    inTurn,
    now,
    absentMs: absences(clock.monotonic),
    newId,
    lostMs: times.lostMs,
    dispatchMs,
    lostAfterMs,
    standing: counts.standing,
  })

  return {
    gateway,
    links,
    remote,
    data,
    end,
    engaged,
    credentials,
    wanted: peers.wanted,
    peer: peers.route(offering),
    routes: {
      credentials,
      db,
      store,
      reachableNodes,
      end,
      openOn: remote.openOn,
      now,
      newId,
      lostMs: times.lostMs,
      endpoint: () => endpoint,
      wanted,
    },
    whenWanted,
    /** The host listens for nodes from now on. */
    listening(at: TunnelEndpoint): void {
      endpoint = at
    },

    runs(runs: RunStore): PlacedRuns {
      ownRuns = runs
      return placedRuns(runs, {
        db,
        remote,
        nodes: store,
        reachableNodes,
        data,
        end,
        dispatch: dispatching.wake,
        links,
        loads,
        frameOf,
        engaged,
        engage,
        dispatchMs,
        embedded,
        sha256: options.sha256,
        sealTo: options.curveKeys.sealTo,
        versionOf: options.versionOf,
        labelsOf: options.labelsOf,
        sessions,
      })
    },

    sessions: sessions.store(options.ownSessions.store),

    holdSession: ({ placementFor }: Pick<PlacedRuns, 'placementFor'>, tenantId: string, version: AgentVersion) =>
      holdSession({ options, engaged, placementFor, sessions }, tenantId, version),

    approvals: (approvals: ApprovalStore, remoteRunOf: PlacedRuns['remoteRunOf']) =>
      remoteApprovals(approvals, { db, nodes: store, reachableNodes, data, remoteRunOf }),

    requests: (own: RequestsOfSteps, remoteRunOf: PlacedRuns['remoteRunOf']) => remoteRequests(own, data, remoteRunOf),

    signal: passSignal({ db, remote, store, reachableNodes }),

    sealTexts: sealTextsFor(store, embedded.on),

    sealInput: scheduleInputs({
      nodes: store,
      embedded: embedded.on,
      engaged,
      labelsOf: options.labelsOf,
      sha256: options.sha256,
    }),

    unsealed: (version: VersionRow) => unsealed(data, version),

    deleting,

    backendsOf: backendsFor({ store, embedded, engaged }),

    async start({ timers }: { timers: boolean }): Promise<void> {
      const known = !embedded.on || (await remote.any())
      // Nodes may enrol elsewhere at any time; processes of one service say so.
      setKnown(known || (options.peer !== undefined && siblings === undefined))
      if (known || (await store.announced())) void wanted()
      if (timers) sweeps.start()
    },
    sweep: sweeps.now,
    async close(): Promise<void> {
      await sweeps.close()
      peers.leave()
      await gateway.close()
      await offering.idle()
      await dispatching.idle()
      await peers.close()
      await idle()
      await talk.idle()
    },
  }
}

function nodeMetrics(metrics: Metrics) {
  return {
    dropped: metrics.counter('waybill_tunnel_frames_dropped_total', 'Frames of nodes that were not taken, by reason.'),
    setAside: metrics.counter(
      'waybill_remote_runs_set_aside_total',
      'Runs that nodes elsewhere have set aside: the process of their node ended whenever it took them up.',
      [{}],
    ),
    reconnects: metrics.counter('waybill_tunnel_reconnects_total', 'Streams that nodes opened.', [{}]),
    standing: metrics.gauge('waybill_nodes', 'Nodes by how they stand.'),
  }
}

/** Whether there are nodes at all, which processes of one service tell each other, and what opens the tunnel for the first of them. */
function engagement(siblings: SiblingPeers | undefined) {
  let isEngaged = false
  let isWanted = false
  let open: (() => unknown) | undefined
  const engage = () => {
    isEngaged = true
    siblings?.engage()
  }
  return {
    engaged: () => isEngaged || siblings?.engaged() === true,
    engage,
    /** What the store says of nodes as the process starts. */
    setKnown(known: boolean): void {
      isEngaged = known
    },
    /** A node is announced, or there are some. */
    async wanted(): Promise<void> {
      isWanted = true
      // Before the token is in anyone's hands, whichever process a node then enrols at.
      if (siblings) engage()
      await open?.()
    },
    /** Calls back once a node is announced, or at once where there are some; the announcement waits for what it answers. */
    whenWanted(listen: () => unknown): void {
      open = listen
      if (isWanted) void listen()
    },
  }
}

/** Loaded with the first node that comes: what it stands on takes a quarter of a second to load. */
function lateGateway(deps: GatewayDeps): NodeGateway {
  let opened: Promise<NodeGateway> | undefined
  const open = () => {
    opened ??= import('./gateway/gateway.ts').then(({ nodeGateway }) => nodeGateway(deps))
    return opened
  }
  return {
    enrol: async request => (await open()).enrol(request),
    refresh: async request => (await open()).refresh(request),
    async *connect(token, frames) {
      yield* (await open()).connect(token, frames)
    },
    close: async () => (await opened)?.close(),
  }
}

/** Where a session of that version is held: at one node for its whole life, which is chosen now. */
async function holdSession(
  {
    options: { embedded, versionOf, labelsOf },
    engaged,
    placementFor,
    sessions,
  }: {
    options: Pick<NodesOptions, 'embedded' | 'versionOf' | 'labelsOf'>
    engaged: () => boolean
    placementFor: PlacedRuns['placementFor']
    sessions: Pick<RemoteSessions, 'pick' | 'opened'>
  },
  tenantId: string,
  { agentName, agentLabels, manifest, versionId }: AgentVersion,
): Promise<Held | undefined> {
  const version = await versionOf(versionId)
  const labels = agentLabels ?? (await labelsOf(tenantId, agentName))
  if (embedded.on && !engaged() && version?.sealed === undefined && !namesPool(labels)) return undefined
  const placement = await placementFor(tenantId, agentName, { manifest, sealed: version?.sealed, agentLabels: labels })
  if (placement.on === 'here') return undefined
  if (placement.on === 'nowhere') throw new ApiError('isolation_unavailable', placement.message)
  if (manifest.session.dedicatedMicrovm) {
    throw new ApiError(
      'isolation_unavailable',
      `a session of ${agentName} has a machine of its own, which only the embedded node gives in this version: set its label ${POOL_LABEL} to ${EMBEDDED_POOL}`,
    )
  }
  const { pool } = placement
  const nodeId = await sessions.pick(tenantId, pool, backends => satisfies(manifest.isolation, backends))
  return { opened: sessionId => sessions.opened({ sessionId, tenantId, pool, nodeId }) }
}

type BackendsDeps = Pick<NodesOptions, 'embedded'> & { store: NodeStore; engaged: () => boolean }

/** The nodes that a tenant's runs may go to, for warnings and the table of isolations. */
function backendsFor({ store, embedded, engaged }: BackendsDeps) {
  return async (tenantId: string): Promise<NodeBackends[]> => {
    const there = engaged() ? await store.enrolled(tenantId) : []
    return [
      ...(embedded.on ? [{ id: await embedded.id(), backends: embedded.backends }] : []),
      ...there.map(node => ({ id: node.id, backends: provenBackends(node) })),
    ]
  }
}

interface SignalDeps {
  db: Db
  remote: RemoteRunStore
  store: NodeStore
  reachableNodes: ReachableNodes
}

/** Passes a signal on to the run's node; false: it takes none any more. */
function passSignal({ db, remote, store, reachableNodes }: SignalDeps) {
  return async (runId: string, signal: { id: string; name: string; value: string; atMs: number }): Promise<boolean> => {
    const run = await remote.get(runId)
    if (run === undefined || isTerminal(run.status)) return false
    if (run.nodeId === undefined) {
      throw new ApiError('node_offline', `run ${runId} waits for a node: it takes signals when it has one`)
    }
    const poolKey = await store.poolKey(run.tenantId, run.pool)
    if (poolKey === undefined) throw new ApiError('node_offline', `pool ${run.pool} has no key`)
    const valueSealed = await sealTo(poolKey, utf8(JSON.stringify(signal)), signalAad(runId))
    const value = { runId, name: signal.name, valueSealed }
    const { controlBytes } = await import('../../shared/tunnel/control-bytes.ts')
    const node = await commandTarget(reachableNodes, store)(run.nodeId)
    await db.write([store.frame(node, controlBytes({ case: 'signal', value }))])
    reachableNodes.wake(node)
    return true
  }
}

/** To the pool that an agent names; where this process executes nothing, to the only one that its tenant has. */
function sealTextsFor(store: NodeStore, embeddedOn: boolean): SealTexts {
  return async ({ tenantId, labels }, versionId, manifest) => {
    const pool = labels[POOL_LABEL] ?? (embeddedOn ? undefined : await store.onlyPool(tenantId))
    if (pool === undefined || pool === EMBEDDED_POOL || !hasTexts(manifest)) return undefined
    const poolKey = await store.poolKey(tenantId, pool)
    if (poolKey === undefined) return undefined
    return { pool, box: await sealTo(poolKey, utf8(JSON.stringify(textsOf(manifest))), textsAad(versionId)) }
  }
}

async function unsealed(data: Pick<RemoteReads, 'texts'>, version: VersionRow): Promise<VersionRow> {
  const { sealed, tenantId, versionId } = version
  if (sealed === undefined) return version
  return { ...version, manifest: { ...version.manifest, ...(await data.texts(tenantId, versionId, sealed)) } }
}

/** For the transaction that deletes an agent. */
const deleting: Deleting = ({ id }) => [
  {
    sql: `update remote_runs set ending = 'agent_deleted' where run_id in
      (select id from runs where ${OPEN_OF_AGENT})`,
    args: [id],
  },
]

import { cpus, freemem, hostname, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import type { z } from 'zod'
import { nodeWorker } from '../runtime/nodes/worker/worker.ts'
import { readProviders } from '../runtime/providers/environment.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { EnvError, namesProxy, readEnv, unreadProxy } from '../shared/env/read-env.ts'
import { nativeCipher } from '../shared/host/native-crypto.ts'
import { nativeSha256 } from '../shared/host/native-sha256.ts'
import { nodeEgress } from '../shared/host/node-egress.ts'
import { usualHeldBytes } from '../shared/host/serve.ts'
import { stderrLines } from '../shared/host/stderr-lines.ts'
import { openWithWriteThread } from '../shared/host/write-thread.ts'
import { writerIsGone, writerName } from '../shared/host/writer-name.ts'
import { outboundRule } from '../shared/http/outbound/outbound-rule.ts'
import { createLog } from '../shared/log/log.ts'
import { systemClock } from '../shared/time/clock.ts'
import { nodeRunEnv } from './env.ts'
import { examine } from './isolation/doctor.ts'
import type { Probe } from './isolation/driver.ts'
import { PROBE_MS } from './isolation/drivers.ts'
import { nodeSandboxes } from './sandboxes.ts'
import { nodeAccess } from './tunnel/access.ts'
import { enrol, type Identity, poolSealKey, readIdentity } from './tunnel/identity.ts'
import { grpcTransport, type NodeTransport } from './tunnel/transport.ts'
import { type BackendReport, openTunnel, type Tunnel } from './tunnel/tunnel.ts'

const MB = 1024 * 1024
/** So long a start waits for the control plane before it goes on with the runs of the store. */
const FIRST_WELCOME_MS = 3000

export interface RunningNode {
  nodeId: string
  /** Rejects when the tunnel can never work. */
  done: Promise<void>
  /** Lets runs finish their open steps, tells what is left to tell, and says goodbye. */
  close(): Promise<void>
}

/** A node: enrols once, then executes what its control plane gives it, with everything about the runs in its own store. */
export async function runNode(
  vars: Record<string, string | undefined>,
  { say }: { say: (line: string) => void },
): Promise<RunningNode> {
  const env = readEnv(nodeRunEnv, vars)
  const providers = readProviders(vars)
  const isShared = env.PLATFORM_NODE_POOL_SHARED === '1'
  if (isShared && env.PLATFORM_DATABASE_URL === undefined) {
    throw new EnvError('PLATFORM_DATABASE_URL: nodes that share a store need the address of its libSQL server')
  }
  const log = createLog({ filter: env.PLATFORM_LOG_LEVEL, write: stderrLines(env.PLATFORM_LOG_FORMAT) })
  log.redact.register(env.PLATFORM_ENROL_TOKEN)
  log.redact.register(env.PLATFORM_DATABASE_TOKEN)
  const network = namesProxy(vars) ? (await import('../shared/host/proxy-agent.ts')).networkOf(vars) : undefined
  for (const secret of network?.secrets ?? []) log.redact.register(secret)
  for (const line of unreadProxy(vars)) log.warn(line)
  const transport = grpcTransport({
    url: env.PLATFORM_CONTROL_URL,
    ca: env.PLATFORM_CONTROL_CA,
    pin: env.PLATFORM_CONTROL_PIN,
    insecure: env.PLATFORM_TUNNEL_INSECURE === '1',
    network,
  })
  const identity = await enrolledIdentity(env, transport, say)
  // A workspace stands on the disk of one machine, so nodes that take runs from each other offer no sandboxes.
  // Also removes what an earlier process of this node left behind.
  const { probes } = await examine(env, PROBE_MS, isShared ? [] : env.NODE_AGENT_BACKENDS)
  const backends = backendReports(probes)
  const token = env.PLATFORM_DATABASE_TOKEN
  const db = await openWithWriteThread(env.PLATFORM_DATABASE_URL ?? join(env.PLATFORM_DATA_DIR, 'node.db'), {
    ...(token !== undefined && { token }),
    lost(why) {
      log.error('the thread that writes the store ended, and the node with it: start it again, and it goes on', { why })
      process.exit(1)
    },
  })
  const rule = outboundRule(env.PLATFORM_OUTBOUND_ALLOW)
  const outside = nodeEgress({ rule, log: log.target('node.outbound'), proxies: network })
  const sandboxes = nodeSandboxes({
    env,
    rule,
    proxies: network,
    probes,
    workspaces: join(env.PLATFORM_DATA_DIR, 'workspaces'),
    log: log.target('node.isolation'),
  })
  let tunnel: Tunnel | undefined
  const mayExecute = Promise.withResolvers<void>()
  const runtime = createRuntime({
    db,
    log,
    egress: outside,
    providers,
    sha256: nativeSha256,
    cipher: nativeCipher,
    owner: writerName(),
    isGone: writerIsGone,
    sandboxes,
    receiptSeed: identity.signSeed,
    demo: env.PLATFORM_DEMO !== 'off',
    providerDeadlines: { contentMs: env.PLATFORM_MODEL_CONTENT_TIMEOUT },
    answerBytesAtATime: usualHeldBytes(),
    copiedBytesAtMost: usualHeldBytes() / 4,
    limits: { maxConcurrent: env.PLATFORM_MAX_CONCURRENT_RUNS },
    worker: {
      ...identity,
      ...(isShared && { sealKey: await poolSealKey(identity) }),
      reportsAs: isShared ? identity.nodeId : null,
      make: nodeWorker,
      reportSoon: soon => tunnel?.reportSoon(soon),
      said: piece => tunnel?.said(piece),
      mayExecute: mayExecute.promise,
    },
  })
  try {
    await runtime.ready()
  } catch (error) {
    // What is open would keep a process that does nothing alive.
    await Promise.all([runtime.close(0), sandboxes.close(), outside.close()])
    await db.close()
    throw error
  }
  tunnel = openTunnel({
    transport,
    worker: runtime.worker!,
    backends,
    machine: hostMachine,
    slots: env.PLATFORM_MAX_CONCURRENT_RUNS,
    access: nodeAccess(identity, transport, systemClock.now),
    clock: systemClock,
    log: log.target('node.tunnel'),
    onFirstWelcome: mayExecute.resolve,
  })
  setTimeout(mayExecute.resolve, FIRST_WELCOME_MS).unref()
  const open = tunnel
  return {
    nodeId: identity.nodeId,
    done: open.done,
    async close() {
      runtime.drain()
      const untilMs = performance.now() + env.PLATFORM_DRAIN_TIMEOUT
      await runtime.settled(env.PLATFORM_DRAIN_TIMEOUT)
      // An order that came now would meet writers that are closed.
      await open.leaveOrders()
      await runtime.close(Math.max(0, untilMs - performance.now()))
      await open.flushed(Math.max(500, untilMs - performance.now()))
      await open.close()
      await sandboxes.close()
      await outside.close()
      await db.close()
    },
  }
}

/** Who this node is; it enrols with its token the first time. */
async function enrolledIdentity(
  env: z.output<typeof nodeRunEnv>,
  transport: NodeTransport,
  say: (line: string) => void,
): Promise<Identity> {
  const path = join(env.PLATFORM_DATA_DIR, 'node.json')
  const known = await readIdentity(path)
  if (known !== undefined) return known
  if (env.PLATFORM_ENROL_TOKEN === undefined) {
    throw new EnvError(
      'PLATFORM_ENROL_TOKEN: this node is not enrolled yet; `runtime nodes create <name>`, or POST /v1/nodes on the control plane, gives a token',
    )
  }
  const identity = await enrol(path, env.PLATFORM_ENROL_TOKEN, hostname(), transport)
  say(`enrolled ${identity.nodeId} in pool ${identity.pool}`)
  return identity
}

/** What was tried of each backend just now, as it is reported to the control plane. */
function backendReports(probes: readonly Probe[]): BackendReport[] {
  const verifiedUnix = BigInt(Math.floor(Date.now() / 1000))
  return probes.map(({ backend, available, verifiedBy, reasons, accel }) => ({
    name: backend,
    ok: available,
    detail: available ? (verifiedBy ?? '') : reasons.join(' '),
    verifiedUnix: available ? verifiedUnix : 0n,
    accel: accel ?? '',
  }))
}

/** What this machine has, and how much of it is in use. */
function hostMachine() {
  const count = cpus().length
  return {
    cpu: Math.min(1, (loadavg()[0] ?? 0) / Math.max(1, count)),
    vcpus: count,
    memoryMb: Math.floor(totalmem() / MB),
    memoryFreeMb: Math.floor(freemem() / MB),
  }
}

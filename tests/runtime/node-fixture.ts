import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { nodeAccess } from '../../node-agent/tunnel/access.ts'
import { enrol, type Identity, poolSealKey } from '../../node-agent/tunnel/identity.ts'
import type { NodeTransport } from '../../node-agent/tunnel/transport.ts'
import { openTunnel, type Tunnel } from '../../node-agent/tunnel/tunnel.ts'
import type { NodeGateway } from '../../runtime/nodes/gateway/gateway.ts'
import { nodeWorker } from '../../runtime/nodes/worker/worker.ts'
import { createRuntime, type Runtime, type RuntimeOptions } from '../../runtime/runtime.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { systemClock } from '../../shared/time/clock.ts'
import {
  type ControlFrame,
  EnrolRequestSchema,
  type NodeFrame,
  RefreshRequestSchema,
} from '../../shared/tunnel/gateway.gen.ts'
import { TunnelRefusal } from '../../shared/tunnel/protocol.ts'
import type { NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Api } from './api.ts'

/** Of a tunnel whose nodes are missed within seconds. */
export const TIMES = { heartbeatMs: 1000, lostMs: 3000, maxStreamMs: 3_600_000, readMs: 2000 }

/** A link between a node and a gateway in this process, which can be cut and can repeat or swap what passes. */
export function linkTo(gateway: () => NodeGateway) {
  let cut = false
  let streams = 0
  const breakers = new Set<(error: Error) => void>()
  const meddle = {
    toControl: (frame: NodeFrame): NodeFrame[] => [frame],
    toNode: (frame: ControlFrame): ControlFrame[] => [frame],
  }

  function refuseWhenCut(): void {
    if (cut) throw new TunnelRefusal('closing', 'the link is cut')
  }

  async function* through<T>(frames: AsyncIterable<T>, broken: Promise<never>, each: (frame: T) => T[]) {
    const iterator = frames[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await Promise.race([iterator.next(), broken])
        if (next.done) return
        yield* each(next.value)
      }
    } finally {
      void iterator.return?.().catch(() => undefined)
    }
  }

  const transport: NodeTransport = {
    async enrol(request) {
      refuseWhenCut()
      return gateway().enrol(create(EnrolRequestSchema, request))
    },
    async refresh(request) {
      refuseWhenCut()
      return gateway().refresh(create(RefreshRequestSchema, request))
    },
    async *connect(token, frames, gone) {
      refuseWhenCut()
      streams++
      const broken = Promise.withResolvers<never>()
      broken.promise.catch(() => undefined)
      const onGone = () => broken.reject(new TunnelRefusal('closing', 'the stream was ended', { cause: gone.reason }))
      gone.addEventListener('abort', onGone, { once: true })
      breakers.add(broken.reject)
      try {
        const up = through(frames, broken.promise, frame => meddle.toControl(frame))
        yield* through(gateway().connect(token, up), broken.promise, frame => meddle.toNode(frame))
      } finally {
        gone.removeEventListener('abort', onGone)
        breakers.delete(broken.reject)
      }
    },
  }
  return {
    transport,
    meddle,
    get streams() {
      return streams
    },
    /** Breaks what is open and refuses what comes, until it is mended. */
    cut() {
      cut = true
      for (const breakIt of breakers) breakIt(new TunnelRefusal('closing', 'the link was cut'))
    },
    mend() {
      cut = false
    },
  }
}

export type Link = ReturnType<typeof linkTo>

export interface NodeFixture {
  identity: Identity
  db: Db
  runtime: Runtime
  tunnel: Tunnel
  link: Link
  /** As a process that is killed: it sends nothing more. */
  kill(): Promise<void>
  /** The next life on the same store. */
  restart(): Promise<void>
  close(): Promise<void>
}

/** Announces a node at a control plane and starts it in this process, on a store of its own. */
export async function nodeFixture(
  api: Api,
  folder: string,
  options: Partial<RuntimeOptions> & {
    name?: string
    pool?: string
    backends?: readonly string[]
    /** The gateway, where the control plane is restarted in between. */
    gateway?: () => NodeGateway
    delayMs?: number
    maxStreamMs?: number
    /** Of a libSQL server that other nodes of the pool have as well. */
    sharedUrl?: string
  } = {},
): Promise<NodeFixture> {
  const {
    name = 'one',
    pool = 'default',
    backends = [],
    gateway,
    delayMs = 20,
    maxStreamMs,
    sharedUrl,
    ...rest
  } = options
  const announced = await api.json<NodeCreated>(201, 'POST', '/v1/nodes', { name, pool })
  const link = linkTo(gateway ?? (() => api.runtime.nodes.gateway))
  const identity = await enrol(`${folder}/${name}.json`, announced.enrolToken, name, link.transport)

  async function live() {
    const db = await openDb(sharedUrl ?? `${folder}/${name}.db`)
    let tunnel: Tunnel | undefined
    const mayExecute = Promise.withResolvers<void>()
    const runtime = createRuntime({
      db,
      owner: `node-${name}-${crypto.randomUUID()}`,
      isGone: owner => owner.startsWith(`node-${name}-`),
      receiptSeed: identity.signSeed,
      ...rest,
      worker: {
        ...identity,
        ...(sharedUrl !== undefined && { sealKey: await poolSealKey(identity) }),
        reportsAs: sharedUrl === undefined ? null : identity.nodeId,
        make: nodeWorker,
        reportSoon: soon => tunnel?.reportSoon(soon),
        said: piece => tunnel?.said(piece),
        mayExecute: mayExecute.promise,
      },
    })
    await runtime.ready()
    tunnel = openTunnel({
      transport: link.transport,
      worker: runtime.worker!,
      slots: 16,
      clock: systemClock,
      log: silentLog(),
      backends: backends.map(backend => ({ name: backend, ok: true, detail: 'ran', verifiedUnix: 1n, accel: '' })),
      machine: () => ({ cpu: 0, vcpus: 2, memoryMb: 1024, memoryFreeMb: 512 }),
      access: nodeAccess(identity, link.transport, systemClock.now),
      delay: () => delayMs,
      onFirstWelcome: mayExecute.resolve,
      ...(maxStreamMs !== undefined && { maxStreamMs }),
    })
    setTimeout(mayExecute.resolve, 1000).unref()
    return { db, runtime, tunnel }
  }

  const fixture: NodeFixture = {
    ...(await live()),
    identity,
    link,
    async kill() {
      link.cut()
      await fixture.tunnel.close()
      await fixture.runtime.close(0)
      fixture.db.close()
    },
    async restart() {
      link.mend()
      Object.assign(fixture, await live())
    },
    async close() {
      await fixture.tunnel.close()
      await fixture.runtime.close(500)
      fixture.db.close()
    },
  }
  return fixture
}

/** All bytes of the database of one side, as text. */
export async function filesOf(folder: string, side: string): Promise<string> {
  const names = (await readdir(folder)).filter(name => name.startsWith(`${side}.db`))
  return (await Promise.all(names.map(name => readFile(join(folder, name), 'latin1')))).join('')
}

/** Looks again until it is so. */
export async function until<T>(look: () => Promise<T | undefined | false>, what: string, ms = 10_000): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > end) throw new Error(`it did not come to this in ${ms} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

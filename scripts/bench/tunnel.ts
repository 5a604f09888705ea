import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodeAccess } from '../../node-agent/tunnel/access.ts'
import { enrol } from '../../node-agent/tunnel/identity.ts'
import { grpcTransport, type NodeTransport } from '../../node-agent/tunnel/transport.ts'
import { openTunnel, type Tunnel } from '../../node-agent/tunnel/tunnel.ts'
import { listenForNodes } from '../../runtime/host/tunnel.ts'
import { seat } from '../../runtime/nodes/seat.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { TunnelRefusal } from '../../shared/tunnel/refusal.ts'
import type { NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Bench } from './harness.ts'

const ROWS = [
  'steps of a run, embedded',
  'steps of a run, through the tunnel',
  'a thousand runs over one tunnel',
] as const
const STEPS = 100
const RUNS = 1000
const KEY = `wb_live_${'k'.repeat(43)}`

const median = (row: string) => (report: { variants: { name: string; median: number }[] }) =>
  report.variants.find(({ name }) => name === row)?.median ?? Number.NaN

/** What a step costs more when its run is on a node, and what one tunnel carries. */
export const tunnelBench: Bench = {
  title: 'Tunnel to a node',
  about:
    `Milliseconds. Both sides in one process over gRPC on loopback, each with its store in a file and fsync on. The first two ` +
    `rows are per step, of a run of ${STEPS} model and tool steps, from POST to its end at the control plane; the last is ${RUNS} runs, all started at once, to the end of the last.`,
  unit: 'ms',
  rounds: 5,
  expectations: [
    {
      says: 'the tunnel adds little to a step',
      value: report => median(ROWS[1])(report) - median(ROWS[0])(report),
      atMost: 1,
    },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-tunnel-'))
    const here = await side(join(folder, 'embedded.db'), true)
    const far = await side(join(folder, 'control.db'), false)
    const listening = await listenForNodes({
      ...{ gateway: far.runtime.nodes.gateway, bind: { host: '127.0.0.1', port: 0 }, insecure: false },
    })
    const link = partitioned(grpcTransport({ url: listening.at.endpoint, insecure: false }))
    const announced = await far.json<NodeCreated>('POST', '/v1/nodes', { name: 'bench' })
    const identity = await enrol(join(folder, 'node.json'), announced.enrolToken, 'bench', link.transport)
    const nodeDb = await openDb(join(folder, 'node.db'))
    let tunnel: Tunnel | undefined
    const node = createRuntime({
      ...{ db: nodeDb, sha256: nativeSha256, receiptSeed: identity.signSeed, limits: { maxConcurrent: RUNS } },
      seat: { ...identity, make: seat, news: () => tunnel?.news() },
    })
    await node.ready()
    tunnel = openTunnel({
      ...{
        transport: link.transport,
        seat: node.seat!,
        backends: [],
        slots: RUNS,
        clock: systemClock,
        log: silentLog(),
      },
      machine: () => ({ cpu: 0, vcpus: 2, memoryMb: 1024, memoryFreeMb: 512 }),
      access: nodeAccess(identity, link.transport, systemClock.now),
      delay: () => 200,
    })
    const prompt = `/call*${STEPS / 2 - 1} http_request {"url":"https://nowhere.invalid/"}`
    for (const one of [here, far]) {
      await one.json('POST', '/v1/agents', {
        name: 'steps',
        manifest: { tools: ['http_request'], limits: { maxTurns: 500 } },
      })
      await one.json('POST', '/v1/agents', { name: 'echo', manifest: {} })
    }

    async function perStep(one: typeof here): Promise<number> {
      const from = performance.now()
      const { id } = await one.json<Run>('POST', '/v1/runs', { agentName: 'steps', input: { prompt } })
      const run = await one.end(id)
      const took = performance.now() - from
      const { rows } = await one.db.execute({
        sql: `select count(*) from ${one === here ? 'events' : 'far_events'} where run_id = ? and ${one === here ? "body ->> 'kind'" : 'kind'} = 'step_started'`,
        args: [id],
      })
      if (run.status !== 'succeeded') throw new Error(`the run ended ${run.status}: ${JSON.stringify(run.error)}`)
      return took / Number(rows[0]?.[0])
    }

    async function many(during: () => Promise<void> = async () => {}): Promise<number> {
      const from = performance.now()
      const made = await Promise.all(
        Array.from({ length: RUNS }, (_, at) =>
          far.json<Run>('POST', '/v1/runs', { agentName: 'echo', input: { prompt: `run ${at}` } }),
        ),
      )
      await during()
      for (const { id } of made) {
        const run = await far.end(id)
        if (run.status !== 'succeeded') throw new Error(`a run ended ${run.status}`)
      }
      return performance.now() - from
    }

    // Once, before the rounds: a partition of ten seconds in the middle of a thousand runs, which must lose none and repeat none.
    await many(async () => {
      link.cut()
      await new Promise(resolve => setTimeout(resolve, 10_000))
      link.mend()
    })
    const { rows } = await far.db.execute(
      `select count(*), sum(event_seq), (select count(*) from far_events) from far_runs where head_known = 1`,
    )
    if (Number(rows[0]?.[0]) !== RUNS || Number(rows[0]?.[1]) !== Number(rows[0]?.[2])) {
      throw new Error(`the partition lost something: ${JSON.stringify(rows[0])}`)
    }

    return {
      variants: [
        { name: ROWS[0], round: () => perStep(here) },
        { name: ROWS[1], round: () => perStep(far) },
        { name: ROWS[2], round: () => many() },
      ],
      async close() {
        await tunnel?.close()
        await node.close(1000)
        await listening.close()
        await here.close()
        await far.close()
        nodeDb.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

async function side(path: string, embeddedNode: boolean) {
  const db = await openDb(path)
  const runtime = createRuntime({
    ...{ db, sha256: nativeSha256, bootstrapKey: KEY, embeddedNode, masterKey: new Uint8Array(32).fill(1) },
  })
  await runtime.ready()
  async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await runtime.fetch(
      new Request(`http://localhost${path}`, {
        ...{ method, headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' } },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    )
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
  return {
    ...{ db, runtime, json },
    async end(id: string): Promise<Run> {
      for (;;) {
        const run = await json<Run>('GET', `/v1/runs/${id}?fields=summary`)
        if (run.finishedAt !== undefined) return run
        await new Promise(resolve => setTimeout(resolve, 1))
      }
    },
    async close() {
      await runtime.close(1000)
      db.close()
    },
  }
}

/** A transport over a wire that can be cut: what is open breaks, and nothing can be opened. */
function partitioned(over: NodeTransport) {
  let cut = new AbortController()
  let isCut = false
  const transport: NodeTransport = {
    enrol: over.enrol,
    refresh: over.refresh,
    connect(token, frames, gone) {
      if (isCut) throw new TunnelRefusal('closing', 'the link is cut')
      return over.connect(token, frames, AbortSignal.any([gone, cut.signal]))
    },
  }
  return {
    transport,
    cut() {
      isCut = true
      cut.abort(new TunnelRefusal('closing', 'the link was cut'))
    },
    mend() {
      isCut = false
      cut = new AbortController()
    },
  }
}

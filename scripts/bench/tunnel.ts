import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { freePort } from './free-port.ts'
import type { Bench } from './harness.ts'
import { type BenchRuntime, benchRuntime, noopAgent, noopRun } from './runtime/server.ts'

const ROWS = [
  'steps of a run, embedded',
  'steps of a run, through the tunnel',
  'a thousand runs over one tunnel',
] as const
const TURNS = 50
const STEPS = 2 * TURNS + 1
const RUNS = 1000
const root = new URL('../../', import.meta.url).pathname

const median = (row: string) => (report: { variants: { name: string; median: number }[] }) =>
  report.variants.find(({ name }) => name === row)?.median ?? Number.NaN

/** What a step costs more when its run is on a node, and what one tunnel carries. */
export const tunnelBench: Bench = {
  title: 'Tunnel to a node',
  about:
    `Milliseconds. Control plane, node and client in processes of their own, as published, on loopback, each store in a file ` +
    `with fsync on. The first two rows are per step, of a run of ${STEPS} model and tool steps, from POST to the end of its event stream at the control plane; the last is ${RUNS} runs, all started at once, to the end of the last.`,
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
    const here = await benchRuntime()
    const tunnelPort = await freePort()
    const far = await benchRuntime({
      ...{ PLATFORM_EMBEDDED_NODE: 'off', PLATFORM_TUNNEL_BIND: `127.0.0.1:${tunnelPort}` },
    })
    const link = await cable(tunnelPort)
    const node = await nodeOf(far, link.port)
    for (const one of [here, far]) await noopAgent(one)

    async function perStep(one: BenchRuntime): Promise<number> {
      const from = performance.now()
      await noopRun(one, TURNS)
      return (performance.now() - from) / STEPS
    }

    async function many(during: () => Promise<void> = async () => {}): Promise<string[]> {
      const before = await ended(far)
      const made = await Promise.all(
        Array.from({ length: RUNS }, (_, at) =>
          far.call('POST', '/v1/runs', { agentName: 'noop', input: { prompt: `run ${at}` } }),
        ),
      )
      await during()
      while ((await ended(far)) < before + RUNS) await wait(20)
      return made.map(({ text }) => (JSON.parse(text) as Run).id)
    }

    // Once, before the rounds: a partition of ten seconds in the middle of a thousand runs, which must lose none and repeat none.
    const ids = await many(async () => {
      link.cut()
      await wait(10_000)
      link.mend()
    })
    for (const id of ids) {
      const { events } = JSON.parse((await far.call('GET', `/v1/runs/${id}/journal`)).text) as JournalExport
      if (events.map(({ kind }) => kind).join() !== 'step_started,step_completed') {
        throw new Error(`the partition lost or repeated something of run ${id}: ${JSON.stringify(events)}`)
      }
    }

    return {
      variants: [
        { name: ROWS[0], round: () => perStep(here) },
        { name: ROWS[1], round: () => perStep(far) },
        {
          name: ROWS[2],
          async round() {
            const from = performance.now()
            await many()
            return performance.now() - from
          },
        },
      ],
      async close() {
        node.kill('SIGKILL')
        await link.close()
        await here.close()
        await far.close()
      },
    }
  },
}

/** How many runs of nodes have ended well. */
async function ended({ call }: BenchRuntime): Promise<number> {
  const { text } = await call('GET', '/metrics')
  return Number(/^waybill_far_runs_total\{status="succeeded"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

/** A node that is enrolled and here. */
async function nodeOf({ call, folder }: BenchRuntime, port: number) {
  const announced = JSON.parse((await call('POST', '/v1/nodes', { name: 'bench' })).text) as NodeCreated
  const own = join(folder, 'node')
  await mkdir(own)
  const env = {
    ...{ PATH: process.env.PATH, PLATFORM_CONTROL_URL: `http://127.0.0.1:${port}`, PLATFORM_DATA_DIR: own },
    ...{ PLATFORM_ENROL_TOKEN: announced.enrolToken, PLATFORM_LOG_LEVEL: 'error', NODE_BACKENDS: 'none' },
    ...{ NODE_STATE_DIR: join(own, 'state'), NODE_IMAGE_DIR: join(own, 'image'), PLATFORM_MAX_CONCURRENT_RUNS: '250' },
  }
  const child = spawn(process.execPath, [`${root}dist/node-agent/main.js`, 'run'], { env, stdio: 'ignore' })
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the node ended with ${child.exitCode}`)
    const { status } = JSON.parse((await call('GET', `/v1/nodes/${announced.id}`)).text) as Node
    if (status === 'online') return child
    await wait(20)
  }
}

/** The way from the node to the control plane, which can be cut: what is open breaks, and nothing can be opened. */
async function cable(to: number) {
  const open = new Set<Socket>()
  let isCut = false
  const server = createServer(near => {
    if (isCut) return near.destroy()
    const far = connect(to, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.setNoDelay(true)
      one.pipe(other)
      one.on('error', () => undefined)
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    isCut = true
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as { port: number }).port,
    cut,
    mend() {
      isCut = false
    },
    async close() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}

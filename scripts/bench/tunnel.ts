import { spawn } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { freePort } from './free-port.ts'
import { type Bench, type Figure, spread } from './harness.ts'
import { type BenchRuntime, benchRuntime, noopAgent, noopRun } from './runtime/server.ts'
import { cable } from './tunnel-cable.ts'

const TURNS = 50
const STEPS = 2 * TURNS + 1
const RUNS = 1000
const PARTITION_MS = 10_000
export const NEAR = 'near'
export const FAR = 'far'
const root = new URL('../../', import.meta.url).pathname

/** What a step costs more when its run is on a node, and what one tunnel carries. */
export const tunnelBench: Bench = {
  title: 'Tunnel to a node',
  about:
    `Milliseconds a step, of a run of ${STEPS} model and tool steps, from POST to the end of its event stream. Control plane, node and client in processes of their own, as published, on loopback, each store in a file ` +
    `with fsync on; the embedded node is the control plane’s, with the other node connected. The difference is taken pair by pair. The thousand runs are started at once and cut off for ten seconds in the middle; then the journal of each is read through the tunnel and checked.`,
  unit: 'ms',
  rounds: 40,
  roundsWithinMs: 8_000,
  expectations: [{ says: 'the tunnel adds to a step', value: ({ figures }) => figures[0]!.value, atMost: 1 }],
  async prepare() {
    const { control, link, node, close } = await newTunnel()
    await noopAgent(control, NEAR, 'local')
    await noopAgent(control, FAR, 'default')
    const times: Record<string, number[]> = { [NEAR]: [], [FAR]: [] }
    const spent: Record<string, number[]> = { [NEAR]: [], [FAR]: [] }

    async function perStep(agent: string): Promise<number> {
      const [from, before] = [performance.now(), await processorMs(control.pid(), node.pid)]
      await noopRun(control, TURNS, agent)
      const took = (performance.now() - from) / STEPS
      times[agent]?.push(took)
      spent[agent]?.push(((await processorMs(control.pid(), node.pid)) - before) / STEPS)
      return took
    }

    /** The thousand and their journals; throws where the partition lost or repeated anything. */
    async function many(): Promise<number> {
      const from = performance.now()
      const before = await ended(control)
      const made = await Promise.all(
        Array.from({ length: RUNS }, (_, at) =>
          control.call('POST', '/v1/runs', { agentName: FAR, input: { prompt: `run ${at}` } }),
        ),
      )
      link.cut()
      await wait(PARTITION_MS)
      link.mend()
      while ((await ended(control)) < before + RUNS) await wait(20)
      const took = performance.now() - from - PARTITION_MS
      const left = made.map(({ text }) => (JSON.parse(text) as Run).id)
      const check = async () => {
        for (let id = left.pop(); id !== undefined; id = left.pop()) {
          const { events } = JSON.parse((await control.call('GET', `/v1/runs/${id}/journal`)).text) as JournalExport
          if (events.map(({ kind }) => kind).join() !== 'step_started,step_completed') {
            throw new Error(`the partition lost or repeated something of run ${id}: ${JSON.stringify(events)}`)
          }
        }
      }
      await Promise.all(Array.from({ length: 20 }, check))
      return took
    }

    return {
      variants: [
        { name: 'a step, embedded', round: () => perStep(NEAR) },
        { name: 'a step, through the tunnel', round: () => perStep(FAR) },
      ],
      async figures(): Promise<Figure[]> {
        const figures = [
          { name: 'a step more, median of the paired differences', value: more(times), unit: 'ms', exact: true },
          { name: 'processor time of both processes a step more', value: more(spent), unit: 'ms', exact: true },
        ]
        const name = `${RUNS} runs over one tunnel, the ten seconds not counted, none lost or repeated`
        return [...figures, { name, value: await many(), unit: 'ms' }]
      },
      close,
    }
  },
}

/** A control plane with a node that is enrolled and here, and the way between them. */
export async function newTunnel(vars: Record<string, string> = {}) {
  const tunnelPort = await freePort()
  const control = await benchRuntime({ PLATFORM_TUNNEL_BIND: `127.0.0.1:${tunnelPort}`, ...vars })
  const link = await cable(tunnelPort)
  const node = await nodeOf(control, link.port)
  return {
    control,
    link,
    node,
    async close() {
      node.kill('SIGKILL')
      await link.close()
      await control.close()
    },
  }
}

/** The first round of each is not counted. */
function more(of: Record<string, number[]>): number {
  const [near = [], remote = []] = [of[NEAR]?.slice(1), of[FAR]?.slice(1)]
  return Number(spread(remote.map((value, round) => value - (near[round] ?? Number.NaN))).median.toFixed(3))
}

/** What these processes have used, in milliseconds; the kernel counts in hundredths of a second. */
async function processorMs(...pids: readonly (number | undefined)[]): Promise<number> {
  const used = pids.map(async pid => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10
  })
  return (await Promise.all(used)).reduce((sum, one) => sum + one, 0)
}

/** How many runs of nodes have ended well. */
async function ended({ call }: BenchRuntime): Promise<number> {
  const { text } = await call('GET', '/metrics')
  return Number(/^waybill_remote_runs_total\{status="succeeded"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

/** A node that is enrolled and here. */
async function nodeOf({ call, folder }: BenchRuntime, port: number) {
  const announced = JSON.parse((await call('POST', '/v1/nodes', { name: 'bench' })).text) as NodeCreated
  const own = join(folder, 'node')
  await mkdir(own)
  const env = {
    PATH: process.env.PATH,
    PLATFORM_CONTROL_URL: `http://127.0.0.1:${port}`,
    PLATFORM_DATA_DIR: own,
    PLATFORM_ENROL_TOKEN: announced.enrolToken,
    PLATFORM_LOG_LEVEL: 'error',
    NODE_AGENT_BACKENDS: 'none',
    NODE_AGENT_STATE_DIR: join(own, 'state'),
    NODE_AGENT_IMAGE_DIR: join(own, 'image'),
    PLATFORM_MAX_CONCURRENT_RUNS: '250',
  }
  const child = spawn(process.execPath, [`${root}dist/node-agent/main.js`, 'run'], { env, stdio: 'ignore' })
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the node ended with ${child.exitCode}`)
    const { status } = JSON.parse((await call('GET', `/v1/nodes/${announced.id}`)).text) as Node
    if (status === 'online') return child
    await wait(20)
  }
}

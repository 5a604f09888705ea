import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { buildImage } from '../../node-agent/guest/build-image.ts'
import { INPUTS_FOLDER } from '../../node-agent/guest/image-inputs.ts'
import { type Bench, type Figure, quantile } from './harness.ts'
import { benchRuntime } from './runtime/server.ts'

const SESSIONS = 10
/** Machines that wait. */
const POOL = 2

/** From the request that opens a session to the words of its first turn, in milliseconds. */
interface Begun {
  opened: number
  answered: number
}

const COMMAND = '/call exec {"command":"echo from inside"}'

/** Sessions that have a machine of their own, as a client sees them. */
export const sessionsBench: Bench = {
  title: 'Sessions with a machine of their own',
  about: `Sessions over HTTP whose agent asks for a micro-VM for each, with the published runtime in its own process and a pool of ${POOL} machines under QEMU's software emulation: from POST /v1/sessions to the answer of the first turn, which the demo model gives at once, and to that of a turn that runs a command in the machine. Each begins as soon as the one before has ended, or a second later.`,
  unit: 'ms',
  rounds: 5,
  expectations: [
    {
      says: 'a session on a machine that waits answers its first turn, median',
      value: ({ figures }) => figures[0]!.value,
      atMost: 50,
    },
    { says: 'the same, 95 %', value: ({ figures }) => figures[1]!.value, atMost: 150 },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-sessions-'))
    await chmod(folder, 0o711)
    await buildImage(INPUTS_FOLDER, join(folder, 'image'))
    const server = await benchRuntime({
      NODE_AGENT_IMAGE_DIR: join(folder, 'image'),
      NODE_AGENT_STATE_DIR: join(folder, 'state'),
      NODE_AGENT_QEMU_ACCEL: 'tcg',
      PLATFORM_WARM_POOL: String(POOL),
    })
    await server.post('/v1/agents', {
      name: 'dweller',
      manifest: { tools: ['exec'], isolation: 'microvm', session: { dedicatedMicrovm: true, idleTimeoutSeconds: 60 } },
    })

    async function begin(content: string): Promise<Begun> {
      const from = performance.now()
      const { id, vm } = await server.post<{ id: string; vm: { state: string } }>('/v1/sessions', {
        agentName: 'dweller',
      })
      const opened = performance.now() - from
      const { text } = await server.post<{ text: string }>(`/v1/sessions/${id}/messages`, { content })
      const answered = performance.now() - from
      await server.call('DELETE', `/v1/sessions/${id}`)
      if (content === COMMAND && !/"stdout\\?":\\?"from inside/.test(text)) throw new Error(text)
      if (vm.state !== 'warm') throw new Error(`a session was given a machine that was ${vm.state}`)
      return { opened, answered }
    }
    const series = {
      apart: { pauseMs: 1000, content: 'hello', begun: [] as Begun[] },
      command: { pauseMs: 1000, content: COMMAND, begun: [] as Begun[] },
      closely: { pauseMs: 0, content: 'hello', begun: [] as Begun[] },
    }
    async function round({ pauseMs, content, begun }: (typeof series)['apart']): Promise<number> {
      const mine: Begun[] = []
      for (let at = 0; at < SESSIONS; at++) {
        await wait(pauseMs)
        mine.push(await begin(content))
      }
      begun.push(...mine)
      return quantile(
        mine.map(({ answered }) => answered).toSorted((a, b) => a - b),
        0.5,
      )
    }
    // The first asks for the pool.
    const { id } = await server.post<{ id: string }>('/v1/sessions', { agentName: 'dweller' })
    await server.call('DELETE', `/v1/sessions/${id}`)
    await wait(2000)

    return {
      variants: [
        { name: 'a second apart, to the answer of the first turn', round: () => round(series.apart) },
        { name: 'a second apart, to the answer of a turn with a command', round: () => round(series.command) },
        { name: 'one after the other, to the answer of the first turn', round: () => round(series.closely) },
      ],
      async figures(): Promise<Figure[]> {
        const of = (begun: Begun[], part: keyof Begun) => begun.map(one => one[part]).toSorted((a, b) => a - b)
        const answered = of(series.apart.begun, 'answered')
        return [
          { name: 'a second apart, first turn answered, median', value: quantile(answered, 0.5), unit: 'ms' },
          { name: 'a second apart, first turn answered, 95 %', value: quantile(answered, 0.95), unit: 'ms' },
          {
            name: 'a second apart, session opened, median',
            value: quantile(of(series.apart.begun, 'opened'), 0.5),
            unit: 'ms',
          },
          {
            name: 'a turn with a command, 95 %',
            value: quantile(of(series.command.begun, 'answered'), 0.95),
            unit: 'ms',
          },
          {
            name: 'one after the other, first turn answered, 95 %',
            value: quantile(of(series.closely.begun, 'answered'), 0.95),
            unit: 'ms',
          },
        ]
      },
      async close() {
        await server.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

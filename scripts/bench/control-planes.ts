import { readdir, readFile } from 'node:fs/promises'
import { startSqld } from '../../tests/backends/sqld.ts'
import { cluster } from '../../tests/scale/cluster.ts'
import { installSqld } from '../sqld.ts'
import type { Bench, Figure } from './harness.ts'

const SECONDS = 8
const CLIENTS = 24
/** USER_HZ, which Linux has fixed for /proc at 100. */
const TICKS = 100

export const controlPlanesBench: Bench = {
  title: 'Control planes on one libSQL server',
  about: `${CLIENTS} clients over HTTP for ${SECONDS} s, each starting a run of one model call and reading its events to the end, on one, two and three control planes (embedded nodes) as processes on loopback, all on one sqld on the same machine as the clients.`,
  unit: 'runs/s',
  rounds: 2,
  expectations: [],
  async prepare() {
    await installSqld()
    const sqld = await startSqld()
    const group = await cluster(sqld.primaryUrl, 3, { PLATFORM_MAX_CONCURRENT_RUNS: '64', PLATFORM_LEASE_TTL: '30s' })
    const manifest = { model: 'demo/echo' }
    await group.call(group.instances[0]!, 'POST', '/v1/agents', { name: 'bench', manifest })
    const shares: Figure[] = []
    const round = (count: number) => async (): Promise<number> => {
      for (const [number, instance] of group.instances.entries()) {
        if (number < count && !instance.running) await instance.start()
        if (number >= count) await instance.stop('SIGTERM')
      }
      const before = await processorSeconds()
      const began = performance.now()
      let ended = 0
      await Promise.all(
        Array.from({ length: CLIENTS }, async (_, client) => {
          const at = group.instances[client % count]!
          const body = { agentName: 'bench', input: { prompt: 'hello' } }
          while (performance.now() - began < SECONDS * 1000) {
            const made = await group.call(at, 'POST', '/v1/runs', body)
            if (made?.status !== 201) throw new Error(`a run was refused: ${made?.status} ${made?.text}`)
            await group.call(at, 'GET', `/v1/runs/${(JSON.parse(made.text) as { id: string }).id}/events`)
            ended++
          }
        }),
      )
      const took = (performance.now() - began) / 1000
      const after = await processorSeconds()
      shares.push(
        ...(['sqld', 'serve', 'client'] as const).map(name => ({
          name: `processors used by ${NAMES[name]}, ${count} of 3`,
          value: (after[name] - before[name]) / took,
          unit: 'cores',
        })),
      )
      return ended / took
    }
    return {
      variants: [
        { name: 'one control plane', round: round(1) },
        { name: 'two control planes', round: round(2) },
        { name: 'three control planes', round: round(3) },
      ],
      // Those of the last round.
      figures: async () => shares.slice(-9),
      async close() {
        await group.close()
        await sqld.stop()
      },
    }
  },
}

const NAMES = { sqld: 'sqld', serve: 'the control planes', client: 'the clients' }

/** Seconds of processor time so far, by what uses it. */
async function processorSeconds(): Promise<Record<keyof typeof NAMES, number>> {
  const { user, system } = process.cpuUsage()
  const found = { sqld: 0, serve: 0, client: (user + system) / 1_000_000 }
  for (const id of await readdir('/proc')) {
    if (!/^\d+$/.test(id)) continue
    const command = await readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')
    const is = /^[^\0]*sqld[^\0]*\0/.test(command) ? 'sqld' : command.endsWith('main.ts\0serve\0') ? 'serve' : undefined
    if (is === undefined) continue
    // The name of the program may hold spaces; after its bracket comes the third field, and user and system time are the 14th and 15th.
    const fields = (await readFile(`/proc/${id}/stat`, 'utf8').catch(() => '')).split(') ').at(-1)?.split(' ') ?? []
    found[is] += (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS
  }
  return found
}

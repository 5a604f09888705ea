import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSqld } from '../../tests/backends/sqld.ts'
import { cluster } from '../../tests/scale/cluster.ts'
import { installSqld } from '../sqld.ts'
import type { Bench, Figure } from './harness.ts'

const SECONDS = 5
const CLIENTS = 24
/** USER_HZ, which Linux has fixed for /proc at 100. */
const TICKS = 100
/** Warm through all rounds: a look of a plane without clients must not count. */
const QUIET = { PLATFORM_MAX_CONCURRENT_RUNS: '64', PLATFORM_LEASE_TTL: '30s', PLATFORM_RECOVERY_INTERVAL: '30s' }

export const controlPlanesBench: Bench = {
  title: 'Control planes on one libSQL server',
  about: `${CLIENTS} clients over HTTP for each control plane, for ${SECONDS} s, each starting a run of one model call and reading its events to the end: on one, two and three of three control planes (embedded nodes) as processes on loopback, all on one sqld on the same machine as the clients, and on one with its store in a file.`,
  unit: 'runs/s',
  rounds: 3,
  expectations: [],
  async prepare() {
    await installSqld()
    const sqld = await startSqld()
    const folder = await mkdtemp(join(tmpdir(), 'waybill-planes-'))
    const onServer = await cluster(sqld.primaryUrl, 3, QUIET)
    const onFile = await cluster(join(folder, 'store.db'), 1, QUIET)
    for (const { call, instances } of [onServer, onFile]) {
      await call(instances[0]!, 'POST', '/v1/agents', { name: 'bench', manifest: { model: 'demo/echo' } })
    }
    const shares = new Map<string, Figure>()
    const round = (group: typeof onServer, count: number, name: string) => async (): Promise<number> => {
      const before = await processorSeconds()
      const began = performance.now()
      let ended = 0
      await Promise.all(
        Array.from({ length: CLIENTS * count }, async (_, client) => {
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
      for (const part of ['sqld', 'serve', 'client'] as const) {
        const figure = `processor for a run, ${NAMES[part]}, ${name}`
        shares.set(figure, { name: figure, value: ((after[part] - before[part]) * 1000) / ended, unit: 'ms' })
      }
      return ended / took
    }
    const variant = (group: typeof onServer, count: number, name: string) => ({
      name,
      round: round(group, count, name),
    })
    return {
      variants: [
        variant(onFile, 1, 'one control plane, store in a file'),
        variant(onServer, 1, 'one control plane'),
        variant(onServer, 2, 'two control planes'),
        variant(onServer, 3, 'three control planes'),
      ],
      // Those of the last round.
      figures: async () => [...shares.values()],
      async close() {
        await Promise.all([onServer.close(), onFile.close()])
        await sqld.stop()
        await rm(folder, { recursive: true, force: true })
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

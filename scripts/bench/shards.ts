import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Sqld, startSqld } from '../../tests/backends/sqld.ts'
import { installSqld } from '../sqld.ts'
import type { Bench, Figure, Measured } from './harness.ts'

const SECONDS = 4
const LONG_SECONDS = 60
const WRITER = new URL('shard-writer.ts', import.meta.url).pathname
const run = promisify(execFile)

interface Written {
  commits: number
  worstMs: number
  tookMs: number
}

const ONE = 'three writers, one database'
const THREE = 'three writers, a database each'

const ratio = ({ ratios }: Measured): number => ratios.find(({ name }) => name === THREE)?.median ?? 0

export const shardsBench: Bench = {
  title: 'Writers over shards',
  about: `Three processes, each writing ten rows in one commit after the other for ${SECONDS} s: into one database, and into one each, every database a sqld of its own on this machine. Then twelve for ${LONG_SECONDS} s, four into each of three.`,
  unit: 'commits/s',
  rounds: 5,
  expectations: [
    { says: 'three databases over one, commits/s', value: ratio, atLeast: 2 },
    {
      says: 'the longest write of twelve writers, s',
      value: ({ figures }) => figures.find(({ name }) => name === WORST)?.value ?? Number.POSITIVE_INFINITY,
      atMost: 5,
    },
  ],
  async prepare() {
    await installSqld()
    const servers: Sqld[] = []
    for (let number = 0; number < 3; number++) servers.push(await startSqld())
    const urls = servers.map(({ primaryUrl }) => primaryUrl)

    async function written(targets: readonly string[], seconds: number): Promise<Written[]> {
      const all = targets.map((url, at) => run(process.execPath, [WRITER, url, String(seconds), `w${at}`]))
      return (await Promise.all(all)).map(({ stdout }) => JSON.parse(stdout) as Written)
    }
    const rate = (all: readonly Written[]) =>
      all.reduce((sum, { commits, tookMs }) => sum + commits / (tookMs / 1000), 0)
    return {
      variants: [
        { name: ONE, round: async () => rate(await written([urls[0]!, urls[0]!, urls[0]!], SECONDS)) },
        { name: THREE, round: async () => rate(await written(urls, SECONDS)) },
      ],
      async figures(): Promise<Figure[]> {
        const twelve = await written([...urls, ...urls, ...urls, ...urls], LONG_SECONDS)
        return [
          { name: 'commits of twelve writers over three databases', value: rate(twelve), unit: '/s' },
          { name: WORST, value: Math.max(...twelve.map(({ worstMs }) => worstMs)) / 1000, unit: 's' },
        ]
      },
      async close() {
        await Promise.all(servers.map(server => server.stop()))
      },
    }
  },
}

const WORST = 'the longest of their writes'

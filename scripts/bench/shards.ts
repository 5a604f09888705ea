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
  /** How often the server refused it first. */
  worstRefused: number
  tookMs: number
}

const ONE = 'three writers, one database'
const THREE = 'three writers, a database each'

const WORST = 'the longest of their writes'
const WORST_OF_SIX = 'the longest of their writes, two to each'

const longest = (all: readonly Written[]): Written => all.reduce((a, b) => (a.worstMs > b.worstMs ? a : b))

const figure =
  (name: string) =>
  ({ figures }: Measured): number =>
    figures.find(one => one.name === name)?.value ?? Number.POSITIVE_INFINITY

const ratio = ({ ratios }: Measured): number => ratios.find(({ name }) => name === THREE)?.median ?? 0

export const shardsBench: Bench = {
  title: 'Writers over shards',
  about: `Three processes, each writing ten rows in one commit after the other for ${SECONDS} s: into one database, and into one each, every database a sqld of its own on this machine. Then twelve for ${LONG_SECONDS} s, four into each of three, and two into each of six.`,
  unit: 'commits/s',
  rounds: 5,
  expectations: [
    { says: 'three databases over one, commits/s', value: ratio, atLeast: 2 },
    {
      says: 'the longest write of twelve writers, s',
      value: figure(WORST),
      atMost: 5,
    },
    { says: 'the same with two to each database, s', value: figure(WORST_OF_SIX), atMost: 5 },
  ],
  async prepare() {
    await installSqld()
    const servers: Sqld[] = []
    for (let number = 0; number < 6; number++) servers.push(await startSqld())
    const six = servers.map(({ primaryUrl }) => primaryUrl)
    const urls = six.slice(0, 3)

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
        const worst = longest(twelve)
        const spread = await written([...six, ...six], LONG_SECONDS)
        return [
          { name: 'commits of twelve writers over three databases', value: rate(twelve), unit: '/s' },
          { name: WORST, value: worst.worstMs / 1000, unit: 's' },
          { name: 'how often the server had refused it', value: worst.worstRefused, unit: '' },
          { name: 'commits of twelve writers over six databases', value: rate(spread), unit: '/s' },
          { name: WORST_OF_SIX, value: longest(spread).worstMs / 1000, unit: 's' },
        ]
      },
      async close() {
        await Promise.all(servers.map(server => server.stop()))
      },
    }
  },
}

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { replaceSection } from './bench/report.ts'
import { type Growth, machine, table } from './growth/measured.ts'
import { plot } from './growth/plot.ts'
import { growthOfRuns } from './growth/runs.ts'
import { growthOfTraces } from './growth/traces.ts'

const docs = new URL('../docs/', import.meta.url).pathname
const cache = new URL('../node_modules/.cache/waybill/', import.meta.url).pathname

/** `npx node scripts/growth.ts [--of runs|traces] [--most 10000000] [--write]`: what operations cost as a store grows, as a table and as plots. */
const { values } = parseArgs({
  options: { of: { type: 'string' }, most: { type: 'string' }, write: { type: 'boolean', default: false } },
})
const most = Number(values.most ?? 100_000)
const sizes = [10_000, 100_000, 1_000_000, 10_000_000].filter(size => size <= most)
const say = (line: string) => void process.stderr.write(`${line}\n`)
await mkdir(cache, { recursive: true })
const folder = await mkdtemp(`${cache}growth-`)
try {
  for (const [of, grow] of Object.entries({ runs: growthOfRuns, traces: growthOfTraces })) {
    if (values.of === undefined || values.of === of) await show(`growth-${of}`, await grow(folder, sizes, say))
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function show(name: string, growth: Growth): Promise<void> {
  const section = `${table(growth)}\n\n![${growth.title}](${name}.svg)\n\nOn ${machine()}.`
  process.stdout.write(`${section}\n\n`)
  if (!values.write) return
  await writeFile(`${docs}${name}.svg`, plot(growth))
  const page = await readFile(`${docs}sizing.md`, 'utf8')
  await writeFile(`${docs}sizing.md`, replaceSection(page, name, section))
}

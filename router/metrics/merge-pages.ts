/** Of these, every process counts its own; any other gauge says the same in each, or the worst of them is what matters. */
const SUMMED_GAUGES = new Set([
  'router_in_flight_requests',
  'router_queue_depth',
  'router_spill_bytes',
  'router_savings_usd',
])

interface Family {
  head: string[]
  type: string
  series: Map<string, number>
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})?) (\S+)$/

/** One page of several processes: counters and histograms are added up. */
export function mergePages(pages: readonly string[]): string {
  const families = new Map<string, Family>()
  for (const page of pages) readPage(page, families)
  return printed(families)
}

/** What a process that ended has counted; where it stood is over. */
export function countersOf(page: string): string {
  const families = new Map<string, Family>()
  readPage(page, families)
  for (const [name, { type }] of families) if (type === 'gauge' && name !== 'router_savings_usd') families.delete(name)
  return printed(families)
}

function printed(families: ReadonlyMap<string, Family>): string {
  let out = ''
  for (const { head, series } of families.values()) {
    for (const line of head) out += `${line}\n`
    for (const [name, value] of series) out += `${name} ${value}\n`
  }
  return out
}

function readPage(page: string, families: Map<string, Family>): void {
  let family: Family | undefined
  let isSummed = true
  for (const line of page.split('\n')) {
    if (line.startsWith('# HELP ')) {
      const name = line.split(' ', 3)[2]!
      family = families.get(name) ?? { head: [line], type: '', series: new Map() }
      families.set(name, family)
    } else if (line.startsWith('# TYPE ')) {
      const [, , name = '', type = ''] = line.split(' ')
      if (family !== undefined && family.type === '') {
        family.type = type
        family.head.push(line)
      }
      isSummed = type !== 'gauge' || SUMMED_GAUGES.has(name)
    } else {
      const [, name, text] = SAMPLE.exec(line) ?? []
      if (family === undefined || name === undefined) continue
      const value = Number(text)
      const known = family.series.get(name)
      family.series.set(name, known === undefined ? value : isSummed ? known + value : Math.max(known, value))
    }
  }
}

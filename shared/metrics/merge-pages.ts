/** The gauges of a service that are not merged by their largest value. */
export interface MergedGauges {
  /** Of these, every process counts its own. */
  summed: readonly string[]
  /** These count up, and stay counted when their process has ended. */
  lasting?: readonly string[]
}

export interface PageMerger {
  /** One page of several processes: counters and histograms are added up. */
  mergePages(pages: readonly string[]): string
  /** What a process that ended has counted; where it stood is over. */
  countersOf(page: string): string
}

interface Family {
  head: string[]
  type: string
  series: Map<string, number>
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})?) (\S+)$/s

export function pageMerger({ summed, lasting = [] }: MergedGauges): PageMerger {
  const isSummed = new Set(summed)
  return {
    mergePages(pages) {
      const families = new Map<string, Family>()
      for (const page of pages) readPage(page, families, isSummed)
      return printed(families)
    },
    countersOf(page) {
      const families = new Map<string, Family>()
      readPage(page, families, isSummed)
      for (const [name, { type }] of families) if (type === 'gauge' && !lasting.includes(name)) families.delete(name)
      return printed(families)
    },
  }
}

function printed(families: ReadonlyMap<string, Family>): string {
  let out = ''
  for (const { head, series } of families.values()) {
    for (const line of head) out += `${line}\n`
    for (const [name, value] of series) out += `${name} ${value}\n`
  }
  return out
}

function readPage(page: string, families: Map<string, Family>, summed: ReadonlySet<string>): void {
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
      isSummed = type !== 'gauge' || summed.has(name)
    } else {
      const [, name, text] = SAMPLE.exec(line) ?? []
      if (family === undefined || name === undefined) continue
      const value = Number(text)
      const known = family.series.get(name)
      family.series.set(name, known === undefined ? value : isSummed ? known + value : Math.max(known, value))
    }
  }
}

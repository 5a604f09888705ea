import { readFileSync, writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** What only the process itself can say: timers that are set, handles that keep it alive, and what is in use of its memory. */
export interface Inside {
  timers: number
  handles: number
  /** Of the main thread, after a collection: what grows here is held by the program, and not left over for the collector. */
  heapMb: number
  buffersMb: number
}

/** The variable that names the file, for processes that were started with `--import` of this module: each adds its number. */
export const INSIDE_FILE = 'SOAK_INSIDE_FILE'

export function inside(names: readonly string[]): Pick<Inside, 'timers' | 'handles'> {
  const timers = names.filter(name => name === 'Timeout' || name === 'Immediate').length
  return { timers, handles: names.length - timers }
}

/** The newest figures of a process that writes them; undefined before its first ones. */
export function insideOf(file: string): Inside | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Inside
  } catch {
    // Not there yet, or half-way through being written: the next look finds it.
    return undefined
  }
}

/** So seldom that it hardly changes how the process works. */
const COLLECT_EVERY_S = 30

const file = process.env[INSIDE_FILE]
if (file !== undefined) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const MB = 1024 * 1024
  const inUse = (): Pick<Inside, 'heapMb' | 'buffersMb'> => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return { heapMb: heapUsed / MB, buffersMb: external / MB }
  }
  let memory = inUse()
  let seconds = 0
  setInterval(() => {
    if (++seconds % COLLECT_EVERY_S === 0) memory = inUse()
    const figures: Inside = { ...inside(process.getActiveResourcesInfo()), ...memory }
    writeFileSync(`${file}.${process.pid}`, JSON.stringify(figures))
  }, 1000).unref()
}

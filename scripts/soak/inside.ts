import { readFileSync, writeFileSync } from 'node:fs'

/** What only the process itself can say: timers that are set, and handles that keep it alive. */
export interface Inside {
  timers: number
  handles: number
}

/** The variable that names the file, for processes that were started with `--import` of this module: each adds its number. */
export const INSIDE_FILE = 'SOAK_INSIDE_FILE'

export function inside(names: readonly string[]): Inside {
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

const file = process.env[INSIDE_FILE]
if (file !== undefined) {
  setInterval(
    () => writeFileSync(`${file}.${process.pid}`, JSON.stringify(inside(process.getActiveResourcesInfo()))),
    1000,
  ).unref()
}

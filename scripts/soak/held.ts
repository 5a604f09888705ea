import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { quantile } from '../bench/harness.ts'
import type { Inside } from './inside.ts'

/** What a process holds at one moment: of the machine, and in itself. */
export interface Held extends Inside {
  rssMb: number
  sockets: number
  files: number
  threads: number
}

export function heldBy(pid: number): Omit<Held, keyof Inside> {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const number = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? Number.NaN)
  const targets = readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)]
    } catch {
      // Closed between the two calls.
      return []
    }
  })
  const sockets = targets.filter(target => target.startsWith('socket:')).length
  return { rssMb: number('VmRSS') / 1024, sockets, files: targets.length - sockets, threads: number('Threads') }
}

export interface Growth {
  of: keyof Held
  early: number
  late: number
  /** By how much the late median is above the early one, as a share of it. */
  share: number
}

/** The second quarter of the time against the last: the first is for warming up. */
export function growth(samples: readonly Held[]): Growth[] {
  const quarter = Math.floor(samples.length / 4)
  const median = (of: keyof Held, from: number) =>
    quantile(
      samples
        .slice(from, from + quarter)
        .map(one => one[of])
        .toSorted((a, b) => a - b),
      0.5,
    )
  return (['rssMb', 'heapMb', 'buffersMb', 'sockets', 'files', 'threads', 'timers', 'handles'] as const).map(of => {
    const [early, late] = [median(of, quarter), median(of, samples.length - quarter)]
    return { of, early, late, share: early === 0 ? late : (late - early) / early }
  })
}

import { readFile } from 'node:fs/promises'

/** Ticks of the kernel's accounting in a second. */
const TICKS = 100

/** Processor time of a thread so far, in milliseconds. */
async function ofStat(path: string): Promise<number> {
  const stat = await readFile(path, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS
}

export interface Used {
  /** Of all threads, and of the one that runs the program. */
  all: number
  main: number
}

export async function processorTime(pid: number): Promise<Used> {
  const [all, main] = await Promise.all([ofStat(`/proc/${pid}/stat`), ofStat(`/proc/${pid}/task/${pid}/stat`)])
  return { all, main }
}

/** The processes that a process has started, and the role each has among its arguments. */
export async function childrenOf(pid: number): Promise<{ pid: number; role: string }[]> {
  const numbers = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(/\s+/).filter(Boolean)
  return Promise.all(
    numbers.map(async number => ({
      pid: Number(number),
      role: (await readFile(`/proc/${number}/cmdline`, 'utf8')).split('\0')[2] ?? '',
    })),
  )
}

import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/** The space in which this machine counts processes; a container has its own, so equal numbers there are other processes. */
function processSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}

const machine = `${hostname()} ${processSpace()}`

/** What the kernel says of a process: when it began, in ticks since the machine did; `over` where it only waits for its parent to notice. */
function processState(pid: number): 'over' | { began: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state = '', ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return 'ZX'.includes(state) ? 'over' : { began: rest[18] ?? '' }
  } catch {
    return undefined
  }
}

/** One for all threads of a process: numbers of processes come again, and then the thread that asks may not be the one that writes. */
function processMark(): string {
  const inherited = getEnvironmentData('waybill-process')
  if (typeof inherited === 'string') return inherited
  const state = processState(process.pid)
  const made = `${typeof state === 'object' ? state.began : ''}.${randomUUID()}`
  setEnvironmentData('waybill-process', made)
  return made
}

const mark = processMark()

/** A name for a writer of this process that tells other processes of the machine which process it is. */
export function writerName(): string {
  return `${machine}/${process.pid}/${mark}/${randomUUID()}`
}

/** A writer's name for people: its machine and its process. */
export function writerText(name: string): string {
  const [where, pid] = name.split('/')
  return pid === undefined ? name : `process ${pid} on ${where?.split(' ')[0]}`
}

/** Whether a writer's process surely ended: it ran here, and its number is free or another process's. */
export function writerIsGone(name: string): boolean {
  const [where, pid, whose] = name.split('/')
  // The name of the space holds no slash.
  if (where !== machine || pid === undefined || !/^\d+$/.test(pid)) return false
  if (Number(pid) === process.pid) return whose !== mark
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return true
  }
  const state = processState(Number(pid))
  if (state === undefined || state === 'over') return state === 'over'
  const began = /^(\d+)\./.exec(whose ?? '')?.[1]
  return began !== undefined && began !== state.began
}

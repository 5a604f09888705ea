import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Backend } from './driver.ts'

/** When a process started, in ticks since the machine did; with its pid this names it for good. Undefined: not there. */
export function startTicks(pid: number): string | undefined {
  try {
    // The name in the second field may hold spaces and brackets; field 22 is the 20th behind it.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}

/** An id that says whose the sandbox is, so that what a dead process left behind can be told from what is in use. */
export function newOwnedId(backend: Backend, pid = process.pid): string {
  return `wb-${backend}-${pid}-${startTicks(pid) ?? 0}-${randomBytes(6).toString('hex')}`
}

const SHAPE = /^wb-([a-z]+)-(\d{1,10})-(\d{1,20})-[0-9a-f]{12}$/

/** True for an id of this backend whose process has ended. */
export function isOrphan(
  id: string,
  backend: Backend,
  ticksOf: (pid: number) => string | undefined = startTicks,
): boolean {
  const [, own, pid, ticks] = SHAPE.exec(id) ?? []
  return own === backend && ticksOf(Number(pid)) !== ticks
}

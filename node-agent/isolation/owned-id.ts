import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'

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
export function newOwnedId(pid = process.pid): string {
  return `wb-${pid}-${startTicks(pid) ?? 0}-${randomBytes(6).toString('hex')}`
}

const SHAPE = /^wb-(\d{1,10})-(\d{1,20})-[0-9a-f]{12}$/

/** True for an id of ours whose process has ended. */
export function isOrphan(id: string, ticksOf: (pid: number) => string | undefined = startTicks): boolean {
  const [, pid, ticks] = SHAPE.exec(id) ?? []
  return pid !== undefined && ticksOf(Number(pid)) !== ticks
}

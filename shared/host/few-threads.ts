import { readFileSync } from 'node:fs'

/** Node has started seven threads by now, four more read files and two or more open a store: where they cannot be started it aborts without a word. */
const FEWEST = 13

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** How many threads this process may have, as far as its own limits say. */
export function threadsAllowed(text = read, isRoot = process.getuid?.() === 0): number {
  const group = /^0::(\/.*)$/m.exec(text('/proc/self/cgroup'))?.[1] ?? '/'
  const most = [text(`/sys/fs/cgroup${group}/pids.max`)]
  if (!isRoot) most.push(/^Max processes +(\d+)/m.exec(text('/proc/self/limits'))?.[1] ?? '')
  return Math.min(...most.map(one => Number.parseInt(one, 10) || Number.POSITIVE_INFINITY))
}

/** A command that could not read a file ends with a sentence. */
export function refuseFewThreads(): void {
  const most = threadsAllowed()
  if (most >= FEWEST) return
  process.stderr.write(
    `Only ${most} threads may be started: raise the limit of processes (ulimit -u, --pids-limit, TasksMax).\n`,
  )
  process.exit(1)
}

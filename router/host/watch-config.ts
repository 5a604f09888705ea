import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { Log } from '../../shared/log/log.ts'

/** A file is written in several steps; it is read when it has been quiet for this long. */
const QUIET_MS = 100

/** ROUTER_WATCH: reads the config anew when its file changes. The folder is watched, since editors put a new file in place. */
export function reloadOnChange(file: string, reload: () => Promise<unknown>, log: Log): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let watcher: FSWatcher | undefined
  const name = basename(file)
  const changed = (_: string, what: string | null): void => {
    if (what !== null && what !== name) return
    clearTimeout(timer)
    // One that cannot be used is logged by the reload, and the old one stays.
    timer = setTimeout(() => void reload().catch(() => undefined), QUIET_MS)
  }
  const failed = (error: unknown) =>
    log.error('the routing config is not watched any more: reload it with SIGHUP', { error })
  try {
    watcher = watch(dirname(resolve(file)), { persistent: false }, changed)
    watcher.on('error', failed)
  } catch (error) {
    failed(error)
  }
  return () => {
    clearTimeout(timer)
    watcher?.close()
  }
}

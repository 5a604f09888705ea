import { availableParallelism } from 'node:os'

/** The engine has four threads beside each service's own, whatever the machine has: on so few processors they take them all from the calls. */
const FEW_PROCESSORS = 4

const POOL = '--v8-pool-size'

/**
 * Begins this process anew, under the same id and with what it has open, for what can be told to a process in no other way.
 *
 * One place from which all threads take memory: glibc gives each thread a place of its own, and nothing of what the compiling threads take
 * and give back in theirs returns to the machine, 10 to 15 MB of a runtime. With `oneWorker`, on few processors, one thread in which the
 * engine compiles and collects instead of four, which all have work at once when a service has served its first ten thousand calls: for
 * one whose callers wait. It collects later, too, and a runtime would hold 5 MB more.
 *
 * What the operator has set stays, and so does a process that a debugger or a parent is connected to.
 */
export function beginAnew({ oneWorker = false } = {}): void {
  const { argv, connected, env, execArgv, execPath, execve, platform } = process
  if (platform !== 'linux' || connected || execArgv.some(arg => arg.startsWith('--inspect'))) return
  const isSet = `${execArgv.join(' ')} ${env.NODE_OPTIONS ?? ''}`.includes(POOL)
  const pool = oneWorker && availableParallelism() <= FEW_PROCESSORS && !isSet ? [`${POOL}=1`] : []
  if (env.MALLOC_ARENA_MAX !== undefined && pool.length === 0) return
  try {
    execve?.(execPath, [execPath, ...execArgv, ...pool, ...argv.slice(1)], { MALLOC_ARENA_MAX: '1', ...env })
  } catch {
    // One that may start no program goes on as it is.
  }
}

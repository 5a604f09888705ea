import { availableParallelism } from 'node:os'
import { asksForDebugger } from './asks-for-debugger.ts'

/** The engine has four threads beside each service's own, whatever the machine has: on so few processors they take them all from the calls. */
const FEW_PROCESSORS = 4

const POOL = '--v8-pool-size'
/** Without it Node opens a debugger at a SIGUSR1 that comes before any program can say what it does with one. */
const SHUT = '--disable-sigusr1'

/**
 * Begins this process anew, under the same id and with what it has open, for what can be told to a process in no other way.
 *
 * One place from which all threads take memory: glibc gives each thread a place of its own, and nothing of what the compiling threads take
 * and give back in theirs returns to the machine, 10 to 15 MB of a runtime. With `oneWorker`, on few processors, one thread in which the
 * engine compiles and collects instead of four, which all have work at once when a service has served its first ten thousand calls: for
 * one whose callers wait. It collects later, too, and a runtime would hold 5 MB more.
 *
 * And no debugger at SIGUSR1, not even in the moment before `shutInspector` is called.
 *
 * What the operator has set stays, and so does a process that a debugger or a parent is connected to.
 */
export function beginAnew({ oneWorker = false } = {}): void {
  const { allowedNodeEnvironmentFlags, argv, connected, env, execArgv, execPath, execve, platform } = process
  if (platform !== 'linux' || connected || asksForDebugger()) return
  const given = `${execArgv.join(' ')} ${env.NODE_OPTIONS ?? ''}`
  const pool = oneWorker && availableParallelism() <= FEW_PROCESSORS && !given.includes(POOL) ? [`${POOL}=1`] : []
  const shut = allowedNodeEnvironmentFlags.has(SHUT) && !given.includes(SHUT) ? [SHUT] : []
  const options = [...pool, ...shut]
  if (env.MALLOC_ARENA_MAX !== undefined && options.length === 0) return
  try {
    execve?.(execPath, [execPath, ...execArgv, ...options, ...argv.slice(1)], { MALLOC_ARENA_MAX: '1', ...env })
  } catch {
    // One that may start no program goes on as it is.
  }
}

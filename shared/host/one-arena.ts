/**
 * Begins this process anew, under the same id and with what it has open, with one place from which all its threads take memory.
 * glibc gives each thread a place of its own, and nothing of what the compiling threads take and give back in theirs returns to
 * the machine: 10 to 15 MB of a runtime. It is read when a process begins and can be told in no other way. What the operator has
 * set stays, and so does a process that a debugger or a parent is connected to.
 */
export function inOneArena(): void {
  const { argv, connected, env, execArgv, execPath, execve, platform } = process
  if (platform !== 'linux' || env.MALLOC_ARENA_MAX !== undefined || connected) return
  if (execArgv.some(arg => arg.startsWith('--inspect'))) return
  try {
    execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], { ...env, MALLOC_ARENA_MAX: '1' })
  } catch {
    // One that may start no program goes on as it is.
  }
}

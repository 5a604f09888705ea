const DEBUGGER = /--inspect(-brk|-wait)?(=|\s|$)/

/** Whether the operator has started this process with a debugger. */
export function asksForDebugger(): boolean {
  const { env, execArgv } = process
  return DEBUGGER.test(`${execArgv.join(' ')} ${env.NODE_OPTIONS ?? ''}`)
}

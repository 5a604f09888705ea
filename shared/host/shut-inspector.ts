import { close, url } from 'node:inspector'

/** What signals before it have asked for, Node opens in one of the first turns of the event loop, however late loading lets it have them. */
const LOOKS = 100
const LOOK_MS = 20
const DEBUGGER = /--inspect(-brk|-wait)?(=|\s|$)/

/**
 * SIGUSR1 makes Node open a debugger on a port of this machine, for every account of it. With a listener it does not, and what signals
 * before it have opened is closed. An operator who wants the debugger starts the program with --inspect.
 */
export function shutInspector(): void {
  process.on('SIGUSR1', () => undefined)
  process.once('SIGUSR1', () => process.stderr.write('SIGUSR1 opens no debugger here: start with node --inspect\n'))
  if (asksForDebugger()) return
  const shut = () => {
    if (url() !== undefined) close()
  }
  shut()
  let left = LOOKS
  const looks = setInterval(() => {
    shut()
    if (--left === 0) clearInterval(looks)
  }, LOOK_MS).unref()
}

/** Whether the operator has started this process with a debugger. */
function asksForDebugger(): boolean {
  const { env, execArgv } = process
  return DEBUGGER.test(`${execArgv.join(' ')} ${env.NODE_OPTIONS ?? ''}`)
}

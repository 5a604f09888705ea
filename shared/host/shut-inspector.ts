import { close, url } from 'node:inspector'
import { asksForDebugger } from './asks-for-debugger.ts'

/** So long after the start may Node still open what signals before it have asked for. */
const PENDING_MS = 2000
const LOOK_MS = 20

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
  const looks = setInterval(shut, LOOK_MS).unref()
  setTimeout(() => clearInterval(looks), PENDING_MS).unref()
}

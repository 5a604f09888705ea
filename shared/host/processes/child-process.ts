import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Ending, ToProcess } from './messages.ts'

type Vars = Record<string, string | undefined>

/** The path of a program that a module starts by its source; where it is published, the same in JavaScript. The build looks for such addresses. */
export function programOf(module: string, source: URL): string {
  return fileURLToPath(module.endsWith('.ts') ? source : new URL(source.href.replace(/\.ts$/, '.js')))
}

export function forkProcess(program: string, args: readonly string[], env: Vars): ChildProcess {
  const child = fork(program, args, { serialization: 'advanced', env })
  // A message to a process that ends; its end is heard of elsewhere.
  child.on('error', () => undefined)
  return child
}

/** Tells a process to end, and waits until it has; it is killed if it takes longer than it is given. */
export async function endProcess(child: ChildProcess, why: Ending, graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const end = new Promise<void>(resolve => child.once('exit', () => resolve()))
  if (child.connected) child.send({ end: why } satisfies ToProcess<never>)
  const late = setTimeout(() => child.kill('SIGKILL'), graceMs)
  await end
  clearTimeout(late)
}

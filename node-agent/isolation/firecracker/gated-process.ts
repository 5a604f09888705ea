import { type ChildProcess, spawn } from 'node:child_process'

/** Reads one line before it becomes the program; the rest of the input is the program's. */
const GATE = 'read -r begin && exec "$0" "$@"'

export interface GatedProcess {
  child: ChildProcess
  /** Absent where it could not be started. */
  pid: number | undefined
  /** Lets the program begin, with this as its input. */
  begin(input?: Uint8Array): void
  /** Settles with its last words once it and what it started hold its output no more. */
  ended: Promise<{ code: number | undefined; words: string }>
}

/**
 * Starts a program that does nothing before `begin`, so that limits are in force, and were read back, when it does. It
 * gets nothing of the environment of this process, in which secrets stand.
 */
export function gatedProcess(command: string, args: readonly string[]): GatedProcess {
  const child = spawn('/bin/sh', ['-c', GATE, command, ...args], {
    detached: true,
    env: { PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.on('data', (chunk: Buffer) => (said[name] = (said[name] + chunk.toString('latin1')).slice(-4000)))
  }
  // It may end before it has read everything.
  child.stdin!.on('error', () => undefined)
  const ended = new Promise<{ code: number | undefined; words: string }>(resolve => {
    child.once('error', error => resolve({ code: undefined, words: error.message }))
    child.once('close', (code, signal) => {
      const end = signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`
      resolve({ code: code ?? undefined, words: lastLine(said.stderr) || lastLine(said.stdout) || end })
    })
  })
  return {
    child,
    pid: child.pid,
    begin: (input = new Uint8Array()) => void child.stdin!.end(Buffer.concat([Buffer.from('\n'), input])),
    ended,
  }
}

/** In characters that a log shows as they are. */
const lastLine = (text: string) =>
  text
    .replaceAll(/[^\n -~]/g, '')
    .trim()
    .split('\n')
    .at(-1)!
    .slice(0, 500)

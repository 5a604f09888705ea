import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'

export interface TerminalOptions {
  /** Scripts and temporary files go here. */
  folder: string
  cwd: string
  env: Record<string, string | undefined>
}

const SLOTS = 60
const FIRST_SLOT = 3

/**
 * One bash for a whole guide: variables, functions and the folder stay from block to block. Each block writes into a pipe of its own,
 * so that a service that one of them left running cannot speak into the output of a later one. A command that fails ends the shell.
 */
export async function openTerminal({ folder, cwd, env }: TerminalOptions) {
  await mkdir(folder, { recursive: true })
  const shell = spawn('bash', ['--norc', '-s'], {
    cwd,
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', ...Array.from({ length: SLOTS }, () => 'pipe' as const)],
  })
  let stray = ''
  for (const stream of [shell.stdout, shell.stderr]) stream?.on('data', chunk => (stray += String(chunk)))
  // A shell that is gone is reported by its end; the pipe to it must not throw beside that.
  shell.stdin?.on('error', () => undefined)
  const closed = once(shell, 'exit').then(([code]) => code as number | null)
  shell.stdin?.write('set -eo pipefail\n')
  let used = 0
  const end = () => {
    try {
      if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGKILL')
    } catch {
      // Nothing of it is left.
    }
  }

  return {
    /** Runs a block. It is over when its commands are, and when `until` matches: a service in the background prints later. */
    async run(script: string, { until, withinMs }: { until?: RegExp | undefined; withinMs: number }): Promise<Ran> {
      const slot = used++
      if (slot >= SLOTS) throw new Error(`a guide has room for ${SLOTS} blocks; make two of it`)
      const file = join(folder, `block-${slot}.sh`)
      await writeFile(file, `${script}\n`)
      const fd = FIRST_SLOT + slot
      const mark = `\u0001done-${slot}\u0001`
      const pipe = shell.stdio[fd] as Readable
      let [said, over] = ['', false]
      const finished = Promise.withResolvers<Ran>()
      const look = () => {
        if (said.includes(mark)) {
          over = true
          said = said.replace(mark, '')
        }
        if (over && (until === undefined || until.test(said))) finished.resolve({ printed: said, end: 'done' })
      }
      pipe.setEncoding('utf8').on('data', (chunk: string) => {
        said += chunk
        look()
      })
      // What it left running is ended with it; then the pipe ends, and everything that was printed has been read.
      void closed.then(async code => {
        end()
        if (!pipe.readableEnded) await once(pipe, 'end')
        finished.resolve({ printed: said, end: `a command of it failed: the shell ended with ${code}` })
      })
      const late = setTimeout(
        () => finished.resolve({ printed: said, end: over ? 'done' : `it was not over after ${withinMs / 1000} s` }),
        withinMs,
      )
      shell.stdin?.write(`. ${file} </dev/null >&${fd} 2>&${fd}\nprintf '\\001done-${slot}\\001' >&${fd}\n`)
      const ran = await finished.promise
      clearTimeout(late)
      return ran
    },

    stray: () => stray,

    /** Ends the shell and everything that it started. */
    async close(): Promise<void> {
      end()
      await closed
      for (const stream of shell.stdio) stream?.destroy()
    },
  }
}

export interface Ran {
  printed: string
  /** `done`, or what kept it from its end. */
  end: string
}

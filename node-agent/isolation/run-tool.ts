import { spawn } from 'node:child_process'

export interface ToolResult {
  code: number | undefined
  stdout: string
  stderr: string
  timedOut: boolean
  /** The program is not there or may not be started. */
  missing: boolean
}

const MAX_OUTPUT = 256 * 1024

/** Runs a program of the host with a deadline: at its end the whole group of processes is killed. Never rejects. */
export function runTool(command: string, args: readonly string[], deadlineMs: number): Promise<ToolResult> {
  return new Promise(resolve => {
    const child = spawn(command, args, {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const result: ToolResult = { code: undefined, stdout: '', stderr: '', timedOut: false, missing: false }
    child.stdout.on('data', chunk => (result.stdout = (result.stdout + chunk).slice(-MAX_OUTPUT)))
    child.stderr.on('data', chunk => (result.stderr = (result.stderr + chunk).slice(-MAX_OUTPUT)))
    const late = setTimeout(() => {
      result.timedOut = true
      killGroup(child.pid)
    }, deadlineMs)
    const done = () => {
      clearTimeout(late)
      resolve(result)
    }
    child.once('error', () => {
      result.missing = true
      done()
    })
    // `exit`, not `close`: what it started in the background may keep its pipes.
    child.once('exit', code => {
      result.code = code ?? undefined
      setImmediate(done)
    })
  })
}

/** A group of its own began with this process; ending it ends what the process started. */
export function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}

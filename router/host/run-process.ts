import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../shared/log/log.ts'
import type { ProcessJob, ProcessOutcome, ProcessRunner } from '../gates/gate-host.ts'

export interface RunProcessOptions {
  /** The environment of this process: the source of `env_pass` and of the few variables every program needs. */
  vars: Readonly<Record<string, string | undefined>>
  /** Between SIGTERM and SIGKILL. */
  graceMs?: number
  /** Hears once that no program can be run. */
  log?: Log
}

const GRACE_MS = 500
const POLL_MS = 20
/** A process that left the group may hold a pipe open; this is how long its silence is waited for. */
const LINGER_MS = 100

export interface NodeProcessRunner extends ProcessRunner {
  /** Ends every run that is under way, resolves when nothing of them is left, and starts no more. */
  close(): Promise<void>
}

/**
 * Runs programs for gates (docs/spec/router.md §5.3): each in a process group of its own, with a clean environment and a private empty
 * HOME. Nothing of the group outlives the run, also not what a program leaves in the background when it exits. Process
 * groups are a POSIX thing; on other systems only the program itself is ended.
 */
export function processRunner({ vars, graceMs = GRACE_MS, log }: RunProcessOptions): NodeProcessRunner {
  const closing = new AbortController()
  const running = new Set<Promise<ProcessOutcome>>()
  let warned = false

  async function makeHome(): Promise<string | undefined> {
    try {
      return await mkdtemp(join(tmpdir(), 'waybill-gate-'))
    } catch (error) {
      if (!warned) log?.warn('gates of the kind subprocess abstain: TMPDIR is no folder that can be written', { error })
      warned = true
      return undefined
    }
  }

  async function runOnce(job: ProcessJob, signal: AbortSignal): Promise<ProcessOutcome> {
    if (signal.aborted) return { kind: 'aborted' }
    const home = await makeHome()
    if (home === undefined) return { kind: 'spawn_failed' }
    try {
      return signal.aborted ? { kind: 'aborted' } : await runIn(home, job, signal, vars, graceMs)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }

  function run(job: ProcessJob, signal: AbortSignal): Promise<ProcessOutcome> {
    const one = runOnce(job, AbortSignal.any([signal, closing.signal])).finally(() => running.delete(one))
    running.add(one)
    return one
  }

  return Object.assign(run, {
    async close() {
      closing.abort()
      await Promise.allSettled(running)
    },
  })
}

async function runIn(
  home: string,
  job: ProcessJob,
  signal: AbortSignal,
  vars: RunProcessOptions['vars'],
  graceMs: number,
): Promise<ProcessOutcome> {
  const child = start(job, environment(job, vars, home))
  if (child === undefined) return { kind: 'spawn_failed' }
  const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
  const exited = new Promise<number | null>(resolve => child.once('exit', resolve))
  const failed = new Promise<void>(resolve => child.on('error', () => resolve()))
  // A program may answer without reading what it was told.
  child.stdin.on('error', () => undefined)
  child.stdin.end(job.stdin)
  if (child.pid === undefined) {
    await failed
    return { kind: 'spawn_failed' }
  }

  const group = processGroup(child, child.pid, graceMs)
  let cut: 'aborted' | 'output_too_large' | undefined
  const end = (why: typeof cut) => {
    cut ??= why
    void group.end()
  }
  const onAbort = () => end('aborted')
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  const stdout = collect(child.stdout, job.stdoutLimit, () => end('output_too_large'))
  const stderr = collect(child.stderr, job.stderrLimit)

  const code = await exited
  await group.end()
  await Promise.race([closed, delay(LINGER_MS, undefined, { ref: false })])
  child.stdout.destroy()
  child.stderr.destroy()
  signal.removeEventListener('abort', onAbort)
  return cut === undefined ? { kind: 'exited', code, stdout: stdout(), stderr: stderr() } : { kind: cut }
}

function start({ cmd, cwd }: ProcessJob, env: Record<string, string>): ChildProcessWithoutNullStreams | undefined {
  const [program = '', ...args] = cmd
  try {
    return spawn(program, args, { ...(cwd !== null && { cwd }), env, detached: true, stdio: 'pipe' })
  } catch {
    // An argument that no program can be given, such as one with a NUL in it.
    return undefined
  }
}

function environment({ env, envPass }: ProcessJob, vars: RunProcessOptions['vars'], home: string) {
  const clean: Record<string, string> = {
    PATH: vars.PATH ?? '/usr/local/bin:/usr/bin:/bin',
    LANG: vars.LANG ?? 'C.UTF-8',
    TZ: vars.TZ ?? 'UTC',
    TMPDIR: tmpdir(),
    HOME: home,
  }
  for (const name of envPass) {
    const value = vars[name]
    if (value !== undefined) clean[name] = value
  }
  return { ...clean, ...env }
}

/** Reads to the end and keeps the first `limit` bytes; an unread pipe would stop the program that fills it. */
function collect(stream: NodeJS.ReadableStream, limit: number, onMore: () => void = () => undefined): () => Uint8Array {
  const chunks: Uint8Array[] = []
  let kept = 0
  stream.on('error', () => undefined)
  stream.on('data', (chunk: Uint8Array) => {
    const room = limit - kept
    if (chunk.length > room) onMore()
    if (room <= 0) return
    chunks.push(chunk.subarray(0, room))
    kept += Math.min(room, chunk.length)
  })
  return () => Buffer.concat(chunks)
}

function processGroup(child: ChildProcessWithoutNullStreams, pid: number, graceMs: number) {
  let ending: Promise<void> | undefined

  /** False when the group has no process any more. */
  function send(signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(process.platform === 'win32' ? pid : -pid, signal)
    } catch {
      return false
    }
  }

  async function isAlive(): Promise<boolean> {
    if (!send(0)) return false
    return (child.exitCode === null && child.signalCode === null) || (await hasLiving(pid))
  }

  async function goneWithin(ms: number): Promise<boolean> {
    for (const until = performance.now() + ms; performance.now() < until; await delay(POLL_MS)) {
      if (!(await isAlive())) return true
    }
    return false
  }

  return {
    /** SIGTERM, then SIGKILL after the grace; resolves when the group is empty. */
    end(): Promise<void> {
      ending ??= (async () => {
        if (!send('SIGTERM') || (await goneWithin(graceMs))) return
        if (send('SIGKILL')) await goneWithin(LINGER_MS)
      })()
      return ending
    },
  }
}

/**
 * A process that has ended but was not reaped still answers to signals. In a container whose first process reaps none,
 * which is any container that runs this program directly, that lasts for good; Linux tells such a process by its state.
 */
async function hasLiving(group: number): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
  const stats = await Promise.all(pids.map(pid => readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')))
  return stats.some(stat => {
    // pid (name) state ppid pgrp: the name may hold anything, also a closing bracket.
    const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(pgrp) === group && state !== 'Z' && state !== 'X'
  })
}

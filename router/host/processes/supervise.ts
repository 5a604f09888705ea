import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readEnv } from '../../../shared/env/read-env.ts'
import { ListenError } from '../../../shared/host/serve.ts'
import { stderrLines } from '../../../shared/host/stderr-lines.ts'
import { createLog, type Log } from '../../../shared/log/log.ts'
import { routerEnv } from '../../env.ts'
import { type Acceptor, acceptor } from './acceptor.ts'
import { gathering } from './gathering.ts'
import type { FromProcess, ToProcess } from './messages.ts'
import { restartDelay } from './restart-delay.ts'

type Vars = Record<string, string | undefined>

export interface ManyProcesses {
  origin: string
  /** Replaces one process after the other, the one that writes last. */
  restart(): Promise<void>
  /** Each process reads the routing config again. */
  reload(): void
  close(): Promise<void>
}

interface Serving {
  child: ChildProcess
  /** Undefined until it answers. */
  connections: ReturnType<Acceptor['join']> | undefined
  isEnding: boolean
}

/** Beyond what the calls of a process are given. */
const END_GRACE_MS = 20_000
const source = new URL('./child.ts', import.meta.url)
/** Where it is published, the same in JavaScript. */
const program = fileURLToPath(import.meta.url.endsWith('.ts') ? source : new URL(source.href.replace(/\.ts$/, '.js')))

/**
 * A router of several processes at one address. This one starts them, starts those anew that end, and accepts their connections. It reads no
 * call: one process writes receipts and keeps budgets, the others answer.
 */
export async function serveProcesses(given: Vars, count: number): Promise<ManyProcesses> {
  const env = readEnv(routerEnv, given)
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: stderrLines(env.ROUTER_LOG_FORMAT) }).target(
    'router.processes',
  )
  const door = await acceptor(env.ROUTER_BIND)
  const folder = await mkdtemp(join(tmpdir(), 'waybill-router-'))
  const path = join(folder, 'writer.sock')
  const vars = { ...given, ROUTER_PROCESSES: String(count) }
  const drainMs = env.ROUTER_DRAIN_SECONDS * 1000 + END_GRACE_MS
  const gather = gathering()
  const serving = new Map<number, Serving>()
  let started = 0
  let closing = false

  const writer = keptWriter({ path, vars, log, gather, live: () => [...serving.keys()] })
  const crashes = restartDelay()

  /** Resolves when it answers; rejects when it ends before that. */
  async function start(): Promise<void> {
    const id = ++started
    const child = forked(['serve', path, String(id), door.origin], vars)
    const member = gather.join(message => child.connected && child.send(message))
    const one: Serving = { child, connections: undefined, isEnding: false }
    serving.set(id, one)
    const ready = Promise.withResolvers<void>()
    child.on('message', (message: FromProcess) => {
      if ('took' in message) one.connections?.took(message.took)
      else if ('ready' in message) ready.resolve()
      else if ('failed' in message) ready.reject(new ListenError(message.failed))
      else member.heard(message)
    })
    child.on('exit', (code, signal) => {
      serving.delete(id)
      one.connections?.ended()
      member.left()
      writer.gone(id)
      ready.reject(new ListenError(`a process of the router ended as it started, with ${signal ?? code}`))
      if (one.connections === undefined || one.isEnding || closing) return
      log.error('a process ended and is started anew', { process: child.pid, ended_with: signal ?? code })
      startAgain()
    })
    await ready.promise
    // What is sent to a process whose end is not known yet is handed on then.
    one.connections = door.join((connection, socket) => {
      const message: ToProcess = { connection }
      if (child.connected) child.send(message, socket, { keepOpen: true }, () => undefined)
    })
  }

  function startAgain(): void {
    setTimeout(() => {
      if (closing) return
      start().catch((error: unknown) => {
        log.error('a process could not be started; it is tried again', { error })
        startAgain()
      })
    }, crashes.next())
  }

  async function end(one: Serving, why: 'restart' | 'stop'): Promise<void> {
    one.isEnding = true
    one.connections?.leave()
    await ended(one.child, why, drainMs)
  }

  async function close(): Promise<void> {
    closing = true
    door.close()
    await Promise.all([...serving.values()].map(one => end(one, 'stop')))
    await writer.close()
    await rm(folder, { recursive: true, force: true })
  }

  let restarting: Promise<void> | undefined
  async function replaceAll(): Promise<void> {
    log.info('all processes are being replaced')
    for (const old of [...serving.values()]) {
      if (closing) return
      await start()
      await end(old, 'restart')
    }
    if (!closing) await writer.replace()
    log.info('all processes were replaced', { processes: serving.size })
  }

  try {
    await writer.start()
    await Promise.all(Array.from({ length: count }, start))
  } catch (error) {
    await close()
    throw error
  }
  return {
    origin: door.origin,
    restart() {
      restarting ??= replaceAll()
        .catch((error: unknown) => {
          log.error('not all processes were replaced; those that were not go on', { error })
        })
        .finally(() => {
          restarting = undefined
        })
      return restarting
    },
    reload() {
      for (const { child } of serving.values()) child.kill('SIGHUP')
    },
    close,
  }
}

function forked(args: readonly string[], env: Vars): ChildProcess {
  const child = fork(program, args, { serialization: 'advanced', env })
  // A message to a process that ends; its end is heard of elsewhere.
  child.on('error', () => undefined)
  return child
}

/** Tells a process to end, and waits until it has; it is killed if it takes longer than it is given. */
async function ended(child: ChildProcess, why: 'restart' | 'stop', graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const end = new Promise<void>(resolve => child.once('exit', () => resolve()))
  if (child.connected) child.send({ end: why } satisfies ToProcess)
  const late = setTimeout(() => child.kill('SIGKILL'), graceMs)
  await end
  clearTimeout(late)
}

interface KeptWriterDeps {
  path: string
  vars: Vars
  log: Log
  gather: ReturnType<typeof gathering>
  /** The processes that may have something open. */
  live: () => number[]
}

/** The process that writes, started anew whenever it ends. */
function keptWriter({ path, vars, log, gather, live }: KeptWriterDeps) {
  let current: ChildProcess | undefined
  let closing = false
  const crashes = restartDelay()
  const tell = (message: ToProcess) => void (current?.connected && current.send(message))

  async function start(): Promise<void> {
    const child = forked(['writer', path, live().join(',')], vars)
    current = child
    const member = gather.join(message => child.connected && child.send(message))
    const ready = Promise.withResolvers<void>()
    child.on('message', (message: FromProcess) => {
      if ('ready' in message) ready.resolve()
      else if ('failed' in message) ready.reject(new ListenError(message.failed))
      else if (!('took' in message)) member.heard(message)
    })
    child.on('exit', (code, signal) => {
      member.left()
      ready.reject(new ListenError(`the process that writes ended as it started, with ${signal ?? code}`))
      if (closing || current !== child) return
      log.error('the process that writes ended and is started anew', { process: child.pid, ended_with: signal ?? code })
      startAgain()
    })
    await ready.promise
  }

  function startAgain(): void {
    current = undefined
    setTimeout(() => {
      if (closing) return
      start().catch((error: unknown) => log.error('the process that writes could not be started', { error }))
    }, crashes.next())
  }

  async function end(): Promise<void> {
    const child = current
    current = undefined
    if (child) await ended(child, 'stop', END_GRACE_MS)
  }

  return {
    start,
    gone: (id: number) => tell({ gone: id }),
    async replace(): Promise<void> {
      await end()
      await start()
    },
    async close(): Promise<void> {
      closing = true
      await end()
    },
  }
}

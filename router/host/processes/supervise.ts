import { type ChildProcess, fork } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readEnv } from '../../../shared/env/read-env.ts'
import { ListenError } from '../../../shared/host/serve.ts'
import { stderrLines } from '../../../shared/host/stderr-lines.ts'
import { createLog, type Log } from '../../../shared/log/log.ts'
import { routerEnv } from '../../env.ts'
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

/** Beyond what the calls of a process are given. */
const END_GRACE_MS = 20_000
const source = new URL('./child.ts', import.meta.url)
/** Where it is published, the same in JavaScript. */
const program = fileURLToPath(import.meta.url.endsWith('.ts') ? source : new URL(source.href.replace(/\.ts$/, '.js')))

/**
 * A router of several processes at one address. This one starts them, starts those anew that end, and hands each connection to the next of
 * them. It reads no call: one process writes receipts and keeps budgets, the others answer.
 */
export async function serveProcesses(given: Vars, count: number): Promise<ManyProcesses> {
  const env = readEnv(routerEnv, given)
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: stderrLines(env.ROUTER_LOG_FORMAT) }).target(
    'router.processes',
  )
  const folder = await mkdtemp(join(tmpdir(), 'waybill-router-'))
  const path = join(folder, 'writer.sock')
  const vars = { ...given, ROUTER_PROCESSES: String(count) }
  const drainMs = env.ROUTER_DRAIN_SECONDS * 1000 + END_GRACE_MS
  const gather = gathering()
  const serving = new Set<Worker>()
  let closing = false

  const writer = keptWriter({ path, vars, log, gather, live: () => [...serving].map(({ id }) => id) })
  cluster.setupPrimary({ exec: program, args: ['serve', path], serialization: 'advanced' })
  let origin = ''
  const crashes = restartDelay()

  /** Resolves when it listens; rejects when it ends before that. */
  async function start(): Promise<Worker> {
    const worker = cluster.fork(vars)
    const member = gather.join(message => worker.isConnected() && worker.send(message))
    serving.add(worker)
    const ready = Promise.withResolvers<string>()
    let isReady = false
    worker.on('message', (message: FromProcess) => {
      if ('ready' in message) ready.resolve(message.ready)
      else if ('failed' in message) ready.reject(new ListenError(message.failed))
      else member.heard(message)
    })
    // A message to a process that ends; its end is heard of below.
    worker.on('error', () => undefined)
    worker.on('exit', (code, signal) => {
      serving.delete(worker)
      member.left()
      writer.gone(worker.id)
      ready.reject(new ListenError(`a process of the router ended as it started, with ${signal ?? code}`))
      if (!isReady || ending.has(worker) || closing) return
      log.error('a process ended and is started anew', { process: worker.process.pid, ended_with: signal ?? code })
      startAgain()
    })
    const listens = await ready.promise
    isReady = true
    origin ||= listens
    return worker
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

  const ending = new WeakSet<Worker>()
  async function end(worker: Worker, why: 'restart' | 'stop'): Promise<void> {
    ending.add(worker)
    if (worker.isDead()) return
    const ended = new Promise<void>(resolve => worker.once('exit', () => resolve()))
    if (worker.isConnected()) worker.send({ end: why } satisfies ToProcess)
    const late = setTimeout(() => worker.process.kill('SIGKILL'), drainMs)
    await ended
    clearTimeout(late)
  }

  async function close(): Promise<void> {
    closing = true
    await Promise.all([...serving].map(worker => end(worker, 'stop')))
    await writer.close()
    await rm(folder, { recursive: true, force: true })
  }

  let restarting: Promise<void> | undefined
  async function replaceAll(): Promise<void> {
    log.info('all processes are being replaced')
    for (const old of [...serving]) {
      if (closing) return
      await start()
      await end(old, 'restart')
    }
    if (!closing) await writer.replace()
    log.info('all processes were replaced', { processes: serving.size })
  }

  try {
    await writer.start()
    // The first one hears why there is no such address, and where port 0 is; the others share what it got.
    await start()
    await Promise.all(Array.from({ length: count - 1 }, start))
  } catch (error) {
    await close()
    throw error
  }
  return {
    get origin() {
      return origin
    },
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
      for (const worker of serving) worker.process.kill('SIGHUP')
    },
    close,
  }
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
    const child = fork(program, ['writer', path, live().join(',')], { serialization: 'advanced', env: vars })
    current = child
    const member = gather.join(message => child.connected && child.send(message))
    const ready = Promise.withResolvers<void>()
    child.on('message', (message: FromProcess) => {
      if ('ready' in message) ready.resolve()
      else if ('failed' in message) ready.reject(new ListenError(message.failed))
      else member.heard(message)
    })
    child.on('error', () => undefined)
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
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
    if (child.connected) child.send({ end: 'stop' } satisfies ToProcess)
    const late = setTimeout(() => child.kill('SIGKILL'), END_GRACE_MS)
    await ended
    clearTimeout(late)
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

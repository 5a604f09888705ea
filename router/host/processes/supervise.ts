import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EnvError, readEnv } from '../../../shared/env/read-env.ts'
import { endProcess, forkProcess, programOf } from '../../../shared/host/processes/child-process.ts'
import { type Gathering, gathering } from '../../../shared/host/processes/gathering.ts'
import type { FromProcess, ToProcess } from '../../../shared/host/processes/messages.ts'
import type { ProcessGroup } from '../../../shared/host/processes/process-group.ts'
import { restartDelay, supervise } from '../../../shared/host/processes/supervise.ts'
import { ListenError } from '../../../shared/host/serve.ts'
import { stderrLines } from '../../../shared/host/stderr-lines.ts'
import { createLog, type Log } from '../../../shared/log/log.ts'
import { routerEnv } from '../../env.ts'
import { routerPages } from '../../processes.ts'
import type { ProcessExit } from './messages.ts'

type Vars = Record<string, string | undefined>

/** Beyond what the calls of a process are given. */
const END_GRACE_MS = 20_000
const program = programOf(import.meta.url, new URL('./child.ts', import.meta.url))

/** A router of several processes at one address: one process writes receipts and keeps budgets, the others answer. */
export async function serveProcesses(given: Vars, count: number): Promise<ProcessGroup> {
  const env = readEnv(routerEnv, given)
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: stderrLines(env.ROUTER_LOG_FORMAT) }).target(
    'router.processes',
  )
  const folder = await mkdtemp(join(tmpdir(), 'waybill-router-')).catch((error: NodeJS.ErrnoException) => {
    throw new EnvError(
      `TMPDIR: several processes need a folder that can be written, and ${tmpdir()} is none (${error.code})`,
    )
  })
  const path = join(folder, 'writer.sock')
  const vars = { ...given, ROUTER_PROCESSES: String(count) }
  const gather = gathering(routerPages)
  const remove = () => rm(folder, { recursive: true, force: true })
  const group = await supervise<ProcessExit, true>({
    service: 'router',
    program,
    args: (process, origin) => ['serve', path, String(process), origin],
    env: vars,
    count,
    bind: env.ROUTER_BIND,
    gather,
    log,
    endMs: env.ROUTER_DRAIN_SECONDS * 1000 + END_GRACE_MS,
    overlaps: true,
    answersToTheEnd: false,
    gone: process => writer.gone(process),
  }).catch(async (error: unknown) => {
    await remove()
    throw error
  })
  const writer = keptWriter({ path, vars, log, gather, live: group.live })

  async function close(): Promise<void> {
    await group.close()
    await writer.close()
    await remove()
  }

  try {
    await writer.start()
    await group.start('together')
  } catch (error) {
    await close()
    throw error
  }
  return {
    origin: group.origin,
    // The one that writes last.
    restart: () => group.restart(writer.replace),
    reload: () => group.signal('SIGHUP'),
    close,
  }
}

interface KeptWriterDeps {
  path: string
  vars: Vars
  log: Log
  gather: Gathering
  /** The processes that may have something open. */
  live: () => number[]
}

/** The process that writes, started anew whenever it ends. */
function keptWriter({ path, vars, log, gather, live }: KeptWriterDeps) {
  let current: ChildProcess | undefined
  let closing = false
  const crashes = restartDelay()
  const tell = (notice: ProcessExit) => {
    if (current?.connected) current.send({ notice } satisfies ToProcess<ProcessExit>)
  }

  async function start(): Promise<void> {
    const child = forkProcess(program, ['writer', path, live().join(',')], vars)
    current = child
    const member = gather.join(message => child.connected && child.send(message))
    const ready = Promise.withResolvers<void>()
    child.on('message', (message: FromProcess<ProcessExit, true>) => {
      if ('ready' in message) ready.resolve()
      else if ('failed' in message) ready.reject(new ListenError(message.failed))
      else if ('answered' in message || 'gather' in message || 'last' in message) member.heard(message)
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
    if (child) await endProcess(child, 'stop', END_GRACE_MS)
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

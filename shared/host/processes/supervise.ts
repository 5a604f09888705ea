import type { ChildProcess } from 'node:child_process'
import type { Bind } from '../../http/bind.ts'
import type { Log } from '../../log/log.ts'
import { ListenError } from '../serve.ts'
import { type Acceptor, acceptor } from './acceptor.ts'
import { endProcess, forkProcess } from './child-process.ts'
import type { Gathering } from './gathering.ts'
import { type Ending, type FromProcess, MAIN_DOOR, type ToProcess } from './messages.ts'

type Vars = Record<string, string | undefined>
type Handed = ReturnType<Acceptor['join']>

export interface SupervisionOptions<N, F> {
  /** As messages name it. */
  service: string
  /** What each process runs, and with which arguments; no two ever have the same number. */
  program: string
  args: (process: number, origin: string) => readonly string[]
  env: Vars
  count: number
  bind: Bind
  /** Further addresses, each listened at once a process asks for it. */
  doors?: Readonly<Record<string, Bind>>
  gather: Gathering
  log: Log
  /** How long a process may take to end. */
  endMs: number
  /** A new process answers before the one that it replaces ends; otherwise there is never one more than `count`. */
  overlaps: boolean
  /** Connections are taken until the last process has ended, since processes that drain refuse in words. */
  answersToTheEnd: boolean
  /** Said by a process; told to all others in any case. */
  ready?: (process: number, facts: F) => void
  gone?: (process: number) => void
  /** For the first process; the others hear it where this answers true. */
  noticed?: (notice: N) => boolean
}

export interface Supervision<N> {
  origin: string
  /** The numbers of the processes that are alive. */
  live(): number[]
  /** Starts them all, at once or the first one alone: what that makes in a store is there for the others. */
  start(how: 'together' | 'first alone'): Promise<void>
  tell(notice: N): void
  /** Replaces one after the other, and calls back after the last. */
  restart(after?: () => Promise<void>): Promise<void>
  /** Sends all of them a signal. */
  signal(name: NodeJS.Signals): void
  close(): Promise<void>
}

interface Serving {
  child: ChildProcess
  /** By its doors; empty until it answers. */
  handed: Map<string, Handed>
  isEnding: boolean
  answers: boolean
}

/**
 * The processes of a service at one address. This one starts them, starts those anew that end, and accepts their connections. It reads no call.
 */
export async function supervise<N, F>(options: SupervisionOptions<N, F>): Promise<Supervision<N>> {
  const { log, count, endMs } = options
  const doors = await openDoors(options)
  const serving = new Map<number, Serving>()
  const crashes = restartDelay()
  let closing = false

  function tell(notice: N, except?: ChildProcess): void {
    for (const { child } of serving.values()) if (child !== except) send(child, { notice })
  }

  const starting = processStarter(options, {
    doors,
    serving,
    tell,
    ended(child, { code, signal }) {
      if (closing) return
      log.error('a process ended and is started anew', { process: child.pid, ended_with: signal ?? code })
      startAgain()
    },
  })

  function startAgain(): void {
    setTimeout(() => {
      if (closing) return
      starting.start().catch((error: unknown) => {
        log.error('a process could not be started; it is tried again', { error })
        startAgain()
      })
    }, crashes.next())
  }

  async function end(one: Serving, why: Ending): Promise<void> {
    one.isEnding = true
    if (why === 'restart' || !options.answersToTheEnd) leave(one)
    await endProcess(one.child, why, endMs)
  }

  async function replace(old: Serving): Promise<void> {
    if (options.overlaps) {
      await starting.start()
      await end(old, 'restart')
      return
    }
    await end(old, 'restart')
    if (closing) return
    await starting.start().catch((error: unknown) => {
      startAgain()
      throw error
    })
  }

  async function replaceAll(after?: () => Promise<void>): Promise<void> {
    log.info('all processes are being replaced')
    for (const [id, old] of [...serving]) {
      if (closing) return
      // One that ended by itself was started anew.
      if (serving.has(id)) await replace(old)
    }
    if (!closing) await after?.()
    log.info('all processes were replaced', { processes: serving.size })
  }

  let restarting: Promise<void> | undefined
  return {
    origin: doors.origin,
    live: () => [...serving.keys()],
    async start(how) {
      if (how === 'first alone') await starting.start()
      await Promise.all(Array.from({ length: count - starting.count() }, starting.start))
    },
    tell,
    restart(after) {
      restarting ??= replaceAll(after)
        .catch((error: unknown) => {
          log.error('not all processes were replaced; those that were not go on', { error })
        })
        .finally(() => {
          restarting = undefined
        })
      return restarting
    },
    signal(name) {
      for (const { child } of serving.values()) child.kill(name)
    },
    async close() {
      closing = true
      if (!options.answersToTheEnd) doors.close()
      await Promise.all([...serving.values()].map(one => end(one, 'stop')))
      doors.close()
    },
  }
}

function send<N>(child: ChildProcess, message: ToProcess<N>): void {
  if (child.connected) child.send(message)
}

/** It gets no more connections. */
function leave({ handed }: Serving): void {
  for (const door of handed.values()) door.leave()
}

interface StarterDeps<N> {
  doors: Doors
  serving: Map<number, Serving>
  tell: (notice: N, except: ChildProcess) => void
  /** One that answered ended by itself. */
  ended: (child: ChildProcess, how: { code: number | null; signal: NodeJS.Signals | null }) => void
}

function processStarter<N, F>(options: SupervisionOptions<N, F>, { doors, serving, tell, ended }: StarterDeps<N>) {
  const { service, program, args, env, gather } = options
  let started = 0

  function join({ child, handed }: Serving, name: string): void {
    if (handed.has(name)) return
    // What is sent to a process whose end is not known yet is handed on then.
    const joined = doors.at(name)?.join((connection, socket) => {
      const message: ToProcess<N> = { connection, door: name }
      if (child.connected) child.send(message, socket, { keepOpen: true }, () => undefined)
    })
    if (joined) handed.set(name, joined)
  }

  async function openFor({ child }: Serving, door: string): Promise<void> {
    try {
      const origin = await doors.open(door)
      for (const other of serving.values())
        if (other.answers || other.child === child) send(other.child, { door, origin })
    } catch (error) {
      send(child, { door, failed: error instanceof Error ? error.message : String(error) })
    }
  }

  return {
    count: () => started,
    /** Resolves when it answers; rejects when it ends before that. */
    async start(): Promise<void> {
      const id = ++started
      const child = forkProcess(program, args(id, doors.origin), env)
      const member = gather.join(message => send(child, message))
      const one: Serving = { child, handed: new Map(), isEnding: false, answers: false }
      serving.set(id, one)
      const ready = Promise.withResolvers<void>()
      child.on('message', (message: FromProcess<N, F>) => {
        if ('took' in message) for (const door of one.handed.values()) door.took(message.took)
        else if ('ready' in message) {
          options.ready?.(id, message.ready)
          one.answers = true
          ready.resolve()
        } else if ('failed' in message) ready.reject(new ListenError(message.failed))
        else if ('open' in message) void openFor(one, message.open)
        else if ('takes' in message) join(one, message.takes)
        else if ('leaves' in message) leave(one)
        else if ('notice' in message) {
          if (options.noticed?.(message.notice) ?? true) tell(message.notice, child)
        } else member.heard(message)
      })
      child.on('exit', (code, signal) => {
        serving.delete(id)
        for (const door of one.handed.values()) door.ended()
        member.left()
        options.gone?.(id)
        ready.reject(new ListenError(`a process of the ${service} ended as it started, with ${signal ?? code}`))
        if (one.answers && !one.isEnding) ended(child, { code, signal })
      })
      await ready.promise
      join(one, MAIN_DOOR)
      for (const [door, origin] of doors.further()) send(child, { door, origin })
    },
  }
}

type Doors = Awaited<ReturnType<typeof openDoors>>

/** The address of the service, and those that are listened at once a process asks for them. */
async function openDoors({ bind, doors = {} }: Pick<SupervisionOptions<never, never>, 'bind' | 'doors'>) {
  const main = await acceptor(bind)
  const open = new Map<string, Acceptor>([[MAIN_DOOR, main]])
  const opening = new Map<string, Promise<Acceptor>>()
  return {
    origin: main.origin,
    at: (name: string): Acceptor | undefined => open.get(name),
    further: (): [string, string][] =>
      [...open].filter(([name]) => name !== MAIN_DOOR).map(([name, door]) => [name, door.origin]),
    async open(name: string): Promise<string> {
      const at = doors[name]
      if (at === undefined) throw new ListenError(`there is no address for ${name}`)
      const known = opening.get(name) ?? acceptor(at)
      opening.set(name, known)
      try {
        const door = await known
        open.set(name, door)
        return door.origin
      } catch (error) {
        opening.delete(name)
        throw error
      }
    },
    close(): void {
      for (const door of open.values()) door.close()
    },
  }
}

const FIRST_MS = 50
const LONGEST_MS = 5000
/** After so long without an end the next one is the first again. */
const QUIET_MS = 30_000

/** How long to wait before a process that ended is started anew: not at all the first time, longer each time it ends soon again. */
export function restartDelay(now: () => number = () => performance.now()) {
  let count = 0
  let last = Number.NEGATIVE_INFINITY
  return {
    next(): number {
      count = now() - last > QUIET_MS ? 0 : count + 1
      last = now()
      return count === 0 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (count - 1))
    },
  }
}

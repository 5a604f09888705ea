import { constants } from 'node:os'
import {
  FROM_GUEST,
  type Frame,
  FrameError,
  type GuestExit,
  readExit,
  readNumber,
  TO_GUEST,
  WINDOW,
} from '../guest/frames.ts'
import { byteQueue } from './byte-queue.ts'
import { type Exec, type ExecRequest, type Exit, IsolationError, type LimitName } from './driver.ts'

const PIECE = 32_768

/** A command in a sandbox, as the host sees it. */
export interface GuestCommand {
  readonly id: number
  readonly stdout: ReturnType<typeof byteQueue>
  readonly stderr: ReturnType<typeof byteQueue>
  readonly exit: Promise<Exit>
  /** Why the agent could not start it; undefined once it could. */
  readonly refusal: Promise<number | undefined>
  settle: (exit: Exit) => void
  /** Called without a number when it runs. */
  refused: (errno: number | undefined) => void
  bytes: number
  readonly cap: number
  window: number
  wakeWriter?: (() => void) | undefined
  readonly mark: unknown
  /** Set when the host ends it. */
  verdict?: Exit
  done: boolean
}

export function newCommand(id: number, cap: number, mark: unknown): GuestCommand {
  const { promise: exit, resolve: settle } = Promise.withResolvers<Exit>()
  const { promise: refusal, resolve: refused } = Promise.withResolvers<number | undefined>()
  const [stdout, stderr] = [byteQueue(), byteQueue()]
  return { id, stdout, stderr, exit, refusal, settle, refused, bytes: 0, cap, window: WINDOW, mark, done: false }
}

export interface GuestCommandsOptions {
  send: (type: number, id: number, payload?: Uint8Array) => void
  /** Ends the sandbox. */
  fail: (reason: string) => void
  /** The limit that a command met, by the host's counters. */
  hit: ((mark: unknown) => Promise<LimitName | undefined>) | undefined
  killGraceMs: number
  /** The last of them has ended. */
  idle: () => void
}

/** The commands that run in one sandbox. Their caps and their ends are the host's, whatever the guest says. */
export function guestCommands({ send, fail, hit, killGraceMs, idle }: GuestCommandsOptions) {
  const running = new Map<number, GuestCommand>()
  let isLost = false

  function receive(one: GuestCommand, type: number, payload: Uint8Array): void {
    one.refused(undefined)
    if (one.verdict !== undefined || one.done) return
    if (!keep(one, type, payload))
      stop(one, { kind: 'limit', limit: 'output', detail: `more than ${one.cap} bytes of output` })
  }

  /** Ends a command by the host's decision. A guest that does not report its end in time loses the sandbox. */
  function stop(one: GuestCommand, verdict: Exit): void {
    if (one.done || one.verdict !== undefined) return
    one.verdict = verdict
    send(TO_GUEST.kill, one.id, new Uint8Array([constants.signals.SIGKILL]))
    setTimeout(() => {
      if (!one.done) fail('a command that was killed did not end')
    }, killGraceMs).unref()
  }

  async function finish(one: GuestCommand, exit: Exit, ask: boolean, said?: GuestExit): Promise<void> {
    if (one.done) return
    one.done = true
    running.delete(one.id)
    if (running.size === 0) idle()
    const failed = exit.kind !== 'limit' && !(exit.kind === 'code' && exit.code === 0)
    const limit = ask && failed ? ((await hit?.(one.mark)) ?? seenBy(said)) : undefined
    one.refused(undefined)
    one.stdout.end()
    one.stderr.end()
    one.wakeWriter?.()
    one.settle(limit === undefined ? exit : { kind: 'limit', limit, detail: LIMIT_DETAIL[limit] })
  }

  return {
    size: () => running.size,

    start(one: GuestCommand, payload: Uint8Array): void {
      running.set(one.id, one)
      send(TO_GUEST.exec, one.id, payload)
    },

    take({ type, id, payload }: Frame): void {
      const one = running.get(id)
      if (one === undefined) throw new FrameError(`The guest spoke of the command ${id}, which does not run.`)
      if (type === FROM_GUEST.failed) {
        one.refused(readNumber(payload))
        void finish(one, { kind: 'lost', detail: 'the program could not be started' }, false)
      } else if (type === FROM_GUEST.exit) {
        const said = readExit(payload)
        running.delete(id)
        one.refused(undefined)
        void finish(one, one.verdict ?? toExit(said), one.verdict === undefined, said)
      } else if (type === FROM_GUEST.taken) {
        one.window = Math.min(WINDOW, one.window + readNumber(payload))
        one.wakeWriter?.()
      } else {
        receive(one, type, payload)
      }
    },

    /** Waits until it runs, and holds it to its deadline. */
    async follow(
      one: GuestCommand,
      { argv, stdin, deadlineMs }: Pick<ExecRequest, 'argv' | 'stdin' | 'deadlineMs'>,
    ): Promise<Exec> {
      const detail = `still running after ${deadlineMs} ms`
      const late = setTimeout(() => stop(one, { kind: 'limit', limit: 'time', detail }), deadlineMs)
      void one.exit.then(() => clearTimeout(late))
      const errno = await one.refusal
      if (errno !== undefined) throw notStarted(argv[0], errno)
      if (stdin === undefined) send(TO_GUEST.stdinEnd, one.id)
      else
        feed(one, stdin, send, () => isLost).catch(() =>
          stop(one, { kind: 'lost', detail: 'its input ended with an error' }),
        )
      const signal: Exec['signal'] = name => send(TO_GUEST.kill, one.id, new Uint8Array([constants.signals[name]]))
      return { stdout: one.stdout.chunks, stderr: one.stderr.chunks, exit: one.exit, signal }
    },

    judge(verdict: Exit): void {
      for (const one of running.values()) one.verdict ??= verdict
    },

    /** The sandbox is gone; settles when each command has its end. */
    async lose(reason: string): Promise<void> {
      isLost = true
      const ends = [...running.values()].map(one =>
        finish(one, one.verdict ?? { kind: 'lost', detail: reason }, one.verdict === undefined),
      )
      await Promise.all(ends)
    },
  }
}

function notStarted(program: string | undefined, errno: number): IsolationError {
  const why = errno === constants.errno.ENOENT ? 'there is no such program in the sandbox (ENOENT)' : errnoName(errno)
  return new IsolationError('exec_failed', `${program} cannot be started: ${why}.`, {
    ...(errno === constants.errno.EAGAIN && { limit: 'pids' as const }),
  })
}

/** Keeps output up to the cap; false where there is more. */
function keep(one: GuestCommand, type: number, payload: Uint8Array): boolean {
  const room = one.cap - one.bytes
  one.bytes += payload.length
  const queue = type === FROM_GUEST.stdout ? one.stdout : one.stderr
  if (room > 0) queue.push(payload.length > room ? payload.slice(0, room) : payload.slice())
  return payload.length <= room
}

/** Input of a command, as fast as the guest takes it. */
async function feed(
  one: GuestCommand,
  source: AsyncIterable<Uint8Array> | Uint8Array,
  send: GuestCommandsOptions['send'],
  isLost: () => boolean,
): Promise<void> {
  for await (const chunk of source instanceof Uint8Array ? [source] : source) {
    for (let at = 0; at < chunk.length; ) {
      while (one.window === 0 && !one.done && !isLost()) {
        await new Promise<void>(resolve => {
          one.wakeWriter = resolve
        })
      }
      if (one.done || isLost()) return
      const piece = chunk.subarray(at, at + Math.min(one.window, PIECE))
      one.window -= piece.length
      at += piece.length
      send(TO_GUEST.stdin, one.id, piece)
    }
  }
  send(TO_GUEST.stdinEnd, one.id)
}

export const LIMIT_DETAIL: Record<LimitName, string> = {
  memory: 'a process was killed at the memory limit',
  pids: 'no more processes could be started',
  disk: 'the workspace or /tmp is full',
  time: 'it ran out of time',
  output: 'too much output',
  stack: 'the stack is used up',
  heartbeat: 'no sign of life',
}

function seenBy(said: GuestExit | undefined): LimitName | undefined {
  if (said === undefined) return undefined
  return (['memory', 'pids', 'disk'] as const).find(limit => said.seen[limit])
}

function toExit({ signalled, value }: GuestExit): Exit {
  return signalled ? { kind: 'signal', signal: signalName(value) } : { kind: 'code', code: value }
}

const signalName = (number: number) =>
  Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`

export const errnoName = (errno: number) =>
  Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `error ${errno}`

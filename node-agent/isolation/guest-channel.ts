import { constants } from 'node:os'
import type { Duplex, Readable, Writable } from 'node:stream'
import {
  encodeFrame,
  execPayload,
  FROM_GUEST,
  type Frame,
  FrameError,
  frameReader,
  type GuestExit,
  type Hello,
  helloPayload,
  portPayload,
  readExit,
  readNumber,
  readReady,
  TO_GUEST,
  WINDOW,
} from '../guest/frames.ts'
import { byteQueue } from './byte-queue.ts'
import { type Exec, type ExecRequest, type Exit, IsolationError, type LimitName } from './driver.ts'
import { guestConnections, isOfConnection } from './guest-connections.ts'

const KILL_GRACE_MS = 1000
const PING_EVERY_MS = 1000
/** Commands that the agent has room for. */
const MAX_EXECS = 16

export interface GuestChannelOptions {
  input: Writable
  output: Readable
  /** How long the agent may owe an answer to a ping while a command runs. */
  heartbeatMs: number
  /** How long a command that was killed has to be reported as ended before its sandbox is ended instead. */
  killGraceMs?: number
  /** Ends the sandbox by force; every waiting caller gets the reason. */
  kill: (reason: string) => void
  /** The channel broke or was given up; called once. */
  ended: (reason: string) => void
  /** Counters of the host from before a command, so that `hit` can tell what moved. */
  mark?: () => Promise<unknown>
  /** The limit that a command met, by the host's counters rather than the guest's word; asked also after its end. */
  hit?: (mark: unknown) => Promise<LimitName | undefined>
}

interface Running {
  id: number
  stdout: ReturnType<typeof byteQueue>
  stderr: ReturnType<typeof byteQueue>
  settle: (exit: Exit) => void
  started: () => void
  refused: (errno: number) => void
  bytes: number
  cap: number
  window: number
  wakeWriter?: (() => void) | undefined
  mark: unknown
  /** Set when the host ends it. */
  verdict?: Exit
  done: boolean
}

export type GuestChannel = ReturnType<typeof guestChannel>

/**
 * The host's end of the channel to an agent. Everything that arrives is judged: a frame that no agent sends ends the
 * sandbox. Deadlines and caps are kept here, whatever the guest says.
 */
export function guestChannel({
  input,
  output,
  heartbeatMs,
  killGraceMs = KILL_GRACE_MS,
  kill,
  ended,
  mark,
  hit,
}: GuestChannelOptions) {
  const running = new Map<number, Running>()
  const reader = frameReader()
  let nextId = 1
  let lost: string | undefined
  /** Of the last command that was started. */
  let lastMark: unknown
  let metLimit: Promise<LimitName | undefined> | undefined
  let greeted = false
  let onReady: ((payload: Uint8Array) => void) | undefined
  let onLost: ((reason: string) => void) | undefined
  let owedSince: number | undefined
  let drained: Promise<unknown> = Promise.resolve()
  let heart: NodeJS.Timeout | undefined
  let nextPing = 1
  const pings = new Map<number, () => void>()
  const listening = new Map<number, (errno: number) => void>()
  const connections = guestConnections((type, id, payload) => send(type, id, payload))

  input.on('error', error => die(`the channel broke: ${error.message}`))
  output.on('error', error => die(`the channel broke: ${error.message}`))
  output.on('close', () => die('the sandbox closed its channel'))
  output.on('end', () => die('the sandbox closed its channel'))
  output.on('data', (chunk: Uint8Array) => {
    if (lost !== undefined) return
    try {
      for (const frame of reader(chunk)) take(frame)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      end(error.message)
    }
  })

  const send = (type: number, id: number, payload?: Uint8Array) => {
    if (lost === undefined) input.write(encodeFrame(type, id, payload))
  }

  /** It ended without a word from here, perhaps at a limit: the host's counters are asked while they are there. */
  function die(reason: string) {
    if (lost === undefined && hit !== undefined && lastMark !== undefined) {
      metLimit = hit(lastMark).catch(() => undefined)
    }
    lose(reason)
  }

  async function gone(): Promise<IsolationError> {
    const limit = await metLimit
    const why = limit === undefined ? lost : DETAIL[limit]
    return new IsolationError('exec_failed', `The sandbox has ended: ${why}.`, { ...(limit && { limit }) })
  }

  function end(reason: string) {
    lose(reason)
    kill(reason)
  }

  function lose(reason: string) {
    if (lost !== undefined) return
    lost = reason
    clearInterval(heart)
    connections.close()
    for (const refused of listening.values()) refused(0)
    // They will get no answer, and a caller may be waiting for one.
    for (const answered of pings.values()) answered()
    pings.clear()
    onLost?.(reason)
    drained = Promise.all(
      [...running.values()].map(one => {
        const { verdict } = one
        return finish(one, verdict ?? { kind: 'lost', detail: reason }, verdict === undefined)
      }),
    )
    ended(reason)
  }

  function take(frame: Frame) {
    const { type, id, payload } = frame
    if (type === FROM_GUEST.ready) return onReady?.(payload)
    // A machine that was brought back may still say what it had to say before.
    if (!greeted) return
    if (type === FROM_GUEST.pong) {
      const answered = pings.get(id)
      if (answered === undefined) throw new FrameError('The guest answered a ping that was not sent.')
      owedSince = undefined
      pings.delete(id)
      return answered()
    }
    if (isOfConnection(frame)) return connections.take(frame)
    const refused = listening.get(id)
    if (refused !== undefined && type === FROM_GUEST.failed) return refused(readNumber(payload))
    const one = running.get(id)
    if (one === undefined) throw new FrameError(`The guest spoke of the command ${id}, which does not run.`)
    if (type === FROM_GUEST.failed) {
      one.refused(readNumber(payload))
      void finish(one, { kind: 'lost', detail: 'the program could not be started' }, false)
    } else if (type === FROM_GUEST.exit) {
      void report(one, readExit(payload))
    } else if (type === FROM_GUEST.taken) {
      one.window = Math.min(WINDOW, one.window + readNumber(payload))
      one.wakeWriter?.()
    } else {
      receive(one, type, payload)
    }
  }

  function receive(one: Running, type: number, payload: Uint8Array) {
    one.started()
    if (one.verdict !== undefined || one.done) return
    const room = one.cap - one.bytes
    one.bytes += payload.length
    const queue = type === FROM_GUEST.stdout ? one.stdout : one.stderr
    if (room > 0) queue.push(payload.length > room ? payload.slice(0, room) : payload.slice())
    if (payload.length > room) {
      stop(one, { kind: 'limit', limit: 'output', detail: `more than ${one.cap} bytes of output` })
    }
  }

  /** Ends a command by the host's decision. A guest that does not report its end in time loses the sandbox. */
  function stop(one: Running, verdict: Exit) {
    if (one.done || one.verdict !== undefined) return
    one.verdict = verdict
    send(TO_GUEST.kill, one.id, new Uint8Array([constants.signals.SIGKILL]))
    setTimeout(() => {
      if (!one.done) end('a command that was killed did not end')
    }, killGraceMs).unref()
  }

  async function report(one: Running, said: GuestExit) {
    running.delete(one.id)
    one.started()
    await finish(one, one.verdict ?? toExit(said), one.verdict === undefined, said)
  }

  async function finish(one: Running, exit: Exit, ask: boolean, said?: GuestExit) {
    if (one.done) return
    one.done = true
    running.delete(one.id)
    if (running.size === 0) {
      clearInterval(heart)
      owedSince = undefined
    }
    let final = exit
    const failed = exit.kind !== 'limit' && !(exit.kind === 'code' && exit.code === 0)
    if (ask && failed) {
      const limit = (await hit?.(one.mark)) ?? seenBy(said)
      if (limit !== undefined) final = { kind: 'limit', limit, detail: DETAIL[limit] }
    }
    one.started()
    one.stdout.end()
    one.stderr.end()
    one.wakeWriter?.()
    one.settle(final)
  }

  function beat() {
    const now = performance.now()
    if (owedSince !== undefined && now - owedSince > heartbeatMs) {
      const verdict: Exit = { kind: 'limit', limit: 'heartbeat', detail: `no sign of life for ${heartbeatMs} ms` }
      for (const one of running.values()) one.verdict ??= verdict
      end('the agent stopped answering')
    } else if (owedSince === undefined) {
      owedSince = now
      ping(() => {})
    }
  }

  function ping(answered: () => void) {
    if (lost !== undefined) return answered()
    const id = nextPing++
    pings.set(id, answered)
    send(TO_GUEST.ping, id)
  }

  async function feed(one: Running, source: AsyncIterable<Uint8Array> | Uint8Array) {
    for await (const chunk of source instanceof Uint8Array ? [source] : source) {
      for (let at = 0; at < chunk.length; ) {
        while (one.window === 0 && !one.done && lost === undefined) {
          await new Promise<void>(resolve => {
            one.wakeWriter = resolve
          })
        }
        if (one.done || lost !== undefined) return
        const piece = chunk.subarray(at, at + Math.min(one.window, 32768))
        one.window -= piece.length
        at += piece.length
        send(TO_GUEST.stdin, one.id, piece)
      }
    }
    send(TO_GUEST.stdinEnd, one.id)
  }

  return {
    /** Greets the agent; answers with the kernel inside. */
    hello(hello: Hello, deadlineMs: number): Promise<string> {
      return new Promise((resolve, reject) => {
        const late = setTimeout(
          () => fail(`no greeting from the sandbox within ${deadlineMs} ms`),
          Math.max(1, deadlineMs),
        )
        const fail = (reason: string) => {
          clearTimeout(late)
          reject(new IsolationError('start_failed', `The sandbox did not start: ${reason}.`))
        }
        if (lost !== undefined) return fail(lost)
        onLost = fail
        onReady = payload => {
          const { kernelRelease, session } = readReady(payload)
          // A machine may still be answering an earlier greeting.
          if (session !== hello.session) return
          clearTimeout(late)
          onReady = onLost = undefined
          greeted = true
          resolve(kernelRelease)
        }
        send(TO_GUEST.hello, 0, helloPayload(hello))
      })
    },

    /** How many commands run. */
    busy: () => running.size,

    /** From now on the host answers what commands call on this port of their loopback. */
    async serve(port: number, accept: (stream: Duplex) => void): Promise<void> {
      if (lost !== undefined) throw await gone()
      // The agent listens already: from now on it is another who answers.
      if (connections.answers(port)) return connections.answer(port, accept)
      const id = nextId++
      const { promise, resolve } = Promise.withResolvers<number | undefined>()
      listening.set(id, resolve)
      connections.answer(port, accept)
      send(TO_GUEST.listen, id, portPayload(port))
      ping(() => resolve(undefined))
      const errno = await promise
      listening.delete(id)
      if (errno === undefined) return
      const why = errno === 0 ? 'the sandbox ended' : errnoName(errno)
      throw new IsolationError('start_failed', `Port ${port} inside the sandbox cannot be answered: ${why}.`)
    },

    /** Settles when the agent has answered to all that was sent before, or can answer no more. */
    async ping(): Promise<void> {
      await new Promise<void>(resolve => ping(resolve))
    },

    async exec({ argv, env = {}, cwd = '/work', stdin, deadlineMs, outputBytes }: ExecRequest): Promise<Exec> {
      const payload = execPayload(cwd, argv, { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/work', ...env })
      if (payload === undefined) {
        throw new IsolationError(
          'exec_failed',
          'The command line is too long or holds a NUL: pass large texts as input.',
        )
      }
      if (lost !== undefined) throw await gone()
      if (running.size >= MAX_EXECS) {
        throw new IsolationError('exec_failed', `No more than ${MAX_EXECS} commands run in a sandbox at a time.`)
      }
      const marked = await mark?.()
      if (lost !== undefined) throw await gone()
      lastMark = marked
      const { promise: exit, resolve: settle } = Promise.withResolvers<Exit>()
      const { promise: refusal, resolve: refused } = Promise.withResolvers<number | undefined>()
      const one: Running = {
        id: nextId++,
        stdout: byteQueue(),
        stderr: byteQueue(),
        settle,
        started: () => refused(undefined),
        refused,
        bytes: 0,
        cap: outputBytes,
        window: WINDOW,
        mark: marked,
        done: false,
      }
      running.set(one.id, one)
      send(TO_GUEST.exec, one.id, payload)
      // The agent says at once when a program cannot be started; a pong behind the request means that it could.
      ping(() => refused(undefined))
      const late = setTimeout(
        () => stop(one, { kind: 'limit', limit: 'time', detail: `still running after ${deadlineMs} ms` }),
        deadlineMs,
      )
      void exit.then(() => clearTimeout(late))
      if (running.size === 1) heart = setInterval(beat, PING_EVERY_MS)
      const errno = await refusal
      if (errno !== undefined) {
        throw new IsolationError('exec_failed', `${argv[0]} cannot be started: ${errnoName(errno)}.`, {
          ...(errno === constants.errno.EAGAIN && { limit: 'pids' as const }),
        })
      }
      if (stdin === undefined) send(TO_GUEST.stdinEnd, one.id)
      else feed(one, stdin).catch(() => stop(one, { kind: 'lost', detail: 'its input ended with an error' }))
      return {
        stdout: one.stdout.chunks,
        stderr: one.stderr.chunks,
        exit,
        signal: name => send(TO_GUEST.kill, one.id, new Uint8Array([constants.signals[name]])),
      }
    },

    /** The channel is given up on purpose; settles when each command that still ran has its end. */
    async close(reason: string): Promise<void> {
      lose(reason)
      input.end()
      output.destroy()
      await drained
    },
  }
}

const DETAIL: Record<LimitName, string> = {
  memory: 'a process was killed at the memory limit',
  pids: 'no more processes could be started',
  disk: 'the workspace or /tmp is full',
  time: 'it ran out of time',
  output: 'too much output',
  stack: 'the stack is used up',
  heartbeat: 'no sign of life',
}

const seenBy = (said: GuestExit | undefined): LimitName | undefined =>
  said === undefined
    ? undefined
    : said.seen.memory
      ? 'memory'
      : said.seen.pids
        ? 'pids'
        : said.seen.disk
          ? 'disk'
          : undefined

function toExit({ signalled, value }: GuestExit): Exit {
  return signalled ? { kind: 'signal', signal: signalName(value) } : { kind: 'code', code: value }
}

const signalName = (number: number) =>
  Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`

export const errnoName = (errno: number) =>
  Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `error ${errno}`

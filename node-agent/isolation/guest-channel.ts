import type { Duplex, Readable, Writable } from 'node:stream'
import {
  encodeFrame,
  execPayload,
  FROM_GUEST,
  type Frame,
  FrameError,
  frameReader,
  type Hello,
  helloPayload,
  portPayload,
  readNumber,
  readReady,
  TO_GUEST,
} from '../guest/frames.ts'
import { type Exec, type ExecRequest, IsolationError, type LimitName } from './driver.ts'
import { errnoName, guestCommands, LIMIT_DETAIL, newCommand } from './guest-commands.ts'
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

/** What a channel sends by; it drops frames once the channel is lost. */
type Send = (type: number, id: number, payload?: Uint8Array) => void

/** Pings, each answered once, and the heartbeat that ends a sandbox whose agent owes an answer for too long. */
function pingsOf(send: Send, heartbeatMs: number, silent: () => void) {
  const waiting = new Map<number, () => void>()
  let next = 1
  let isLost = false
  let owedSince: number | undefined
  let heart: NodeJS.Timeout | undefined

  function ping(answered: () => void): void {
    if (isLost) {
      answered()
      return
    }
    const id = next++
    waiting.set(id, answered)
    send(TO_GUEST.ping, id)
  }

  function beat(): void {
    const now = performance.now()
    if (owedSince !== undefined && now - owedSince > heartbeatMs) silent()
    else if (owedSince === undefined) {
      owedSince = now
      ping(() => {})
    }
  }

  return {
    ping,
    watch(): void {
      heart = setInterval(beat, PING_EVERY_MS)
    },
    rest(): void {
      clearInterval(heart)
      owedSince = undefined
    },
    answered(id: number): void {
      const answered = waiting.get(id)
      if (answered === undefined) throw new FrameError('The guest answered a ping that was not sent.')
      owedSince = undefined
      waiting.delete(id)
      answered()
    },
    /** They will get no answer, and a caller may be waiting for one. */
    lose(): void {
      isLost = true
      clearInterval(heart)
      for (const answered of waiting.values()) answered()
      waiting.clear()
    },
  }
}

/** The greeting of an agent, which tells the kernel inside. */
function greetingOf(send: Send) {
  let ready: ((payload: Uint8Array) => void) | undefined
  let failed: ((reason: string) => void) | undefined
  let done = false
  return {
    isDone: () => done,
    ready: (payload: Uint8Array) => ready?.(payload),
    lose: (reason: string) => failed?.(reason),
    send(hello: Hello, deadlineMs: number, lost: string | undefined): Promise<string> {
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
        failed = fail
        ready = payload => {
          const { kernelRelease, session } = readReady(payload)
          // A machine may still be answering an earlier greeting.
          if (session !== hello.session) return
          clearTimeout(late)
          ready = failed = undefined
          done = true
          resolve(kernelRelease)
        }
        send(TO_GUEST.hello, 0, helloPayload(hello))
      })
    },
  }
}

/** Ports that the agent was asked to listen on. */
function portsOf(send: Send, connections: ReturnType<typeof guestConnections>, ping: (answered: () => void) => void) {
  const asked = new Map<number, (errno: number) => void>()
  return {
    isAsked: (id: number) => asked.has(id),
    refused: (id: number, errno: number) => asked.get(id)?.(errno),
    lose(): void {
      for (const refused of asked.values()) refused(0)
    },
    async serve(port: number, accept: (stream: Duplex) => void, id: number): Promise<void> {
      // The agent listens already: from now on it is another who answers.
      if (connections.answers(port)) {
        connections.answer(port, accept)
        return
      }
      const { promise, resolve } = Promise.withResolvers<number | undefined>()
      asked.set(id, resolve)
      connections.answer(port, accept)
      send(TO_GUEST.listen, id, portPayload(port))
      ping(() => resolve(undefined))
      const errno = await promise
      asked.delete(id)
      if (errno === undefined) return
      const why = errno === 0 ? 'the sandbox ended' : errnoName(errno)
      throw new IsolationError('start_failed', `Port ${port} inside the sandbox cannot be answered: ${why}.`)
    },
  }
}

export type GuestChannel = ReturnType<typeof guestChannel>

/**
 * The host's end of the channel to an agent. Everything that arrives is judged: a frame that no agent sends ends the
 * sandbox. Deadlines and caps are kept here, whatever the guest says.
 */
export function guestChannel(options: GuestChannelOptions) {
  const { input, output, heartbeatMs, killGraceMs = KILL_GRACE_MS, kill, ended, mark, hit } = options
  let nextId = 1
  let lost: string | undefined
  /** Of the last command that was started. */
  let lastMark: unknown
  let metLimit: Promise<LimitName | undefined> | undefined
  let drained: Promise<unknown> = Promise.resolve()
  const send: Send = (type, id, payload) => {
    if (lost === undefined) input.write(encodeFrame(type, id, payload))
  }
  const greeting = greetingOf(send)
  const connections = guestConnections(send)
  const pings = pingsOf(send, heartbeatMs, () => {
    commands.judge({ kind: 'limit', limit: 'heartbeat', detail: `no sign of life for ${heartbeatMs} ms` })
    end('the agent stopped answering')
  })
  const ports = portsOf(send, connections, pings.ping)
  const commands = guestCommands({ send, fail: end, hit, killGraceMs, idle: pings.rest })
  listen(output, take, die, end, () => lost !== undefined)
  input.on('error', error => die(`the channel broke: ${error.message}`))

  /** It ended without a word from here, perhaps at a limit: the host's counters are asked while they are there. */
  function die(reason: string): void {
    if (lost === undefined && hit !== undefined && lastMark !== undefined) {
      metLimit = hit(lastMark).catch(() => undefined)
    }
    lose(reason)
  }

  const gone = async () => goneBy(lost, await metLimit)

  function end(reason: string): void {
    lose(reason)
    kill(reason)
  }

  function lose(reason: string): void {
    if (lost !== undefined) return
    lost = reason
    connections.close()
    ports.lose()
    pings.lose()
    greeting.lose(reason)
    drained = commands.lose(reason)
    ended(reason)
  }

  function take(frame: Frame): void {
    const { type, id, payload } = frame
    if (type === FROM_GUEST.ready) greeting.ready(payload)
    // A machine that was brought back may still say what it had to say before.
    else if (!greeting.isDone()) return
    else if (type === FROM_GUEST.pong) pings.answered(id)
    else if (isOfConnection(frame)) connections.take(frame)
    else if (type === FROM_GUEST.failed && ports.isAsked(id)) ports.refused(id, readNumber(payload))
    else commands.take(frame)
  }

  async function exec(request: ExecRequest): Promise<Exec> {
    const payload = payloadOf(request)
    if (lost !== undefined) throw await gone()
    if (commands.size() >= MAX_EXECS) {
      throw new IsolationError('exec_failed', `No more than ${MAX_EXECS} commands run in a sandbox at a time.`)
    }
    const marked = await mark?.()
    if (lost !== undefined) throw await gone()
    lastMark = marked
    const one = newCommand(nextId++, request.outputBytes, marked)
    if (commands.size() === 0) pings.watch()
    commands.start(one, payload)
    // The agent says at once when a program cannot be started; a pong behind the request means that it could.
    pings.ping(() => one.refused(undefined))
    return commands.follow(one, request)
  }

  return {
    /** Greets the agent; answers with the kernel inside. */
    hello: (hello: Hello, deadlineMs: number) => greeting.send(hello, deadlineMs, lost),
    /** How many commands run. */
    busy: commands.size,
    /** From now on the host answers what commands call on this port of their loopback. */
    async serve(port: number, accept: (stream: Duplex) => void): Promise<void> {
      if (lost !== undefined) throw await gone()
      await ports.serve(port, accept, nextId++)
    },
    /** Settles when the agent has answered to all that was sent before, or can answer no more. */
    ping: () => new Promise<void>(resolve => pings.ping(resolve)),
    exec,
    /** The channel is given up on purpose; settles when each command that still ran has its end. */
    async close(reason: string): Promise<void> {
      lose(reason)
      input.end()
      output.destroy()
      await drained
    },
  }
}

function goneBy(reason: string | undefined, limit: LimitName | undefined): IsolationError {
  const why = limit === undefined ? reason : LIMIT_DETAIL[limit]
  return new IsolationError('exec_failed', `The sandbox has ended: ${why}.`, { ...(limit && { limit }) })
}

function payloadOf({ argv, env = {}, cwd = '/work' }: ExecRequest): Uint8Array {
  const payload = execPayload(cwd, argv, { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/work', ...env })
  if (payload !== undefined) return payload
  throw new IsolationError('exec_failed', 'The command line is too long or holds a NUL: pass large texts as input.')
}

/** Reads frames as they come; one that cannot be read ends the sandbox. */
function listen(
  output: Readable,
  take: (frame: Frame) => void,
  die: (reason: string) => void,
  end: (reason: string) => void,
  isLost: () => boolean,
): void {
  const reader = frameReader()
  output.on('error', error => die(`the channel broke: ${error.message}`))
  output.on('close', () => die('the sandbox closed its channel'))
  output.on('end', () => die('the sandbox closed its channel'))
  output.on('data', (chunk: Uint8Array) => {
    if (isLost()) return
    try {
      for (const frame of reader(chunk)) take(frame)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      end(error.message)
    }
  })
}

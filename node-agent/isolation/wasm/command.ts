import { constants } from 'node:os'
import { byteQueue } from '../byte-queue.ts'
import type { Exec, ExecRequest, Exit, LimitName } from '../driver.ts'

/** How long the engine has to notice its own deadline before the process is killed. */
const GRACE_MS = 250

const DETAIL: Record<string, string> = {
  memory: 'no more memory could be had',
  stack: 'the stack is used up',
  time: 'it ran out of time',
  output: 'too much output',
  disk: 'the workspace is full',
}
export const limitExit = (limit: LimitName, detail = DETAIL[limit] ?? limit): Exit => ({ kind: 'limit', limit, detail })

export interface Command {
  exec: Exec
  receive(stream: 'stdout' | 'stderr', chunk: Uint8Array): void
  finish(result: Exit): void
  /** Finishes it from outside, and kills what runs it. */
  cut(result: Exit): void
  isOver(): boolean
}

/** Output, caps, deadline and end of one command, whatever runs it. `live` holds it as long as it runs. */
export function startCommand({ deadlineMs, outputBytes }: ExecRequest, live: Set<Command>, kill: () => void): Command {
  const queues = { stdout: byteQueue(), stderr: byteQueue() }
  const { promise: exit, resolve } = Promise.withResolvers<Exit>()
  let bytes = 0
  let done = false
  const late = setTimeout(
    () => command.cut(limitExit('time', `still running after ${deadlineMs} ms`)),
    deadlineMs + GRACE_MS,
  )
  const command: Command = {
    exec: {
      stdout: queues.stdout.chunks,
      stderr: queues.stderr.chunks,
      exit,
      signal: name => {
        if (constants.signals[name] !== undefined) command.cut({ kind: 'signal', signal: name })
      },
    },
    receive(stream, chunk) {
      if (done) return
      const room = outputBytes - bytes
      bytes += chunk.length
      if (room > 0) queues[stream].push(chunk.length > room ? chunk.slice(0, room) : chunk)
      if (chunk.length > room) command.cut(limitExit('output', `more than ${outputBytes} bytes of output`))
    },
    finish(result) {
      if (done) return
      done = true
      clearTimeout(late)
      live.delete(command)
      queues.stdout.end()
      queues.stderr.end()
      resolve(result)
    },
    cut(result) {
      if (done) return
      command.finish(result)
      kill()
    },
    isOver: () => done,
  }
  live.add(command)
  return command
}

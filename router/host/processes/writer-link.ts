import { connect, type Socket } from 'node:net'
import { frameOf, frameReader } from '../../../shared/host/processes/frames.ts'
import type { FromWriter, ToWriter, WriterAnswers, WriterQuestion } from './messages.ts'

export interface WriterLinkOptions {
  path: string
  /** The first message of every connection, and what an earlier one left unsaid. */
  begin: () => readonly ToWriter[]
  heard: (message: Exclude<FromWriter, { reply: number }>) => void
}

/** The writer does not answer. The message is one sentence for the caller. */
export class WriterAwayError extends Error {
  override name = 'WriterAwayError'
}

const AGAIN_MS = 25
/** How long a call waits for a writer that is being started again. */
export const WRITER_WAIT_MS = 10_000

type Kind<Q> = Q extends Q ? keyof Q & keyof WriterAnswers : never

interface Open {
  question: WriterQuestion
  resolve: (answer: unknown) => void
  timer: ReturnType<typeof setTimeout>
}

/**
 * A connection to the process that writes. It is made anew for as long as it is wanted; questions without an answer are asked again, and
 * everything else that a new writer has to know is for `begin` to say.
 */
export function writerLink({ path, begin, heard }: WriterLinkOptions) {
  let socket: Socket | undefined
  let isUp = false
  let closed = false
  let asked = 0
  let downSince = performance.now()
  let again: ReturnType<typeof setTimeout> | undefined
  const open = new Map<number, Open>()

  function send(message: ToWriter): void {
    socket?.write(frameOf(message))
  }

  function dial(): void {
    const made = connect(path)
    socket = made
    made.on('connect', () => {
      isUp = true
      for (const message of begin()) send(message)
      for (const [ask, { question }] of open) send({ ask, question })
    })
    made.on(
      'data',
      frameReader(message => {
        const one = message as FromWriter
        if (!('reply' in one)) return heard(one)
        const waiting = open.get(one.reply)
        open.delete(one.reply)
        clearTimeout(waiting?.timer)
        waiting?.resolve(one.answer)
      }),
    )
    // Its end follows, and is what counts.
    made.on('error', () => undefined)
    made.on('close', () => {
      if (isUp) downSince = performance.now()
      isUp = false
      socket = undefined
      if (!closed) again = setTimeout(dial, AGAIN_MS)
    })
  }
  dial()

  return {
    /** Says something, if there is a connection; `begin` says it otherwise. */
    post(message: ToWriter): void {
      if (isUp) send(message)
    },
    ask<Q extends WriterQuestion>(question: Q): Promise<WriterAnswers[Kind<Q>]> {
      return new Promise((resolve, reject) => {
        const number = ++asked
        const timer = setTimeout(() => {
          open.delete(number)
          reject(new WriterAwayError('the process that keeps receipts and budgets does not answer; try again'))
        }, WRITER_WAIT_MS)
        open.set(number, { question, resolve: answer => resolve(answer as WriterAnswers[Kind<Q>]), timer })
        if (isUp) send({ ask: number, question })
      })
    },
    /** For how long there has been no connection, in milliseconds; 0 while there is one. */
    get downMs(): number {
      return isUp ? 0 : performance.now() - downSince
    },
    close(): void {
      closed = true
      clearTimeout(again)
      for (const { timer } of open.values()) clearTimeout(timer)
      socket?.end()
    },
  }
}

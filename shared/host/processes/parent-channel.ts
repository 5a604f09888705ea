import type { Socket } from 'node:net'
import { ListenError } from '../serve.ts'
import { type Ending, type FromProcess, MAIN_DOOR, type ToProcess } from './messages.ts'

type Take = (socket: Socket) => void

/** What the first process lets this one know. */
export interface ParentHandlers<N> {
  end(why: Ending): void
  notice?(notice: N): void
  /** The first process listens at a further door. */
  opened?(door: string, origin: string): void
}

export interface ParentChannel<Q extends string, N, F> {
  /** Connections that the first process accepts. */
  each: (take: Take, door?: string) => void
  say: (message: FromProcess<N, F>) => void
  /** Asks that the first process listens at a further door; resolves with its origin, and rejects with a sentence. */
  open: (door: string) => Promise<string>
  /** Asks all the other processes; resolves with the pages of those that answer in time. */
  gather: (question: Q, page: string) => Promise<readonly string[]>
  /** What this process answers with: a page, or nothing once it has done what it was asked. */
  answer: (answering: (question: Q) => Promise<string>) => void
}

/** A process's end of the channel to the first process of its service. */
export function parentChannel<Q extends string, N = never, F = true>(heard: ParentHandlers<N>): ParentChannel<Q, N, F> {
  const say = (message: FromProcess<N, F>) => void (process.connected && process.send?.(message))
  const waiting = new Map<number, (pages: readonly string[]) => void>()
  const takers = new Map<string, Take>()
  const doors = new Map<string, PromiseWithResolvers<string>>()
  let answering: ((question: Q) => Promise<string>) | undefined
  let count = 0

  process.on('message', (message: ToProcess<N>, socket?: Socket) => {
    if (typeof message !== 'object') return
    if ('connection' in message) {
      // Before anything is read of it: until then another process can have it.
      say({ took: message.connection })
      if (socket) takers.get(message.door)?.(socket)
    } else if ('question' in message) {
      // A config that cannot be used is in this process's log.
      void Promise.resolve(answering?.(message.question as Q) ?? '')
        .catch(() => '')
        .then(page => say({ answered: message.answer, page }))
    } else if ('gathered' in message) {
      waiting.get(message.gathered)?.(message.pages)
      waiting.delete(message.gathered)
    } else if ('origin' in message) {
      heard.opened?.(message.door, message.origin)
      doors.get(message.door)?.resolve(message.origin)
    } else if ('failed' in message) {
      doors.get(message.door)?.reject(new ListenError(message.failed))
      doors.delete(message.door)
    } else if ('end' in message) heard.end(message.end)
    else heard.notice?.(message.notice)
  })

  return {
    say,
    each(take, door = MAIN_DOOR) {
      takers.set(door, take)
      if (door !== MAIN_DOOR) say({ takes: door })
    },
    open(door) {
      const known = doors.get(door)
      if (known) return known.promise
      const opening = Promise.withResolvers<string>()
      doors.set(door, opening)
      say({ open: door })
      return opening.promise
    },
    gather(question, page) {
      if (!process.connected) return Promise.resolve([])
      return new Promise(resolve => {
        waiting.set(++count, resolve)
        say({ gather: count, question, page })
      })
    },
    answer(given) {
      answering = given
    },
  }
}

import type { Socket } from 'node:net'
import type { Answering } from '../../processes.ts'
import type { FromProcess, ToProcess } from './messages.ts'

type Question = Extract<ToProcess, { question: unknown }>['question']

export interface ParentChannel {
  /** Connections that the first process accepts. */
  each: (take: (socket: Socket) => void) => void
  say: (message: FromProcess) => void
  /** Asks all the other processes; resolves with the pages of those that answer in time. */
  gather: (question: Question, page: string) => Promise<readonly string[]>
  /** What this process answers with. */
  answer: (answering: Pick<Answering, 'page'> & Partial<Answering>) => void
}

/** A process's end of the channel to the first process of its service. */
export function parentChannel(
  heard: (message: Exclude<ToProcess, { question: Question } | { connection: number }>) => void,
): ParentChannel {
  const say = (message: FromProcess) => void (process.connected && process.send?.(message))
  const waiting = new Map<number, (pages: readonly string[]) => void>()
  let answering: (Pick<Answering, 'page'> & Partial<Answering>) | undefined
  let count = 0
  let take: ((socket: Socket) => void) | undefined

  async function answered(question: Question): Promise<string> {
    if (question === 'made') await answering?.made?.()
    else if (question === 'reload') await answering?.reload?.()
    return question === 'page' ? ((await answering?.page()) ?? '') : ''
  }

  process.on('message', (message: ToProcess, socket?: Socket) => {
    if (typeof message !== 'object') return
    if ('connection' in message) {
      // Before anything is read of it: until then another process can have it.
      say({ took: message.connection })
      if (socket) take?.(socket)
    } else if ('question' in message) {
      // A config that cannot be used is in this process's log.
      void answered(message.question)
        .catch(() => '')
        .then(page => say({ answered: message.answer, page }))
    } else if ('gathered' in message) {
      waiting.get(message.gathered)?.(message.pages)
      waiting.delete(message.gathered)
    } else heard(message)
  })

  return {
    say,
    each(given) {
      take = given
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

import type { PageMerger } from '../../metrics/merge-pages.ts'
import type { FromProcess, ToProcess } from './messages.ts'

type Gathered = Extract<FromProcess<never, never>, { answered: number } | { gather: number } | { last: string }>

interface Member {
  send: (message: ToProcess<never>) => unknown
  /** The newest page that others have seen. */
  page: string
  waiting: Map<number, (page: string) => void>
}

/** A process that is busy for longer is left out, and counted as it was. */
const WAIT_MS = 1000

export type Gathering = ReturnType<typeof gathering>

/** Questions of one process to all others, and what those that ended have counted. */
export function gathering({ mergePages, countersOf }: PageMerger) {
  const members = new Set<Member>()
  let ended = ''
  let count = 0

  async function ask(member: Member, question: string): Promise<void> {
    const number = ++count
    const answer = new Promise<string>(resolve => {
      member.waiting.set(number, resolve)
      const timer = setTimeout(resolve, WAIT_MS, '')
      timer.unref()
    })
    member.send({ answer: number, question })
    const page = await answer
    member.waiting.delete(number)
    if (page !== '') member.page = page
  }

  async function gather(asker: Member, { gather: number, question, page }: Extract<Gathered, { gather: number }>) {
    if (question === 'page') asker.page = page
    const others = [...members].filter(one => one !== asker)
    await Promise.all(others.map(one => ask(one, question)))
    // One that ended meanwhile is counted by what those that ended have counted.
    const pages = others.filter(one => members.has(one)).map(one => one.page)
    asker.send({ gathered: number, pages: question === 'page' ? [...pages, ended] : [] })
  }

  return {
    join(send: Member['send']) {
      const member: Member = { send, page: '', waiting: new Map() }
      members.add(member)
      return {
        heard(message: Gathered): void {
          if ('answered' in message) member.waiting.get(message.answered)?.(message.page)
          else if ('last' in message) member.page = message.last
          else void gather(member, message)
        },
        /** What it has counted counts on. */
        left(): void {
          members.delete(member)
          for (const resolve of member.waiting.values()) resolve('')
          ended = mergePages([ended, countersOf(member.page)])
        },
      }
    },
  }
}

import type { ParentChannel } from '../../../shared/host/processes/parent-channel.ts'
import type { NanoUsd } from '../../../shared/money/money.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import type { BudgetRefusal, Budgets, Caps, Reservation, Spender } from '../../budget/ledger.ts'
import { type Answering, type OtherProcesses, routerPages } from '../../processes.ts'
import type { ProcessExit, Reserve, RouterQuestion, Spent, ToWriter, WriterAnswers } from './messages.ts'
import { writerLink } from './writer-link.ts'

export type RouterChannel = Pick<ParentChannel<RouterQuestion, ProcessExit, true>, 'say' | 'gather' | 'answer'>

export interface JoinOptions {
  /** The number of this process, which no other one of the service ever has. */
  process: number
  /** The writer's socket. */
  path: string
  channel: RouterChannel
}

export interface JoinedProcesses extends OtherProcesses {
  /** Resolves when what was spent is stored. */
  close: () => Promise<void>
}

const STORED_MS = 2000
const LOOK_MS = 20

/** What the other processes of a service do for this one: its writer over a socket, its siblings through the first process. */
export function joinProcesses({ process: number, path, channel }: JoinOptions): JoinedProcesses {
  const remote = remoteBudgets({ ask: reserve => link.ask({ reserve }), post: message => link.post(message) })
  const link = writerLink({
    path,
    begin: () => [{ process: number, ...remote.known() }],
    heard(message) {
      if ('stored' in message) remote.stored(message.stored, message.granted)
    },
  })
  return {
    budgets: remote.budgets,
    held: own => ({
      find(tenantId, state) {
        const known = own.find(tenantId, state)
        const isWhole = !known.hasUnknown && (state.sealed.length === 0 || known.makers.length > 0)
        // A writer that is away leaves what this process knows.
        return isWhole ? known : link.ask({ held: state, tenantId }).catch(() => known)
      },
      keep(tenantId, state, holder) {
        own.keep(tenantId, state, holder)
        link.post({ keep: state, tenantId, holder })
      },
    }),
    find: (id, tenantId) => link.ask({ find: id, tenantId }).catch(() => undefined),
    async made() {
      await channel.gather('made', '')
    },
    async page(own) {
      return routerPages.mergePages([own, ...(await channel.gather('page', own))])
    },
    async reloaded() {
      await channel.gather('reload', '')
    },
    answer: (answering: Answering) => channel.answer(question => answerWith(answering, question)),
    last: page => channel.say({ last: page }),
    async close() {
      const late = performance.now() + STORED_MS
      while (remote.unstored > 0 && performance.now() < late) await new Promise(go => setTimeout(go, LOOK_MS))
      link.close()
    },
  }
}

async function answerWith({ page, made, reload }: Answering, question: RouterQuestion): Promise<string> {
  if (question === 'page') return page()
  await (question === 'made' ? made() : reload())
  return ''
}

interface Asking {
  ask: (reserve: readonly Reserve[]) => Promise<WriterAnswers['reserve']>
  post: (message: ToWriter) => void
}

/** What a turn of the loop asks for and spends goes in one message each, the spending first. */
function turnMessages({ ask, post }: Asking, granted: (reserve: Reserve) => void) {
  let asking: { reserve: Reserve; answered: PromiseWithResolvers<true | BudgetRefusal> }[] = []
  let ended: Spent[] = []
  let isDue = false

  function send(): void {
    isDue = false
    if (ended.length > 0) post({ spent: ended })
    ended = []
    const batch = asking
    asking = []
    if (batch.length === 0) return
    ask(batch.map(({ reserve }) => reserve)).then(
      answers => {
        for (const [at, { reserve, answered }] of batch.entries()) {
          const answer = answers[at]!
          if (answer === true) granted(reserve)
          answered.resolve(answer)
        }
      },
      (error: unknown) => {
        for (const { answered } of batch) answered.reject(error)
      },
    )
  }

  function soon(): void {
    if (isDue) return
    isDue = true
    setImmediate(send)
  }

  return {
    reserve(reserve: Reserve): Promise<true | BudgetRefusal> {
      const answered = Promise.withResolvers<true | BudgetRefusal>()
      asking.push({ reserve, answered })
      soon()
      return answered.promise
    },
    spent(spent: Spent): void {
      ended.push(spent)
      soon()
    },
    /** All that was spent goes to the other end in another way. */
    dropSpent(): void {
      ended = []
    },
  }
}

/** A reservation that is settled once. */
function granted(settle: (cost: NanoUsd) => void): Reservation {
  let isOpen = true
  return {
    ok: true,
    settle(cost) {
      if (isOpen) settle(cost)
      isOpen = false
    },
  }
}

/**
 * Accounts that another process keeps. What is open or spent and may not be stored is remembered, so that a new keeper of the accounts knows
 * it before it grants anything.
 */
export function remoteBudgets(asking: Asking) {
  const open = new Map<number, Reserve>()
  const messages = turnMessages(asking, reserve => open.set(reserve.id, reserve))
  let unstored: Spent[] = []
  let ids = 0
  let seq = 0

  function spend(id: number | undefined, spender: Spender, caps: Caps, cost: NanoUsd): void {
    if (id === undefined && cost === 0) return
    const reserved = id === undefined ? undefined : open.get(id)
    if (id !== undefined) open.delete(id)
    const spent = { seq: ++seq, id, spender, caps, cost, ...(reserved && { reserved }) }
    unstored.push(spent)
    messages.spent(spent)
  }

  const budgets: Budgets = {
    open(spender, caps) {
      // A request's own cap is about this process's calls alone.
      const own = { held: 0 }
      const shared = { ...caps, request: null }
      const isFree = Object.values(shared).every(cap => cap === null)
      return {
        reserve(bound) {
          const used = own.held
          if (caps.request !== null && used + bound > caps.request)
            return { ok: false, scope: 'request', limit: caps.request, used }
          own.held += bound
          const settled = (id: number | undefined) => (cost: NanoUsd) => {
            own.held += cost - bound
            spend(id, spender, shared, cost)
          }
          if (isFree && bound === 0) return granted(settled(undefined))
          const reserve = { id: ++ids, spender, caps: shared, bound, at: systemClock.now().getTime() }
          return messages.reserve(reserve).then(
            answer => {
              if (answer === true) return granted(settled(reserve.id))
              own.held -= bound
              return answer
            },
            (error: unknown) => {
              own.held -= bound
              // It may have been granted by now.
              spend(reserve.id, spender, shared, 0)
              const away = error instanceof Error ? error.message : String(error)
              return { ok: false, scope: 'day', limit: 0, used: 0, away }
            },
          )
        },
      }
    },
  }

  return {
    budgets,
    /** For a keeper that knows nothing yet. */
    known: () => {
      messages.dropSpent()
      return { open: [...open.values()], spent: unstored }
    },
    stored(upTo: number, granted: number): void {
      for (const one of open.values()) one.isStored ||= one.id <= granted
      for (const { reserved } of unstored) if (reserved) reserved.isStored ||= reserved.id <= granted
      const first = unstored.findIndex(one => one.seq > upTo)
      unstored = first < 0 ? [] : unstored.slice(first)
    },
    /** What was spent and is not stored. */
    get unstored(): number {
      return unstored.length
    },
  }
}

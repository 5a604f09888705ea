import type { ParentChannel } from '../../../shared/host/processes/parent-channel.ts'
import { type Answering, type OtherProcesses, routerPages } from '../../processes.ts'
import type { ProcessExit, RouterQuestion } from './messages.ts'
import { remoteBudgets } from './remote-budgets.ts'
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

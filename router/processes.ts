import type { ReloadResult } from '../shared/wire/router/health.ts'
import type { UnsealedTrace } from '../shared/wire/router/trace.ts'
import type { Budgets } from './budget/ledger.ts'
import type { HeldResponses, SharedHeld } from './enforce/held-responses.ts'

/** What a process answers for to the other ones of its service. */
export interface Answering {
  /** Its own page of metrics. */
  page: () => Promise<string>
  /** Resolves when the writer has the record of every call that has ended here. */
  made: () => Promise<void>
  reload: () => Promise<ReloadResult>
}

/** What the other processes of one service do for this one. */
export interface OtherProcesses {
  /** Kept by one process for all. */
  budgets: Budgets
  /** The same responses for all, this process's own at hand. */
  held: (own: HeldResponses) => SharedHeld
  /** A record that the writer has not stored yet. */
  find: (id: string, tenant: string | undefined) => Promise<UnsealedTrace | undefined>
  /** Resolves when the writer has the record of every call that has ended in another process. */
  made: () => Promise<void>
  /** The page of all processes, with this one's. */
  page: (own: string) => Promise<string>
  /** The last page of this process, which counts on without it. */
  last: (page: string) => void
  /** They read the config again as well. */
  reloaded: () => Promise<void>
  /** Called once, when this process can answer. */
  answer: (answering: Answering) => void
}

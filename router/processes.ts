import { pageMerger } from '../shared/metrics/merge-pages.ts'
import type { Db } from '../shared/sql/db.ts'
import type { CalibrationState } from '../shared/wire/router/calibration.ts'
import type { FeedbackRequest, FeedbackResult } from '../shared/wire/router/feedback.ts'
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
  /** A record that waits for the writer here. */
  find: (id: string) => Promise<UnsealedTrace | undefined>
  /** Where the thresholds stand, of all tenants that it knows. */
  calibration: () => Promise<CalibrationState[]>
  /** Takes a report on a trace of its own store; undefined where it has no such trace. */
  submit: (report: FeedbackRequest) => Promise<FeedbackResult | undefined>
}

/** The other stores of a router whose tenants are spread over several, for callers who see all tenants. */
export interface OtherShards {
  /** Every store with this one; refuses with a sentence where one of them cannot be asked. */
  stores: () => readonly Db[]
  /** Those that can be asked. */
  answering: () => readonly Db[]
  calibration: () => Promise<CalibrationState[]>
  submit: (report: FeedbackRequest) => Promise<FeedbackResult | undefined>
}

/** What the other processes of one service do for this one, or the routers of the other shards of one process. */
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
  /** Where this is the router of one of several shards. */
  shards?: OtherShards
  /** Called once, when this process can answer. */
  answer: (answering: Answering) => void
}

/** The pages of a router's processes, or of its shards. */
export const routerPages = pageMerger({
  summed: ['router_in_flight_requests', 'router_queue_depth', 'router_spill_bytes', 'router_savings_usd'],
  lasting: ['router_savings_usd'],
})

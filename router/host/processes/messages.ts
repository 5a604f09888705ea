import type { HeldState } from '../../../shared/dialects/responses/held.ts'
import type { NanoUsd } from '../../../shared/money/money.ts'
import type { UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import type { BudgetRefusal, Caps, Spender } from '../../budget/ledger.ts'
import type { StoreSettings } from '../../config/routing-config.ts'
import type { Holder, Holding } from '../../enforce/held-responses.ts'
import type { WriterStatus } from '../../traces/writer.ts'

/** A bound that a process asks for, under a number of its own that counts up. */
export interface Reserve {
  id: number
  spender: Spender
  caps: Caps
  bound: NanoUsd
  /** When it was asked for, in milliseconds. */
  at: number
  /** The store counts the bound as spent. */
  isStored?: boolean
}

/** What a reservation came to. Those with a number of a reservation end it; without one they were never reserved. */
export interface Spent {
  /** Counts up in each process, so that it knows which of them are stored. */
  seq: number
  id: number | undefined
  spender: Spender
  caps: Caps
  cost: NanoUsd
  /** What was reserved, for a keeper of the accounts that does not know it. */
  reserved?: Reserve
}

export type WriterQuestion =
  | { reserve: readonly Reserve[] }
  | { held: HeldState; tenantId: string }
  | { find: string; tenantId: string | undefined }
  /** Answered when everything before it was taken. */
  | { taken: true }

export interface WriterAnswers {
  reserve: (true | BudgetRefusal)[]
  held: Holding
  find: UnsealedTrace | undefined
  taken: true
}

export type ToWriter =
  /** First on every connection that keeps receipts. */
  | { begin: StoreSettings }
  | { frame: number; records: readonly UnsealedTrace[] }
  /** First on the connection of a process's calls: what it has open, and what it spent that may not be stored. */
  | { process: number; open: readonly Reserve[]; spent: readonly Spent[] }
  | { spent: readonly Spent[] }
  | { keep: HeldState; tenantId: string; holder: Holder }
  | { ask: number; question: WriterQuestion }

export type FromWriter =
  /** A frame is stored, but for these. */
  | { done: number; lost: readonly { id: string; why: string }[] }
  | { status: WriterStatus }
  /** What was spent up to here is stored, and the bounds of what was granted up to there. */
  | { stored: number; granted: number }
  | { reply: number; answer: unknown }

/** What the first process asks the others for, on behalf of one of them. */
export type RouterQuestion = 'page' | 'made' | 'reload'

/** For the writer: a process ended. */
export interface ProcessExit {
  gone: number
}

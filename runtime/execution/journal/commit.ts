import type { InStatement } from '@libsql/client/web'
import type { RunErrorCode, RunStatus } from '../../../shared/wire/runtime/run.ts'
import type { ChainHead, SealedEvent } from './event.ts'

/** What a step used; added to the run's counters in the transaction that records its result. */
export interface Spent {
  tokensIn: number
  tokensOut: number
  costNano: number
}

/** What of it went on what, where a call was priced by class; and the number of calls without a price. */
export interface SpentParts {
  inputNano: number
  cacheReadNano: number
  cacheWriteNano: number
  outputNano: number
  cacheReadTokens: number
  cacheWriteTokens: number
  unpricedCalls: number
}

export const noParts = (): SpentParts => ({
  inputNano: 0,
  cacheReadNano: 0,
  cacheWriteNano: 0,
  outputNano: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  unpricedCalls: 0,
})

/** Ids of runs and approvals, and names of signals. */
export interface Awaits {
  children: string[]
  signals: string[]
  approvals: string[]
}

/** Where a run goes when its owner lets go of it. */
export interface Transition {
  status: RunStatus
  /** When any owner may take it again; null: only an outside event moves it. */
  dueMs: number | null
  parked?: { reason: 'timer' | 'signal' | 'subagent'; untilMs?: number }
  /** What else moves it; where any of it came before this unit is kept, the run is due at once. */
  awaited?: Awaits
  finished?: {
    output: string
    error?: { code: RunErrorCode; message: string; stepId?: string }
    eventCount: number
    head: string
    /** It asked people something, and may have an open question. */
    asked: boolean
    /** A run above it may wait for its end. */
    child: boolean
    /** Why it was cancelled. */
    reason?: string
    /** The signed receipt, whose content is this unit; absent where nothing can be signed. */
    receipt?: { tenantId: string; envelope: string } | undefined
    /** What it was given and said is not kept any longer, but for its output; a conversation goes on with what it was given. */
    drop: boolean
    /** What the end means elsewhere; each statement holds its own condition on the run's epoch. */
    also?: readonly InStatement[] | undefined
  }
}

export interface NewApproval {
  id: string
  tenantId: string
  agentName: string
  stepId: string
  /** Counts the questions of one step. */
  round: number
  reason: string
  prompt: string
  action: string | null
  expiresMs: number
}

export interface Blob {
  sha256: string
  mediaType: string
  content: Uint8Array
}

/** What one run commits at once: all of it or nothing, and nothing at all when the run has a newer owner. */
export interface Unit {
  runId: string
  epoch: number
  /** Of the last event of the run, in this unit or before it. */
  seq: number
  /** The last event before this unit, which was kept. */
  after: ChainHead
  atMs: number
  ranMs: number
  events: readonly SealedEvent[]
  spent: Spent
  parts: SpentParts
  model?: string
  isolationUsed?: string
  blobs: readonly Blob[]
  approvals: readonly NewApproval[]
  /** Statements of features that take part in this commit. Each must hold its own condition on the run's epoch. */
  extra: readonly InStatement[]
  transition?: Transition
}

export type Committed = 'kept' | 'fenced'

/**
 * What others write about units in the transaction that keeps them, as its last statements: runs and events stand as the units
 * left them. A unit may be fenced, so each statement must look whether its own is there.
 */
export type ExtraStatements = (units: readonly Unit[]) => InStatement[]

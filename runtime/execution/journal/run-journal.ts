import type { InStatement } from '@libsql/client/web'
import { boundedSum } from '../../../shared/money/money.ts'
import type { Sha256 } from '../../../shared/sign/sha256.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import {
  type Blob,
  type NewApproval,
  noParts,
  type Spent,
  type SpentParts,
  type Transition,
  type Unit,
} from './commit.ts'
import { type ChainHead, type EventDraft, type JournalEntry, sealEvent } from './event.ts'
import type { JournalWriter } from './journal-writer.ts'

/** The run has a newer owner, or was ended from outside: nothing this one does may be kept. */
export class LeaseLostError extends Error {
  override name = 'LeaseLostError'
}

export interface RunJournalDeps {
  writer: JournalWriter
  clock: Clock
  sha256: Sha256
  /** Told of entries once they are kept, in order. */
  kept: (runId: string, entries: readonly JournalEntry[]) => void
}

/** What goes into the next commit besides events. */
export interface StepExtras {
  spent?: Spent
  parts?: Partial<SpentParts>
  model?: string
  isolationUsed?: string
  blobs?: readonly Blob[]
  approvals?: readonly NewApproval[]
  extra?: readonly InStatement[]
  /** It says what a recovery found, and is no step forward. */
  retold?: boolean
}

/** What a journal comes to when its owner lets go of it. */
export interface LastWord {
  head: ChainHead
  atMs: number
  /** What was spent in the hands of this owner. */
  spent: Spent
  /** Calls in the hands of this owner of models that have no price. */
  unpricedCalls: number
  /** Models that answered in the hands of this owner. */
  models: ReadonlySet<string>
  isolationUsed?: string | undefined
}

export interface RunJournal {
  /** Puts an event in its place; it is durable when a later `commit` resolves. */
  append(draft: EventDraft, extras?: StepExtras): JournalEntry
  /** Resolves when everything appended so far is durable. One commit at a time: what comes meanwhile shares the next. */
  commit(): Promise<void>
  /** Makes what was appended durable within a moment, unless a commit takes it along before. */
  commitSoon(): void
  /** Commits what is left and lets the run go. Nothing can be appended afterwards. */
  release(transition: (last: LastWord) => Transition | Promise<Transition>): Promise<void>
  readonly head: ChainHead
  readonly lost: boolean
}

interface Pending extends Required<Omit<StepExtras, 'model' | 'isolationUsed' | 'parts' | 'retold'>> {
  parts: SpentParts
  events: Unit['events'][number][]
  blobs: Blob[]
  approvals: NewApproval[]
  extra: InStatement[]
  model?: string
  isolationUsed?: string
}

const nothing = (): Pending => ({
  events: [],
  blobs: [],
  approvals: [],
  extra: [],
  spent: { tokensIn: 0, tokensOut: 0, costNano: 0 },
  parts: noParts(),
})

/** The journal of one run in the hands of its owner. */
export function runJournal(
  { writer, clock, sha256, kept }: RunJournalDeps,
  { runId, epoch, head: from }: { runId: string; epoch: number; head: ChainHead },
): RunJournal {
  let head = from
  let after = from
  let next = nothing()
  let flight: Promise<void> | undefined
  let failure: unknown
  let timer: ReturnType<typeof setTimeout> | undefined
  let durable = from.seq
  /** What is durable or on its way. */
  let sent = from.seq
  let lastMs = clock.now().getTime()
  let ranFrom = clock.monotonic()
  const totals = runTotals()

  function now(): Date {
    // A wall clock may be set back; the times of one journal never run backwards.
    lastMs = Math.max(lastMs, clock.now().getTime())
    return new Date(lastMs)
  }

  async function send(transition?: Transition, atMs = now().getTime()): Promise<void> {
    const { events, ...rest } = next
    next = nothing()
    const ran = clock.monotonic()
    const unit: Unit = {
      runId,
      epoch,
      seq: head.seq,
      after,
      events,
      ...rest,
      atMs,
      ranMs: ran - ranFrom,
      ...(transition && { transition }),
    }
    ranFrom = ran
    after = head
    const result = await writer.append(unit)
    if (result === 'fenced') throw new LeaseLostError(`run ${runId} has a newer owner`)
    kept(
      runId,
      events.map(event => event.entry),
    )
  }

  /** One commit of what has gathered. A hole must not follow a refused one, so the first failure is the last word. */
  async function flush(): Promise<void> {
    const upTo = head.seq
    sent = upTo
    try {
      await send()
      durable = upTo
    } catch (error) {
      failure = error
      throw error
    } finally {
      flight = undefined
    }
  }

  function alive(): void {
    if (failure !== undefined) throw failure
  }

  return {
    append(draft, extras = {}) {
      alive()
      const event = sealEvent(head, runId, draft, now(), sha256)
      head = { seq: event.entry.seq, hash: event.entry.hash }
      next.events.push(event)
      gather(next, extras)
      if (extras.retold) {
        next.extra.push({
          sql: 'update runs set recovery_seq = ?3 where id = ?1 and epoch = ?2 and recovery_seq = ?3 - 1',
          args: [runId, epoch, head.seq],
        })
      }
      totals.add(extras)
      return event.entry
    },
    async commit() {
      const upTo = head.seq
      while (durable < upTo) {
        alive()
        flight ??= flush()
        await flight
      }
      alive()
    },
    commitSoon() {
      if (timer !== undefined) return
      timer = setTimeout(() => {
        timer = undefined
        // A failure shows at the next step; nothing waits here.
        if (failure === undefined && sent < head.seq) void this.commit().catch(() => undefined)
      }, 0)
    },
    async release(transition) {
      alive()
      clearTimeout(timer)
      while (flight) await flight
      try {
        const atMs = now().getTime()
        await send(await transition({ head, atMs, ...totals.read() }), atMs)
      } finally {
        failure ??= new LeaseLostError(`run ${runId} was let go`)
      }
    },
    get head() {
      return head
    },
    get lost() {
      return failure instanceof LeaseLostError
    },
  }
}

/** Puts what an event brings with it beside the events of the next commit. */
function gather(
  next: Pending,
  { blobs = [], approvals = [], extra = [], spent, parts, model, isolationUsed }: StepExtras,
): void {
  next.blobs.push(...blobs)
  next.approvals.push(...approvals)
  next.extra.push(...extra)
  if (spent) add(next.spent, spent)
  for (const [part, more] of Object.entries(parts ?? {})) next.parts[part as keyof SpentParts] += more
  if (model !== undefined) next.model = model
  if (isolationUsed !== undefined) next.isolationUsed = isolationUsed
}

/** What a run has used since its claim. */
function runTotals() {
  const spent: Spent = { tokensIn: 0, tokensOut: 0, costNano: 0 }
  const models = new Set<string>()
  let unpricedCalls = 0
  let isolationUsed: string | undefined
  return {
    add(extras: StepExtras): void {
      if (extras.spent) add(spent, extras.spent)
      unpricedCalls += extras.parts?.unpricedCalls ?? 0
      if (extras.model !== undefined) models.add(extras.model)
      isolationUsed = extras.isolationUsed ?? isolationUsed
    },
    read: () => ({ spent, unpricedCalls, models, isolationUsed }),
  }
}

function add(sum: Spent, more: Spent): void {
  sum.tokensIn += more.tokensIn
  sum.tokensOut += more.tokensOut
  sum.costNano = boundedSum(sum.costNano, more.costNano)
}

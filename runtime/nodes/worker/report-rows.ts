import type { InStatement } from '@libsql/client/web'
import { POISONED, RATE_LIMIT } from '../../execution/claim-statement.ts'
import type { Unit } from '../../execution/journal/commit.ts'
import type { JournalEntry } from '../../execution/journal/event.ts'

interface EventReport {
  t: 'event'
  run: string
  seq: number
  kind: string
  step: string
  attempt: number
  at: string
  hash: string
  in: number
  out: number
  nano: number
  model: string
  /** A call without a price. Absent in rows of older versions. */
  unpriced?: boolean
  /** The run ended before a word of the call's answer came. */
  cut?: boolean
}
export type Report =
  | EventReport
  | { t: 'accept'; run: string; ok: boolean; reason: string; epoch?: number }
  | { t: 'complete'; run: string }
  | { t: 'takeover'; run: string }
  | { t: 'parked'; run: string; reason: string; until?: number }
  | { t: 'child'; run: string; child: string; agent: string; box: string; hash: string; length: number }
  | { t: 'credential'; ref: string; error: string }
  | { t: 'ask'; run: string; step: string; id: string; reason: string; expires: number }

/** What a commit reports. */
type ReportedUnit = Pick<Unit, 'runId' | 'epoch' | 'events' | 'approvals' | 'transition'>

const NO_NANO = 1_000_000_000

/** The reports to the control plane about these runs, for the commit that sets them aside. */
export function setAsideReports(by: string | null): (ids: readonly string[]) => InStatement {
  return ids => ({
    sql: `insert into tunnel_outbox (frame, node_id)
      select json_object('t', 'parked', 'run', r.id, 'reason', r.parked), ?2 from json_each(?1) as n
      join runs as r on r.id = n.value and r.parked = '${POISONED}' join tunnel_runs as t on t.run_id = r.id`,
    args: [JSON.stringify(ids), by],
  })
}

/** The report that a run waits for a rate limit until then, or until its next event. */
export function waitReport(by: string | null): (run: string, until: number) => InStatement[] {
  return (run, until) => {
    const frame = JSON.stringify({ t: 'parked', run, reason: RATE_LIMIT, until } satisfies Report)
    return [{ sql: 'insert into tunnel_outbox (frame, node_id) values (?, ?)', args: [frame, by] }]
  }
}

/** Its provider may have been thinking until then, and bills that (decision 107). */
const isCut = ({ kind, meta, payload }: JournalEntry): boolean =>
  kind === 'step_failed' && payload.transient === false && meta.estimated === true && meta.tokensOut === 0

/**
 * The reports of a commit to the control plane, written by the same commit, so that nothing is reported that is not so and nothing
 * that is so stays unreported. Counts, kinds and hashes: not a word of what was said. `by`: the node, where others share its store.
 */
export function reportRows(by: string | null): (units: readonly ReportedUnit[]) => InStatement[] {
  return units => {
    const told: [string, number, string, string][] = []
    const moved: [string, number, string][] = []
    for (const { runId, epoch, events, approvals, transition } of units) {
      for (const { entry } of events) {
        const { seq, kind, stepId, attempt, at, hash, meta } = entry
        const report: EventReport = {
          t: 'event',
          run: runId,
          seq,
          kind,
          step: stepId,
          attempt,
          at,
          hash,
          model: meta.model ?? '',
          in: meta.tokensIn ?? 0,
          out: meta.tokensOut ?? 0,
          nano: Math.round((meta.costUsd ?? 0) * NO_NANO),
          ...(meta.unpriced && { unpriced: true }),
          ...(isCut(entry) && { cut: true }),
        }
        told.push([runId, seq, hash, JSON.stringify(report)])
        const ask = kind === 'step_waiting' && approvals.find(({ id }) => id === entry.payload.approvalId)
        if (ask) {
          const { stepId: step, id, reason, expiresMs: expires } = ask
          told.push([
            runId,
            seq,
            hash,
            JSON.stringify({ t: 'ask', run: runId, step, id, reason, expires } satisfies Report),
          ])
        }
      }
      if (transition?.finished) {
        moved.push([runId, epoch, JSON.stringify({ t: 'complete', run: runId } satisfies Report)])
      }
    }
    const statements: InStatement[] = []
    if (told.length > 0) {
      statements.push({
        sql: `insert into tunnel_outbox (frame, node_id) select n.value ->> 3, ?2 from json_each(?1) as n
          where exists (select 1 from events where run_id = n.value ->> 0 and seq = n.value ->> 1 and hash = n.value ->> 2)
          order by n.key`,
        args: [JSON.stringify(told), by],
      })
    }
    if (moved.length > 0) {
      statements.push({
        sql: `insert into tunnel_outbox (frame, node_id) select n.value ->> 2, ?2 from json_each(?1) as n
          join runs as r on r.id = n.value ->> 0 and r.epoch = n.value ->> 1 and r.finished_ms is not null order by n.key`,
        args: [JSON.stringify(moved), by],
      })
    }
    return statements
  }
}

import type { InStatement } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { ApprovalReason } from '../../shared/wire/runtime/approval.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { Redaction } from '../privacy/redaction.ts'
import type { approvals } from '../schema/tables.ts'
import { openMaybe, type Records } from '../vault/records.ts'
import { RunFailure, Suspended } from './failure.ts'
import { type History, questionOf } from './journal/history.ts'
import type { RunJournal } from './journal/run-journal.ts'
import { wellFormed } from './journal/well-formed.ts'

export interface Question {
  stepId: string
  attempt: number
  reason: ApprovalReason
  prompt: string
  action?: ProposedAction
}

export interface ProposedAction {
  name: string
  arguments: unknown
  to?: string
}

export interface Decision {
  approved: boolean
  by?: string
  comment?: string
  resolution?: 'retry' | 'completed'
  output?: unknown
  /** Where the call goes that was asked about. */
  to?: string
  /** The call has other arguments now: what its connector reads them by was changed. */
  isOther?: true
}

export interface Approvals {
  /** The human's decision; throws Parked while there is none, and RunFailure where the manifest ends the run. */
  ask(question: Question): Promise<Decision>
  /** Whether a call that was approved before this process had the run still has the arguments that were asked about. */
  stillFits(stepId: string, action: ProposedAction): Promise<boolean>
}

/** What others write in the transaction that lets a question expire. It may have been decided, so each statement must look. */
export type ApprovalExpired = (
  approval: { id: string; stepId: string; run: { id: string; tenantId: string; agentName: string } },
  nowMs: number,
) => InStatement[]

export interface ApprovalsDeps {
  run: { id: string; tenantId: string; agentName: string }
  policy: Manifest['approvals']
  db: Db
  records: Records
  journal: RunJournal
  history: History
  clock: Clock
  newId: () => string
  expired?: ApprovalExpired | undefined
  redact?: Redaction | undefined
}

/** Questions of one run to a human. They live in the store, so a waiting run holds no worker and survives a restart. */
export function runApprovals(deps: ApprovalsDeps): Approvals {
  const { policy, history, clock } = deps

  return {
    async ask(question) {
      const { stepId } = question
      const round = questionOf(history, stepId)
      let found = await findQuestion(deps, stepId, round)
      if (!found) return putQuestion(deps, question, round)
      if (found.status === 'pending') {
        const { id, expiresMs } = found
        if (clock.now().getTime() < expiresMs) throw new Suspended({ on: 'approval', id, expiresMs })
        if (!(await expireQuestion(deps, found.id, stepId))) found = (await findQuestion(deps, stepId, round)) ?? found
        else found = { ...found, status: 'expired' }
      }
      const { by, comment, resolution, output, to, arguments: asked } = found
      if (found.status === 'expired' && policy.onExpire === 'fail') {
        throw new RunFailure('approval_expired', 'no decision came in time', { stepId })
      }
      const approved = found.status === 'approved'
      if (!approved && found.status !== 'expired' && policy.onReject === 'fail') {
        throw new RunFailure('approval_rejected', comment ?? 'rejected', { stepId })
      }
      return {
        approved,
        ...(by !== undefined && { by }),
        ...(comment !== undefined && { comment }),
        ...(resolution !== undefined && { resolution }),
        ...(output !== undefined && { output }),
        ...(to !== undefined && { to }),
        ...(approved && !isAsked(question, asked, deps.redact) && { isOther: true as const }),
      }
    },

    async stillFits(stepId, action) {
      const found = await findQuestion(deps, stepId, history.questions.get(stepId) ?? 0)
      return isAsked({ action }, found?.arguments, deps.redact)
    },
  }
}

async function findQuestion(deps: ApprovalsDeps, stepId: string, round: number) {
  const answer = await deps.db.execute({
    sql: `select id, status, expires_ms, decided_by, comment, decision, action from approvals
      where run_id = ? and step_id = ? and round = ?`,
    args: [deps.run.id, stepId, round],
  })
  const [row] = rowsOf<RowOf<typeof approvals>>(answer)
  if (!row) return undefined
  const { id } = row
  const comment = openMaybe(deps.records, row.comment, { record: deps.run.id, field: `comment ${id}` })
  const decision = openMaybe(deps.records, row.decision, { record: deps.run.id, field: `decision ${id}` })
  const action = openMaybe(deps.records, row.action, { record: deps.run.id, field: `action ${id}` })
  const { to, arguments: given } = (action === null ? {} : readJson(action)) as Partial<ProposedAction>
  return {
    id,
    status: row.status,
    expiresMs: row.expires_ms,
    ...(row.decided_by !== null && { by: row.decided_by }),
    ...(comment !== null && { comment }),
    ...(to !== undefined && { to }),
    arguments: given,
    ...(decision !== null && (readJson(decision) as Pick<Decision, 'resolution' | 'output'>)),
  }
}

/** Whether the arguments are those that were asked about. */
function isAsked({ action }: Pick<Question, 'action'>, asked: unknown, redact: Redaction | undefined): boolean {
  if (action === undefined || asked === undefined) return true
  const now = redact?.value(action.arguments) ?? action.arguments
  const textOf = (value: unknown) => canonicalize(wellFormed(readJson(JSON.stringify(value ?? null))))
  return textOf(now) === textOf(asked)
}

async function putQuestion(deps: ApprovalsDeps, question: Question, round: number): Promise<never> {
  const { stepId, attempt, reason, prompt, action } = deps.redact?.value(question) ?? question
  const id = deps.newId()
  const expiresMs = deps.clock.now().getTime() + deps.policy.expiresMinutes * 60_000
  const expiresAt = new Date(expiresMs).toISOString()
  deps.journal.append(
    {
      kind: 'step_waiting',
      stepId,
      attempt,
      payload: { approvalId: id, reason, prompt, expiresAt, ...(action && { action }) },
    },
    {
      approvals: [
        {
          id,
          tenantId: deps.run.tenantId,
          agentName: deps.run.agentName,
          stepId,
          round,
          reason,
          prompt,
          expiresMs,
          action: action === undefined ? null : JSON.stringify(action),
        },
      ],
    },
  )
  deps.history.questions.set(stepId, round)
  deps.history.steps.set(stepId, { is: 'waiting', attempt, meta: {}, approvalId: id })
  await deps.journal.commit()
  throw new Suspended({ on: 'approval', id, expiresMs })
}

/** Takes the place of a decision that did not come in time; a decision that just came wins. */
async function expireQuestion(deps: ApprovalsDeps, id: string, stepId: string): Promise<boolean> {
  const nowMs = deps.clock.now().getTime()
  const [result] = await deps.db.write([
    {
      sql: "update approvals set status = 'expired', decided_ms = ? where id = ? and status = 'pending'",
      args: [nowMs, id],
    },
    ...(deps.expired?.({ id, stepId, run: deps.run }, nowMs) ?? []),
  ])
  return result?.rowsAffected === 1
}

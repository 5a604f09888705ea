import { readJson } from '../../shared/json/read-json.ts'
import { toUsd } from '../../shared/money/money.ts'
import { listIn, objectIn, type RowOf, readRow, textIn } from '../../shared/sql/db.ts'
import type {
  Session,
  SessionEvent,
  SessionMessage,
  SessionStatus,
  TurnFinish,
} from '../../shared/wire/runtime/session.ts'
import type { sessions, turns } from '../schema/tables.ts'
import { openMaybe, type Records } from '../vault/records.ts'

export type StopReason = 'stopped' | 'agent_deleted'

/** A session as it is stored. */
export interface SessionRow {
  id: string
  tenantId: string
  agentId: string
  versionId: string
  status: SessionStatus
  turnId: string | undefined
  createdMs: number
  wire: Session
}

/** Calls without a price, where there are any. */
export const unpriced = (calls: number) => (calls > 0 ? { unpricedCalls: calls } : {})

const time = (ms: number): string => new Date(ms).toISOString()

export function toSession(row: RowOf<typeof sessions>, records: Records): SessionRow {
  return readRow(`session ${row.id}`, row, () => {
    const { id, tenant_id: tenantId, version_id: versionId, status } = row
    const environment = openMaybe(records, row.environment, { record: id, field: 'environment' })
    return {
      id,
      tenantId,
      versionId,
      status,
      agentId: row.agent_id,
      createdMs: row.created_ms,
      turnId: row.turn_id ?? undefined,
      wire: {
        id,
        tenantId,
        agentName: row.agent_name,
        agentVersionId: versionId,
        status,
        ...(row.title !== null && { title: textIn(row.title) }),
        labels: objectIn<Session['labels']>(row.labels),
        tokensIn: row.tokens_in,
        tokensOut: row.tokens_out,
        costUsd: toUsd(row.cost_nano),
        ...unpriced(row.unpriced_calls),
        turnCount: row.turn_count,
        createdAt: time(row.created_ms),
        updatedAt: time(row.updated_ms),
        ...(row.stopped_ms !== null && { stoppedAt: time(row.stopped_ms) }),
        ...(environment !== null && { environment: readJson(environment) as Record<string, unknown> }),
      },
    }
  })
}

type Turn = RowOf<typeof turns>
type Texts = Pick<Turn, 'run_id'> & Partial<Pick<Turn, 'text' | 'tool_calls' | 'error'>> & { input?: string | null }

/** The row of a turn with its texts opened; `input` is that of its run. */
export function openTurn<R extends Texts>(row: R, records: Records) {
  const record = row.run_id
  const open = (value: string | null | undefined, field: string) => openMaybe(records, value, { record, field })
  return {
    ...row,
    text: open(row.text, 'text'),
    tool_calls: open(row.tool_calls, 'toolCalls'),
    error: open(row.error, 'turnError'),
    input: open(row.input, 'input'),
  }
}

const UNKNOWN = { error: 'what went wrong is known to the node that had the turn', code: 'internal' }

/** How the answer of a turn ended, by the code that its run failed with; undefined where there is no answer. */
export function finishOf(status: string, code: string | undefined): TurnFinish | undefined {
  if (status === 'succeeded') return 'complete'
  if (status !== 'failed') return undefined
  return code === 'output_truncated' ? 'truncated' : code === 'model_refused' ? 'refused' : undefined
}

/** How a turn ended; undefined while it goes on. */
export type TurnEnd = Extract<SessionEvent, { event: 'message_completed' | 'message_error' }>

export function turnEnd(row: Turn): TurnEnd | undefined {
  const { session_id: sessionId, run_id: turnId } = row
  if (row.status === 'open') return undefined
  if (row.status === 'failed') {
    if (row.error === null) return { event: 'message_error', data: { sessionId, turnId, ...UNKNOWN } }
    const { code, error } = readJson(row.error) as { code: string; error: string }
    return { event: 'message_error', data: { sessionId, turnId, error, code } }
  }
  // What was said in a turn on a node stands there.
  const text = row.text === null ? '' : textIn(row.text)
  const usage = {
    tokensIn: row.tokens_in,
    tokensOut: row.tokens_out,
    costUsd: toUsd(row.cost_nano),
    ...unpriced(row.unpriced_calls),
  }
  const finish = row.error === null ? 'complete' : (readJson(row.error) as { finish: TurnFinish }).finish
  return { event: 'message_completed', data: { turnId, text, usage, sessionId, finish } }
}

/** What was said in a turn: the user's message, and the agent's once there is one. */
export function messagesOf(row: Turn & { input: string | null }): SessionMessage[] {
  const turnId = row.run_id
  const { message } = readJson(row.input || '{}') as { message?: string }
  const asked: SessionMessage = { turnId, role: 'user', content: message ?? '', at: time(row.created_ms) }
  if (row.status !== 'completed') return [asked]
  const toolCalls = row.tool_calls === null ? {} : { toolCalls: listIn<unknown>(row.tool_calls) }
  const text = readJson(row.text!) as string
  return [asked, { turnId, role: 'assistant', content: text, ...toolCalls, at: time(row.ended_ms!) }]
}

import { ApiError } from '../../../shared/http/api-error.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { fromHex, utf8 } from '../../../shared/sign/bytes.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import type { ReadRequest } from '../../../shared/tunnel/gateway.gen.ts'
import { type BoxKeys, sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import type { ManifestTexts } from '../../agents/texts.ts'
import type { RequestsOfSteps } from '../../runs/step-requests.ts'
import type { approvals, blobs, events, runData } from '../../schema/tables.ts'
import type { SessionStore } from '../../sessions/store.ts'
import {
  eventLines,
  poolKeyAad,
  type RemoteApproval,
  type RemoteEventText,
  type RemoteRunData,
  textsAad,
} from '../sealed-payloads.ts'

export interface AnswerReadsDeps {
  db: Db
  sessions: Pick<SessionStore, 'turn' | 'messages'>
  requests: RequestsOfSteps
  identity: { tenantId: string; pool: string; poolKeys: BoxKeys }
  opened: <T>(box: Uint8Array, place: string) => Promise<T>
}

/** Answers what only this node knows. */
export function answerReads({
  db,
  sessions,
  requests,
  identity: { tenantId, pool, poolKeys },
  opened,
}: AnswerReadsDeps) {
  return async function read({
    kind,
    id,
    from,
    limit,
    box,
    lines,
  }: ReadRequest): Promise<{ status: number; body: Uint8Array }> {
    const answer = (value: unknown) => ({ status: 200, body: utf8(JSON.stringify(value)) })
    if (kind === 'data') {
      const found = await db.execute({
        sql: `select run_id, input, output, error_message from run_data
          where run_id in (select value from json_each(?)) and run_id in (select run_id from tunnel_runs)`,
        args: [JSON.stringify(id.split(','))],
      })
      return answer(rowsOf<RowOf<typeof runData>>(found).map(toData))
    }
    if (kind === 'events') {
      const found = await db.execute({
        sql: `select hash, body from events where run_id = ? and seq >= ? order by seq limit ?`,
        args: [id, Number(from), Math.min(Math.max(1, limit), 500)],
      })
      const texts = rowsOf<Pick<RowOf<typeof events>, 'hash' | 'body'>>(found)
      if (lines) return { status: 200, body: eventLines(texts) }
      return answer(texts.map(({ hash, body }): RemoteEventText => ({ hash, body })))
    }
    if (kind === 'approvals') {
      const found = await db.execute({
        sql: 'select id, prompt, action, comment from approvals where id in (select value from json_each(?))',
        args: [JSON.stringify(id.split(','))],
      })
      return answer(rowsOf<ApprovalTexts>(found).map(toApproval))
    }
    if (kind === 'blob') {
      const [runId, sha256] = id.split('/')
      const found = await db.execute({
        sql: `select content from blobs where run_id = ? and sha256 = ? and run_id in (select run_id from tunnel_runs)`,
        args: [runId ?? '', sha256 ?? ''],
      })
      const [row] = rowsOf<Pick<RowOf<typeof blobs>, 'content'>>(found)
      if (row) return { status: 200, body: new Uint8Array(row.content) }
    }
    if (kind === 'request') {
      const [runId = '', stepId = ''] = id.split('/')
      const here = 'select 1 from tunnel_runs where run_id = ?'
      if ((await db.execute({ sql: here, args: [runId] })).rows.length > 0)
        return requestOf(requests, runId, stepId, from)
    }
    if (kind === 'messages') return answer(await sessions.messages(id))
    if (kind === 'turns') {
      const ends = await Promise.all(id.split(',').map(turnId => sessions.turn(turnId)))
      return answer(ends.filter(end => end !== undefined))
    }
    if (kind === 'texts') {
      const texts = await opened<ManifestTexts>(box, textsAad(id)).catch(() => undefined)
      if (texts) return answer(texts)
    }
    if (kind === 'pool-key' && /^[0-9a-f]{64}$/.test(id)) {
      const sealed = await sealTo(fromHex(id), poolKeys.privateKey, poolKeyAad(tenantId, pool))
      return { status: 200, body: sealed }
    }
    return { status: 404, body: new Uint8Array() }
  }
}

async function requestOf(requests: RequestsOfSteps, runId: string, stepId: string, from: bigint) {
  const answer = (status: number, value: unknown) => ({ status, body: utf8(JSON.stringify(value)) })
  try {
    const found = await requests.of(runId, stepId, from === 0n ? undefined : Number(from))
    return found ? answer(200, found) : answer(404, {})
  } catch (error) {
    if (error instanceof ApiError && error.code === 'validation_failed') return answer(400, { error: error.message })
    throw error
  }
}

function toData(row: RowOf<typeof runData>): RemoteRunData {
  return {
    id: row.run_id,
    ...(row.input !== '' && { input: readJson(row.input) as NonNullable<RemoteRunData['input']> }),
    ...(row.output !== null && { output: readJson(row.output) as NonNullable<RemoteRunData['output']> }),
    ...(row.error_message !== null && { errorMessage: row.error_message }),
  }
}

type ApprovalTexts = Pick<RowOf<typeof approvals>, 'id' | 'prompt' | 'action' | 'comment'>

function toApproval({ id, prompt, action, comment }: ApprovalTexts): RemoteApproval {
  return {
    id,
    prompt,
    ...(action !== null && { action: readJson(action) as NonNullable<RemoteApproval['action']> }),
    ...(comment !== null && { comment }),
  }
}

import { ApiError } from '../../../shared/http/api-error.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { fromHex, utf8 } from '../../../shared/sign/bytes.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import type { ReadRequest } from '../../../shared/tunnel/gateway.gen.ts'
import { type BoxKeys, sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import type { ManifestTexts } from '../../agents/texts.ts'
import type { ApprovalRow, ApprovalStore } from '../../approvals/store.ts'
import { type DataRow, readData } from '../../runs/run-row.ts'
import type { RequestsOfSteps } from '../../runs/step-requests.ts'
import { JOURNAL_PAGE, type RunStore } from '../../runs/store.ts'
import type { events } from '../../schema/tables.ts'
import type { SessionStore } from '../../sessions/store.ts'
import type { Records } from '../../vault/records.ts'
import {
  eventLines,
  poolKeyAad,
  type RemoteApproval,
  type RemoteEventText,
  type RemoteRunData,
  textsAad,
} from '../sealed-payloads.ts'

/** For a control plane of an older version, which takes a short page for the last one. */
const ALL_EVENTS = 'select hash, body, seq from events where run_id = ? and seq >= ? order by seq limit ?'

type StoredEvent = Pick<RowOf<typeof events>, 'hash' | 'body' | 'seq'> & { cut?: number | null }

export interface AnswerReadsDeps {
  db: Db
  records: Records
  runs: Pick<RunStore, 'blob'>
  approvals: Pick<ApprovalStore, 'ofIds'>
  sessions: Pick<SessionStore, 'turn' | 'messages'>
  requests: RequestsOfSteps
  identity: { tenantId: string; pool: string; poolKeys: BoxKeys }
  opened: <T>(box: Uint8Array, place: string) => Promise<T>
}

/** Answers what only this node knows. */
export function answerReads({
  db,
  records,
  runs,
  approvals,
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
    pages,
  }: ReadRequest): Promise<{ status: number; body: Uint8Array }> {
    const isHere = async (runId: string) =>
      (await db.execute({ sql: 'select 1 from tunnel_runs where run_id = ?', args: [runId] })).rows.length > 0
    const answer = (value: unknown) => ({ status: 200, body: utf8(JSON.stringify(value)) })
    if (kind === 'data') {
      const found = await db.execute({
        sql: `select run_id, input, output, error_message from run_data
          where run_id in (select value from json_each(?)) and run_id in (select run_id from tunnel_runs)`,
        args: [JSON.stringify(id.split(','))],
      })
      return answer(rowsOf<DataRow>(found).flatMap(row => toData(row, records) ?? []))
    }
    if (kind === 'events') {
      const most = Math.min(Math.max(1, limit), 500)
      const isPaged = lines && pages
      const found = await db.execute({ sql: isPaged ? JOURNAL_PAGE : ALL_EVENTS, args: [id, Number(from), most] })
      const rows = rowsOf<StoredEvent>(found)
      const texts = rows.map(
        ({ hash, body, seq }): RemoteEventText => ({
          hash,
          body: records.open(body, { record: id, field: `event ${seq}` }),
        }),
      )
      const hasMore = isPaged && (rows[0]?.cut ?? null) !== null
      return lines ? { status: 200, body: eventLines(texts, hasMore) } : answer(texts)
    }
    if (kind === 'approvals') {
      return answer((await approvals.ofIds(id.split(','))).map(toApproval))
    }
    if (kind === 'blob') {
      const [runId = '', sha256 = ''] = id.split('/')
      const body = (await isHere(runId)) ? await runs.blob(runId, sha256) : undefined
      if (body) return { status: 200, body }
    }
    if (kind === 'request') {
      const [runId = '', stepId = ''] = id.split('/')
      if (await isHere(runId)) return requestOf(requests, runId, stepId, from)
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

/** Undefined where it does not open: the control plane then says that it is not available. */
function toData(row: DataRow, records: Records): RemoteRunData | undefined {
  const data = readData(row, records)
  if (data === 'unreadable') return undefined
  const { input, output, errorMessage } = data
  return {
    id: row.run_id,
    ...(input !== '' && { input: readJson(input) as NonNullable<RemoteRunData['input']> }),
    ...(output !== null && { output: readJson(output) as NonNullable<RemoteRunData['output']> }),
    ...(errorMessage !== null && { errorMessage }),
  }
}

function toApproval({ id, prompt, action, comment }: ApprovalRow): RemoteApproval {
  return { id, prompt: prompt ?? '', ...(action && { action }), ...(comment !== undefined && { comment }) }
}

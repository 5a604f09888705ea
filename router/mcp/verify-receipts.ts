import { ApiError } from '../../shared/http/api-error.ts'
import { readProof } from '../../shared/proof/read-proof.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { check, sentence } from '../../shared/wire/issues.ts'
import { type Checkpoint, checkpoint, type VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import type { McpInput } from '../../shared/wire/router/mcp.ts'
import type { ChainHead } from '../traces/canonical-trace.ts'
import { ExportLineError } from '../traces/export-line.ts'
import { publishedKeys, trustedKeys } from '../traces/keys.ts'
import { reportOfOneMoment, storedCheckpoints, storedFeedback, storedStretch } from '../traces/stored-records.ts'
import { type VerifyInput, verifyRecords } from '../traces/verify.ts'

export interface VerifyStoreDeps {
  db: Db
  tenant: string
  sha256: Sha256
  /** Checks the whole chain in a way of the host's own. */
  wholeChain?: Extract<VerifyInput['records'], (wanted: never) => unknown>
}

/**
 * Re-derives one tenant's chain from the store. With a limit only the newest records are: the one before them is taken as it is, unless
 * a checkpoint names it.
 */
export async function verifyReceipts(
  { limit, anchor }: McpInput<'verify_receipts'>,
  deps: VerifyStoreDeps,
): Promise<VerifyReport> {
  const anchors = anchor === undefined ? [] : readAnchors(anchor)
  return reportOfOneMoment(deps.db, deps.tenant, () => reportOn(deps, limit, anchors))
}

async function reportOn(
  { db, tenant, sha256, wholeChain }: VerifyStoreDeps,
  limit: number | undefined,
  anchors: Checkpoint[],
): Promise<VerifyReport> {
  const after = limit === undefined ? undefined : await recordBefore(db, tenant, limit)
  const checkpoints = await readCheckpoints(db, tenant)
  if (checkpoints instanceof ExportLineError)
    return { valid: false, reason: checkpoints.reason, records: 0, tenants: [] }
  const { keys } = await publishedKeys(db)
  return verifyRecords({
    tenant,
    checkpoints,
    anchors,
    sha256,
    records:
      after === undefined
        ? (wholeChain ?? storedStretch(db, { tenant }))
        : storedStretch(db, { tenant, from: after.seq + 1 }),
    feedback: storedFeedback(db, tenant),
    ...(after && { after }),
    ...(keys.length > 0 && { keys: trustedKeys({ keys }) }),
  })
}

/** Or the fault of one that cannot be taken for what it should be: nothing is said of the rest. */
async function readCheckpoints(db: Db, tenant: string): Promise<Checkpoint[] | ExportLineError> {
  try {
    return await storedCheckpoints(db, { tenant })
  } catch (error) {
    if (error instanceof ExportLineError) return error
    throw error
  }
}

/** The record before the newest `limit`; undefined when there is none, or it does not read and so must be checked itself. */
async function recordBefore(db: Db, tenant: string, limit: number): Promise<ChainHead | undefined> {
  const answer = await db.execute({
    sql: `select seq, case when json_valid(body) then body ->> 'hash' end as hash from traces
      where tenant_id = ? order by seq desc limit 1 offset ?`,
    args: [tenant, limit],
  })
  const [row] = rowsOf<{ seq: number; hash: unknown }>(answer)
  return typeof row?.hash === 'string' ? { seq: row.seq, hash: row.hash } : undefined
}

/** One checkpoint, or one on each line, as `<db>.checkpoints.jsonl` has them. */
function readAnchors(text: string): Checkpoint[] {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  if (lines.length === 0) throw new ApiError('bad_request', 'anchor: expected a checkpoint, as JSON on one line')
  return lines.map((line, index) => {
    const where = lines.length === 1 ? 'anchor' : `anchor, line ${index + 1}`
    let value: unknown
    try {
      value = readProof(line)
    } catch (cause) {
      throw new ApiError('bad_request', `${where}: expected a checkpoint, as JSON on one line`, { cause })
    }
    const checked = check(checkpoint, value)
    if (!checked.ok) throw new ApiError('bad_request', `${where} is no checkpoint: ${sentence(checked.details)}`)
    return checked.value
  })
}

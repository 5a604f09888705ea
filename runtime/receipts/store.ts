import { readJson } from '../../shared/json/read-json.ts'
import type { Walk } from '../../shared/proof/receipt-proof.ts'
import { toHex } from '../../shared/sign/bytes.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { DamagedRowError, type Db, objectIn, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import { pageTurn } from '../../shared/time/sleep.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { genesis, linkHash, readEvent } from '../execution/journal/event.ts'
import { modelsOf } from '../execution/journal/history.ts'
import { JOURNAL_PAGE } from '../runs/store.ts'
import type { agentVersions, blobs, events, receipts, runData, runs } from '../schema/tables.ts'
import type { Records } from '../vault/records.ts'
import { VaultError } from '../vault/vault.ts'
import type { RunFacts } from './payload.ts'

const PAGE = 1000

const FACTS = `select r.tenant_id, r.agent_name, r.version_id, r.status, r.tokens_in, r.tokens_out, r.cost_nano, r.isolation,
  r.isolation_used, r.node_id, r.created_ms, r.finished_ms, d.input, d.output, v.manifest_hash,
  iif(json_valid(v.manifest), json_extract(v.manifest, '$.privacy.storePrompts'), 1) = 0 as dropped
from runs r left join run_data d on d.run_id = r.id left join agent_versions v on v.id = r.version_id
where r.id = ? and (d.run_id is not null or not exists (select 1 from remote_runs where run_id = r.id))`

type FactsRow = Pick<
  RowOf<typeof runs>,
  | 'tenant_id'
  | 'agent_name'
  | 'version_id'
  | 'tokens_in'
  | 'tokens_out'
  | 'cost_nano'
  | 'isolation'
  | 'isolation_used'
  | 'node_id'
  | 'created_ms'
  | 'finished_ms'
> & {
  status: RunFacts['status']
  dropped: number | null
  output: RowOf<typeof runData>['output']
  /** Of a row that is gone. */
  input: RowOf<typeof runData>['input'] | null
  manifest_hash: RowOf<typeof agentVersions>['manifest_hash'] | null
}

/** Of a run that was deleted its texts are gone as well. */
const LEFT = 'select 1 from run_data where run_id = ?1 and not exists (select 1 from runs where id = ?1)'

const incomplete = (runId: string, part: string) =>
  new DamagedRowError(`run ${runId}`, { cause: new RangeError(`its ${part} is gone`) })

/** A run as the store has it now: what its receipt would say, and whether its journal holds together. */
export interface StoredRun {
  facts: RunFacts
  walk: Walk
  /** What it was given is gone by the rule of its agent. */
  inputDropped: boolean
}

export type ReceiptStore = ReturnType<typeof receiptStore>

export function receiptStore(db: Db, records: Records, sha256: Sha256) {
  return {
    async find(runId: string): Promise<{ tenantId: string; receipt: Receipt } | undefined> {
      const found = await db.execute({
        sql: 'select tenant_id, envelope from receipts where run_id = ?',
        args: [runId],
      })
      const [row] = rowsOf<Pick<RowOf<typeof receipts>, 'tenant_id' | 'envelope'>>(found)
      return (
        row &&
        readRow(`the receipt of run ${runId}`, row, ({ tenant_id, envelope }) => {
          const receipt = objectIn<Receipt>(envelope)
          const { payload } = receipt
          if (payload.runId !== runId || payload.tenantId !== tenant_id) throw new RangeError('it is of another run')
          return { tenantId: tenant_id, receipt }
        })
      )
    },

    /** Keeps a receipt of a run that has none. */
    async add(tenantId: string, receipt: Receipt): Promise<void> {
      const { runId, issuedAt } = receipt.payload
      await db.execute({
        sql: `insert into receipts (run_id, tenant_id, issued_ms, envelope)
          select ?1, ?2, ?3, ?4 where exists (select 1 from runs where id = ?1) on conflict do nothing`,
        args: [runId, tenantId, Date.parse(issuedAt), JSON.stringify(receipt)],
      })
    },

    /** Undefined for a run that is unknown, deleted or not at its end. */
    async stored(runId: string): Promise<StoredRun | undefined> {
      const [row] = rowsOf<FactsRow>(await db.execute({ sql: FACTS, args: [runId] }))
      if (row === undefined) {
        const texts = await db.execute({ sql: LEFT, args: [runId] })
        if (texts.rows.length > 0) throw incomplete(runId, 'own row')
        return undefined
      }
      if (row.finished_ms === null) return undefined
      const { input, manifest_hash: manifestHash } = row
      // Of a run that was deleted nothing is left; where one part is gone, what the rest says of it cannot be checked.
      if (input === null) throw incomplete(runId, 'input')
      if (manifestHash === null) throw incomplete(runId, 'agent version')
      const dropped = row.dropped === 1
      const walked = await walkJournal(db, records, sha256, runId, dropped)
      const head = walked.walk.ok ? { seq: walked.walk.count, hash: walked.walk.head } : { seq: 0, hash: '' }
      // What does not open is not what was signed.
      const texts = {
        input: opened(() => records.open(input, { record: runId, field: 'input' })) ?? '',
        output: opened(() => records.open(row.output ?? 'null', { record: runId, field: 'output' })) ?? '',
      }
      const facts: RunFacts = {
        runId,
        tenantId: row.tenant_id,
        agentName: row.agent_name,
        head,
        agentVersionId: row.version_id,
        manifestHash,
        status: row.status,
        ...texts,
        tokensIn: row.tokens_in,
        tokensOut: row.tokens_out,
        costNano: row.cost_nano,
        models: walked.models,
        isolation: row.isolation_used ?? row.isolation,
        nodeId: row.node_id ?? 'null',
        createdMs: row.created_ms,
        finishedMs: row.finished_ms,
      }
      return { facts, walk: walked.walk, inputDropped: dropped && input === '' }
    },
  }
}

async function blobsOf(db: Db, records: Records, sha256: Sha256, runId: string): Promise<Map<string, string>> {
  const found = await db.execute({
    sql: 'select sha256, content, sealed from blobs where run_id = ?',
    args: [runId],
  })
  return new Map(
    rowsOf<Pick<RowOf<typeof blobs>, 'sha256' | 'content' | 'sealed'>>(found).map(row => {
      const { sha256: digest, content, sealed } = row
      const plain = opened(() => records.openBytes(new Uint8Array(content), sealed, `blob ${digest}`))
      return [digest, plain ? toHex(sha256(plain)) : '']
    }),
  )
}

/** Every hash is computed again from the stored text; of large outputs, whose text stands elsewhere, that text too. */
async function walkJournal(
  db: Db,
  records: Records,
  sha256: Sha256,
  runId: string,
  dropped: boolean,
): Promise<{ walk: Walk; models: string[] }> {
  let head = genesis(runId, sha256).hash
  let count = 0
  let blobs: Map<string, string> | undefined
  const models = new Set<string>()
  const broken = (brokenAt: number) => ({ walk: { ok: false as const, brokenAt }, models: [...models].sort() })
  for (;;) {
    const found = await db.execute({
      sql: JOURNAL_PAGE,
      args: [runId, count + 1, PAGE],
    })
    const rows = rowsOf<Pick<RowOf<typeof events>, 'seq' | 'hash' | 'body'> & { cut: number | null }>(found)
    for (const row of rows) {
      const seq = count + 1
      const body = opened(() => records.open(row.body, { record: runId, field: `event ${seq}` }))
      if (body === undefined) return broken(seq)
      head = linkHash(head, body, sha256)
      if (row.seq !== seq || row.hash !== head) return broken(seq)
      if (mayName(body, models)) for (const model of modelsOf([readEvent(body, head)])) models.add(model)
      if (body.includes(BLOB)) {
        const digest = blobOf(body)
        blobs ??= await blobsOf(db, records, sha256, runId)
        // By the rule of its agent the text is gone, and its digest in the chain is what is left.
        const isDropped = dropped && digest !== undefined && !blobs.has(digest)
        if (digest !== undefined && !isDropped && blobs.get(digest) !== digest) return broken(seq)
      }
      count = seq
    }
    if (rows.length < PAGE && (rows[0]?.cut ?? null) === null)
      return { walk: { ok: true, count, head }, models: [...models].sort() }
    await pageTurn()
  }
}

/** Undefined: it does not open, so it was changed. */
function opened<T>(open: () => T): T | undefined {
  try {
    return open()
  } catch (error) {
    if (error instanceof VaultError && error.problem === 'broken') return undefined
    throw error
  }
}

/** Without the quotation mark in front, of which a body is full: a search that stops at each takes two to four times as long. */
const MODEL = 'model":"'
const BLOB = '$blob":'

/**
 * Whether an event may name a model that is not known yet: most repeat one, and reading each would take most of the time. A name with a
 * quotation mark in it is cut short here and so never known.
 */
function mayName(body: string, models: ReadonlySet<string>): boolean {
  for (let at = body.indexOf(MODEL); at !== -1; at = body.indexOf(MODEL, at)) {
    at += MODEL.length
    if (!models.has(body.slice(at, body.indexOf('"', at)))) return true
  }
  return false
}

/** The digest of an output that stands beside the journal. */
function blobOf(body: string): string | undefined {
  const { output } = (readJson(body) as { payload: { output?: unknown } }).payload
  if (typeof output !== 'object' || output === null || !('$blob' in output)) return undefined
  const { $blob } = output as { $blob: { sha256?: unknown } }
  return typeof $blob?.sha256 === 'string' ? $blob.sha256 : undefined
}

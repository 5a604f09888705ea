import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { InStatement, InValue } from '@libsql/client/web'
import { auditSession } from '../../router/host/audit-session.ts'
import { routerSteps } from '../../router/schema/steps.ts'
import { checkpointDigest } from '../../router/traces/checkpoint.ts'
import { type Cell, type RowPart, rowColumns, rowOf } from '../../router/traces/trace-row.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { silentLog } from '../../shared/log/log.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import type { Checkpoint, RouterKeys, VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import { kindOfLine } from './router-proofs.ts'
import { commandReport, type Handed, reportSays } from './verifiers.ts'

type HandedExport = Extract<Handed, { text: Buffer }>
type Line = Record<string, unknown>

/**
 * Puts an export into the rows of a store, as a forger does who has its file: each line as it is into the body, and the columns beside
 * it as they follow from the line. Answers what both of the router's verifiers of stored records say, the command line and the tool
 * `verify_receipts`; `not storable` where no row can be as the forgery wants it.
 */
export async function inStore(folder: string, { text, keys }: HandedExport): Promise<string> {
  const path = join(folder, 'stored.db')
  for (const end of ['', '-wal', '-shm']) await rm(path + end, { force: true })
  const store = await openDb(path, { synchronous: 'normal' })
  try {
    await migrate(store, 'router', routerSteps)
    await store.write(statements(text, keys))
  } catch (error) {
    if (/constraint/i.test(String(error))) return 'not storable'
    throw error
  } finally {
    store.close()
  }
  const { report, passed } = await commandReport(folder, ['--db', path, '--strict'], keys)
  return `${report === undefined ? 'not readable' : reportSays(report, passed)}, ${await ofTool(path)}`
}

async function ofTool(address: string): Promise<string> {
  const reports: VerifyReport[] = []
  for (const tenant of ['a', 'b']) {
    const config = () => Promise.reject(new Error('no tool here asks for the config'))
    const session = await auditSession({ vars: {}, address, tenant, config, log: silentLog() })
    try {
      const { structuredContent, content } = await session.call('verify_receipts', {})
      if (structuredContent === undefined) return `refused: ${content[0]?.text}`
      reports.push(structuredContent as unknown as VerifyReport)
    } finally {
      await session.close()
    }
  }
  const first = reports.find(({ valid }) => !valid) ?? reports[0]!
  return reportSays(first, first.valid)
}

const TRACE = `insert into traces (${rowColumns.join(', ')}, body) values (${'?, '.repeat(rowColumns.length)}cast(? as text))`

function statements(text: Buffer, keys: RouterKeys): InStatement[] {
  const found: InStatement[] = []
  const counts = new Map<string, number>()
  let listed = keys
  for (const bytes of linesOf(text)) {
    const kind = kindOfLine(bytes.toString('latin1'))
    const line = parsed(bytes)
    const tenant = typeof line.tenant_id === 'string' ? line.tenant_id : 'a'
    const place = counts.get(kind + tenant) ?? 0
    counts.set(kind + tenant, place + 1)
    if (kind === 'keys')
      listed = Array.isArray(line.keys) && line.keys.length > 0 ? (line as unknown as RouterKeys) : keys
    if (kind === 'record') found.push({ sql: TRACE, args: [...cellsOf(line, tenant, place), bytes] })
    if (kind === 'feedback') {
      const { seq = place, feedback_id: id, trace_id: trace, gate_id: gate, reporter, verdict, ts, hash } = line
      const cells = [tenant, seq, id, trace, gate, reporter, verdict, Date.parse(String(ts)), hash]
      found.push({
        sql: 'insert into feedback values (?, ?, ?, ?, ?, ?, ?, ?, ?, cast(? as text))',
        args: [...(cells as InValue[]), bytes],
      })
    }
    if (kind === 'checkpoint') {
      found.push({
        sql: `insert into checkpoints (tenant_id, kind, seq, digest, body) values (?, ?, ?, ?, cast(? as text))`,
        args: [tenant, String(line.kind), Number(line.seq), digestOf(line), bytes],
      })
    }
  }
  for (const { key_id, public_key, created_at } of listed.keys) {
    found.push({ sql: 'insert into signing_keys values (?, ?, ?, null)', args: [key_id, public_key, created_at] })
  }
  return found
}

function* linesOf(text: Buffer): Generator<Buffer> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf(0x0a, at)
    const line = text.subarray(at, end < 0 ? text.length : end)
    if (line.length > 0) yield line
    at = end < 0 ? text.length : end + 1
  }
}

function parsed(bytes: Buffer): Line {
  try {
    return readJson(bytes.toString()) as Line
  } catch {
    return {}
  }
}

/** What has no canonical form has no digest. */
function digestOf(line: Line): string {
  try {
    return checkpointDigest(line as unknown as Checkpoint, nativeSha256)
  } catch {
    return ''
  }
}

/** Where a line fits no columns, it stands in those of the place that it has in the text. */
function cellsOf(line: Line, tenant: string, place: number): Cell[] {
  try {
    return rowOf(line as unknown as RowPart, typeof line.seq === 'number' ? line.seq : place)
  } catch {
    const none = [null, null, 0, null, null, 0, 0, null, null, null, null]
    return [tenant, place, String(line.trace_id ?? place), 0, '', '', null, '', 0, ...none]
  }
}

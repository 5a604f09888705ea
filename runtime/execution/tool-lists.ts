import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { toolLists } from '../schema/tables.ts'
import type { RecordAad, Records } from '../vault/records.ts'
import type { KeepTools, OfferedTool } from './harness/request-facts.ts'
import type { Claimed } from './lease-store.ts'

const place = (versionId: string, digest: string): RecordAad => ({ record: versionId, field: `tools ${digest}` })

/** Once for each version of an agent, however many runs it has, and only by the run's owner. */
export function keepToolList(records: Records, { id, epoch, versionId }: Claimed): KeepTools {
  return (digest, body) => ({
    sql: `insert into tool_lists (version_id, digest, body) select ?, ?, ?
      where exists (select 1 from runs where id = ? and epoch = ? and status = 'running') on conflict do nothing`,
    args: [versionId, digest, records.seal(body, place(versionId, digest)), id, epoch],
  })
}

/** The tools that a run of this version was offered; undefined: they are not kept any more. */
export async function readToolList(
  db: Pick<Db, 'execute'>,
  records: Records,
  versionId: string,
  digest: string,
): Promise<OfferedTool[] | undefined> {
  const found = await db.execute({
    sql: 'select body from tool_lists where version_id = ? and digest = ?',
    args: [versionId, digest],
  })
  const [row] = rowsOf<Pick<RowOf<typeof toolLists>, 'body'>>(found)
  return row && (readJson(records.open(row.body, place(versionId, digest))) as OfferedTool[])
}

import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import type { meta } from '../schema/tables.ts'
import type { RouteExperience, StoredExperience } from './learner.ts'

const PREFIX = 'learning/'
const put = insertRows(
  'router_meta',
  { key: 'text', value: 'text' },
  { after: 'on conflict (key) do update set value = excluded.value' },
)

/**
 * What was learned, a row for each route of a tenant, so that a restart does not begin anew. Several processes on one store learn for
 * themselves; the one that stored last is the one that a restart goes on from.
 */
export function learningStore(db: Db) {
  return {
    async all(): Promise<StoredExperience[]> {
      const answer = await db.execute(
        `select key, value from router_meta where key >= '${PREFIX}' and key < 'learning0'`,
      )
      return rowsOf<RowOf<typeof meta>>(answer).map(({ key, value }) => {
        const [, tenantId = '', routeFp = ''] = key.split('/')
        return { tenantId, routeFp, contexts: readJson(value) as RouteExperience }
      })
    },
    async put(learned: readonly StoredExperience[]): Promise<void> {
      if (learned.length === 0) return
      const rows = learned.map(({ tenantId, routeFp, contexts }) => ({
        key: `${PREFIX}${tenantId}/${routeFp}`,
        value: JSON.stringify(contexts),
      }))
      await db.execute(put.statement(rows))
    },
  }
}

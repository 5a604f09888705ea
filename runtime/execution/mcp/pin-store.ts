import { readJson } from '../../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import type { mcpPins } from '../../schema/tables.ts'
import type { McpDefinition } from './definition.ts'
import type { PinStore } from './deps.ts'

/** What each agent version was shown of each of its MCP servers, for as long as the version is there. */
export function pinStore(db: Db): PinStore {
  async function get(versionId: string, server: string) {
    const sql = 'select hash, definitions from mcp_pins where version_id = ? and server = ?'
    const found = await db.execute({ sql, args: [versionId, server] })
    const [row] = rowsOf<Pick<RowOf<typeof mcpPins>, 'hash' | 'definitions'>>(found)
    return row && { hash: row.hash, definitions: readJson(row.definitions) as McpDefinition[] }
  }
  return {
    get,
    async keep(versionId, server, pin) {
      await db.execute({
        sql: `insert into mcp_pins (version_id, server, hash, definitions) values (?, ?, ?, ?) on conflict do nothing`,
        args: [versionId, server, pin.hash, JSON.stringify(pin.definitions)],
      })
      return (await get(versionId, server)) ?? pin
    },
  }
}

import { Hono } from 'hono'
import { type ChangeFeed, changeFeed } from '../../shared/http/change-feed.ts'
import { sseResponse } from '../../shared/http/sse-write.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import type { RouterHttpEnv } from '../auth/access.ts'
import { storedTenants } from '../traces/stored-records.ts'

/** What a caller with the keys of all tenants follows. */
const ALL = ''
const HEARTBEAT_MS = 15_000

/** Says that traces were sealed: one look at the end of each chain that a page follows, however many pages there are. */
export function traceFeed(db: Db): ChangeFeed {
  async function mark(tenant: string): Promise<string> {
    const chains = tenant === ALL ? await storedTenants(db) : [tenant]
    const { rows } = await db.execute({ sql: ENDS_SQL, args: [JSON.stringify(chains)] })
    return rowsOf<{ seq: number | null }>({ rows })
      .map(({ seq }) => seq)
      .join(' ')
  }
  return changeFeed({
    marks: async tenants =>
      new Map(await Promise.all(tenants.map(async tenant => [tenant, await mark(tenant)] as const))),
  })
}

const ENDS_SQL = `select (select max(seq) from traces where tenant_id = one.value) as seq from json_each(?1) as one`

/** The tail of the traces for the panel: an event for each change, and the page asks for what is new. */
export function traceTail(feed: ChangeFeed | undefined) {
  return new Hono<RouterHttpEnv>().get('/-/traces/tail', c => {
    if (feed === undefined) return c.notFound()
    const tenant = c.get('caller').sees ?? ALL
    return sseResponse(gone => feed.follow(tenant, gone), { heartbeatMs: HEARTBEAT_MS })
  })
}

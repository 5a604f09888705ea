import { Hono } from 'hono'
import { type ChangeFeed, changeFeed } from '../../shared/http/change-feed.ts'
import { sseResponse } from '../../shared/http/sse-write.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import type { RouterHttpEnv } from '../auth/access.ts'
import { type StoredChain, storedChains } from '../traces/stored-records.ts'

/** What a caller with the keys of all tenants follows. */
const ALL = ''
const HEARTBEAT_MS = 15_000

/**
 * Says that traces were sealed: one look at the end of each chain that a page follows, however many pages there are. Pages that follow all
 * tenants look into `all` stores, where there are several.
 */
export function traceFeed(db: Db, all: () => readonly Db[] = () => [db]): ChangeFeed {
  async function mark(tenant: string): Promise<string> {
    const chains = tenant === ALL ? await storedChains(all()) : [{ db, tenant }]
    const ends = await Promise.all([...Map.groupBy(chains, one => one.db)].map(([store, own]) => endsOf(store, own)))
    return ends.join(' ')
  }
  return changeFeed({
    marks: async tenants =>
      new Map(await Promise.all(tenants.map(async tenant => [tenant, await mark(tenant)] as const))),
  })
}

async function endsOf(db: Db, chains: readonly StoredChain[]): Promise<string> {
  const tenants = JSON.stringify(chains.map(({ tenant }) => tenant))
  const found = await db.execute({ sql: ENDS_SQL, args: [tenants] })
  return rowsOf<{ seq: number | null }>(found)
    .map(({ seq }) => seq)
    .join(' ')
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

import type { Log } from '../../shared/log/log.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { type Clock, deletionTime } from '../../shared/time/clock.ts'
import type { RunStore } from '../runs/store.ts'
import type { SessionStore } from '../sessions/store.ts'

const DAY_MS = 86_400_000
const EVERY_MS = 60_000
const FOUND = 200
/** Each deletion is a commit of its own, so that runs which are under way come in between; each of those waits for so many at most. */
const AT_ONCE = 8
/** Longer than any setting: ended runs are kept. */
const FOREVER = 1_000_000

export interface RetentionDeps {
  db: Pick<Db, 'execute'>
  runs: Pick<RunStore, 'remove'>
  sessions: Pick<SessionStore, 'remove'>
  /** Of the deployment; 0: none. */
  days: number
  clock: Clock
  log: Log
}

const NEWEST = 'select created_ms from runs order by rowid desc limit 1'

/** Null where its manifest says nothing, or cannot be read. */
const retentionDays = (version: string) =>
  `iif(json_valid(${version}.manifest), json_extract(${version}.manifest, '$.privacy.retentionDays'), null)`

/**
 * The versions of agents with the fewest days that the deployment, the version and the agent's current one ask for. Joined in this order: what
 * is over is looked up for each version, while the planner alone would walk through everything that has ended.
 */
const LIMITED = `with limited as materialized (
  select v.id as version_id, min(?1,
    coalesce(${retentionDays('v')}, ${FOREVER}),
    coalesce(${retentionDays('c')}, ${FOREVER})) as days
  from agent_versions as v join agents as a on a.id = v.agent_id
    left join agent_versions as c on c.id = a.current_version_id)`

const RUNS = `${LIMITED} select r.id from limited as l
  cross join runs as r on r.version_id = l.version_id and r.finished_ms <= ?2 - l.days * ${DAY_MS}
  where l.days < ${FOREVER} limit ${FOUND}`

const SESSIONS = `${LIMITED} select s.id from limited as l
  cross join sessions as s on s.version_id = l.version_id and s.stopped_ms <= ?2 - l.days * ${DAY_MS}
  where l.days < ${FOREVER} limit ${FOUND}`

/** Tools that an agent version was offered, once no run of it is left. */
const UNUSED_TOOLS = `delete from tool_lists
  where not exists (select 1 from runs where version_id = tool_lists.version_id and finished_ms is not null)
    and not exists (select 1 from agent_versions as v join agents as a on a.id = v.agent_id
      join runs as r on r.tenant_id = a.tenant_id and r.agent_name = a.name and r.agent_id = a.id
        and r.status in ('queued', 'running', 'waiting')
      where v.id = tool_lists.version_id)`

/**
 * Deletes ended runs and stopped sessions when their days are over, as a client would: record, journal and texts go, here or on the
 * node that has them; receipts and usage stay, and a receipt goes on verifying, also against a journal that was exported before.
 */
export function retention({ db, runs, sessions, days, clock, log }: RetentionDeps) {
  let timer: ReturnType<typeof setInterval> | undefined
  let sweeping: Promise<void> | undefined
  let closed = false
  // A host without timers lives too short to see what becomes of a clock.
  let nowMs = async () => clock.now().getTime()

  async function due(sql: string): Promise<string[]> {
    const args = [days === 0 ? FOREVER : days, await nowMs()]
    return rowsOf<{ id: string }>(await db.execute({ sql, args })).map(({ id }) => id)
  }

  async function each(sql: string, remove: (id: string) => Promise<unknown>): Promise<number> {
    let removed = 0
    for (;;) {
      const ids = await due(sql)
      let moved = false
      for (let at = 0; at < ids.length; at += AT_ONCE) {
        if (closed) return removed
        const gone = await Promise.all(ids.slice(at, at + AT_ONCE).map(remove))
        removed += gone.filter(Boolean).length
        moved ||= gone.some(Boolean)
      }
      if (ids.length < FOUND || !moved) return removed
    }
  }

  async function sweep(): Promise<void> {
    const ended = await each(RUNS, id => runs.remove(id))
    if (ended > 0) await db.execute(UNUSED_TOOLS)
    const stopped = await each(SESSIONS, id => sessions.remove(id, clock.now().getTime()))
    if (ended + stopped > 0) log.info('deleted what was older than its retention', { runs: ended, sessions: stopped })
  }

  return {
    start(): void {
      const newestMs = async () => rowsOf<{ created_ms: number }>(await db.execute(NEWEST))[0]?.created_ms
      nowMs = deletionTime({ clock, newestMs, log })
      timer = setInterval(() => void this.once(), EVERY_MS)
    },
    /** Never two at a time. */
    once(): Promise<void> {
      sweeping ??= sweep()
        .catch((error: unknown) => log.error('runs could not be deleted after their retention', { error }))
        .finally(() => {
          sweeping = undefined
        })
      return sweeping
    },
    async close(): Promise<void> {
      closed = true
      clearInterval(timer)
      await sweeping
    },
  }
}

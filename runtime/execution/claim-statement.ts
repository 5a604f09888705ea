import type { InStatement } from '@libsql/client/web'

/** Who else has this store. */
export interface SharedStore {
  /** Other nodes take runs from here. */
  withNodes: boolean
  /**
   * By which clock leases end: that of a server, since the processes beside it may be on machines whose clocks differ. A file has the clock
   * of its machine, which is `now`.
   */
  byServer: boolean
}

/** A run stays with its node, unless others have the same store. */
export const holder = (shared: boolean, node = '?4') => (shared ? node : `coalesce(node_id, ${node})`)

/** Which runs an owner on this node may take. */
const takenBy = (shared: boolean, node = '?4') =>
  shared ? `${node} is not null` : `(node_id is null or node_id = ${node})`

/** The time by which leases begin and end. */
export const leaseNow = ({ byServer }: Pick<SharedStore, 'byServer'>, now = '?2'): string =>
  byServer ? "cast(unixepoch('subsec') * 1000 as integer)" : now

/** Recoveries in a row that brought a run not one event further; after so many it is set aside. */
const MOST_RECOVERIES = 3
/** What is said of a run that was set aside. */
export const POISONED = 'poisoned'
/** It waits for the rate limit of a provider, in the hands of its owner. */
export const RATE_LIMIT = 'rate_limit'
/** It stands where its last recovery found it. */
const STUCK = '(recovery_seq = (select coalesce(max(seq), 0) from events where run_id = runs.id))'

/** Runs whose last try ended as the ones before it. Nothing more is read of them: that may be what ends the process. Arguments: now, node. */
export function poisonedStatement(shared: SharedStore): string {
  return `select id from runs where ${poisoned(shared)}`
}

/** Sets those of them aside that are so still. Arguments: now, node, their ids. */
export function setAsideStatement(shared: SharedStore): string {
  return `update runs set status = 'waiting', parked = '${POISONED}', parked_until_ms = null, owner = null, epoch = epoch + 1,
  due_ms = null, updated_ms = ?1
where id in (select value from json_each(?3)) and ${poisoned(shared)}
returning id, agent_name`
}

/** Sets a run aside that is damaged. Arguments: now, its id, the epoch of its owner. */
export const SET_ASIDE_DAMAGED = `update runs set status = 'waiting', parked = '${POISONED}', parked_until_ms = null, owner = null,
  epoch = epoch + 1, due_ms = null, updated_ms = ?1
where id = ?2 and epoch = ?3 and status = 'running'`

/** Executed here, and would go on by itself. */
export const GOES_ON = `status in ('queued', 'running') and ending is null and id not in (select run_id from remote_runs)`

/** Sets all of those aside, in a store that was restored: what they did after the backup stands in no journal. Argument: now. */
export const SET_ASIDE_RESTORED = `update runs set status = 'waiting', parked = '${POISONED}', parked_until_ms = null, owner = null,
  epoch = epoch + 1, due_ms = null, updated_ms = ?1
where ${GOES_ON}`

const poisoned = (shared: SharedStore) =>
  `owner is not null and recoveries >= ${MOST_RECOVERIES} and due_ms <= ${leaseNow(shared, '?1')} and ending is null
  and ${takenBy(shared.withNodes, '?2')} and ${STUCK}`

/** Lets a run that was set aside be taken again, with as many tries as at first. */
export function resumption(runId: string, nowMs: number): InStatement {
  return {
    sql: `update runs set status = 'running', parked = null, recoveries = 0, due_ms = 0, updated_ms = ?
      where id = ? and parked = '${POISONED}' and status = 'waiting'`,
    args: [nowMs, runId],
  }
}

/** The part of its slots that one of several tenants never gets: what is left for the first run of another. */
const RESERVED = 1 / 8

/** How many slots one of several tenants may hold. */
export function maxSlotsPerTenant(slots: number): number {
  return Math.max(1, slots - Math.max(1, Math.floor(slots * RESERVED)))
}

/** So many of the oldest runs are looked at before all agents are. */
const OLDEST = '(?5 + 64)'
const ONE_TENANT =
  '(select min(tenant_id) from runs where due_ms is not null) = (select max(tenant_id) from runs where due_ms is not null)'

/** The columns that a claim returns. */
export const RETURNED = [
  'id',
  'tenant_id',
  'agent_name',
  'agent_id',
  'version_id',
  'epoch',
  'depth',
  'parent_run_id',
  'session_id',
  'only_step',
  'ran_ms',
  'recoveries',
  'ending',
  'created_ms',
  'isolation',
  'isolation_used',
  'node_id',
  'tokens_in',
  'tokens_out',
  'cost_nano',
  'event_count',
] as const

/** How far its journal goes stands beside them. */
export const RETURNING = `returning ${RETURNED.join(', ')},
  (select coalesce(max(seq), 0) from events where run_id = runs.id) as last_seq`

/**
 * Takes due runs: first those of the tenant with the fewest runs here, then those of its agent with the fewest, then the oldest.
 * Arguments: owner, now, length of a lease, node, how many at most, what this owner executes, how many slots one of several tenants may
 * hold, and how many there are.
 *
 * A run whose owner ended with it again and again has its last try by itself: the others that were under way each time are not to pay for
 * the one that did it. So there is one `suspect` at a time, until it has got a step further.
 *
 * `lanes` steps from one agent with open runs to the next, so that a long queue of one is not read to find another. It is left out where
 * the oldest runs are `enough`: they are all that is due, or there is one tenant and among them are as many agents without a run here as
 * there are places. The runs of all others are later than those.
 */
export function claimStatement(shared: SharedStore): string {
  // A run that was taken from an owner who never let go is a recovery. This owner lives: what it takes anew it lost by a fault of the store.
  return `update runs set ${claimedBy(shared)},
  recoveries = case when owner is null then 0
    when owner = ?1 then case when ${STUCK} then recoveries else 0 end
    when ${STUCK} then recoveries + 1 else 1 end,
  recovery_seq = case when owner is null then recovery_seq
    else (select coalesce(max(seq), 0) from events where run_id = runs.id) end
where id in (${candidates(shared)}
    select id from by_tenant where of_tenant <= case
        when (select count(*) from (select 1 from tenants limit 2)) > 1
          or (select min(tenant_id) from runs) <> (select max(tenant_id) from runs) then ?7 else ?8 end
      order by of_tenant, of_agent, due_ms, id limit ?5)
${RETURNING}`
}

const claimedBy = (shared: SharedStore) => `status = 'running', owner = ?1, epoch = epoch + 1,
  due_ms = ${leaseNow(shared)} + ?3, node_id = ${holder(shared.withNodes)},
  started_ms = coalesce(started_ms, ?2), updated_ms = ?2, parked = null, parked_until_ms = null`

/** Arguments: owner, now, -, node, -, what this owner executes. */
function isDue(shared: SharedStore): string {
  const now = leaseNow(shared)
  const due = shared.byServer
    ? `due_ms <= max(?2, ${now}) and due_ms <= case when owner is null then ?2 else ${now} end`
    : 'due_ms <= ?2'
  return `${due} and ${takenBy(shared.withNodes)}
      and (owner is not ?1 or id not in (select value from json_each(?6)))`
}

/**
 * Takes all that is due, where there is a place for each and none was left by another owner, and nothing otherwise: then turns have to be kept. A
 * server prepares each statement anew, which takes it a millisecond for the whole claim. Arguments: owner, now, length of a lease,
 * node, for how many there is a place, what this owner executes.
 */
export function claimAllStatement(shared: SharedStore): string {
  const due = `${isDue(shared)} and (ending is not null or parked is not '${POISONED}')`
  return `with due as materialized (select id, owner from runs where ${due} limit ?5 + 1)
update runs set ${claimedBy(shared)}, recoveries = 0
where id in (select id from due) and (select count(*) <= ?5 and max(owner) is null from due)
${RETURNING}`
}

/** What a claim chooses from; `lanes` are the agents that it steps through. */
export function candidates(shared: SharedStore): string {
  const now = leaseNow(shared)
  const taken = takenBy(shared.withNodes)
  const due = `${isDue(shared)}
      and (ending is not null or (parked is not '${POISONED}'
        and (owner is null or recoveries < ${MOST_RECOVERIES - 1} or not ${STUCK} or id = (select id from suspect))))`
  const inOrder = 'tenant_id, agent_id'
  return `with recursive
    held as materialized (select ${inOrder}, count(*) as runs from runs where owner = ?1 and id in (select value from json_each(?6)) group by ${inOrder}),
    suspect as materialized (select id from runs where owner is not null and recoveries = ${MOST_RECOVERIES - 1} and due_ms <= ${now}
        and ${taken} and ${STUCK}
        and not exists (select 1 from runs as here where here.owner = ?1 and here.due_ms > ${now} and here.recoveries = ${MOST_RECOVERIES}
          and here.recovery_seq = (select coalesce(max(seq), 0) from events where run_id = here.id))
      order by due_ms, id limit 1),
    oldest as materialized (select id, ${inOrder}, due_ms from runs where ${due} order by due_ms limit ${OLDEST}),
    enough as materialized (select (select count(*) from oldest) < ${OLDEST}
      or (${ONE_TENANT} and ?5 <= (select count(*) from (select distinct agent_id from oldest where agent_id not in (select agent_id from held))))
      as is_so),
    lanes (${inOrder}) as (
      select * from (select ${inOrder} from runs where due_ms is not null and tenant_id > '' and not (select is_so from enough)
        order by ${inOrder} limit 1)
      union all
      select next.tenant_id, next.agent_id from lanes join runs as next on next.rowid = coalesce(
        (select rowid from runs where due_ms is not null and tenant_id = lanes.tenant_id and agent_id > lanes.agent_id
          order by agent_id limit 1),
        (select rowid from runs where due_ms is not null and tenant_id > lanes.tenant_id order by ${inOrder} limit 1))),
    found as (
      select * from oldest where (select is_so from enough)
      union all
      select one.id, one.tenant_id, one.agent_id, one.due_ms from lanes join runs as one on one.rowid in (
        select rowid from runs where tenant_id = lanes.tenant_id and agent_id = lanes.agent_id and ${due} order by due_ms limit ?5)),
    by_agent as (
      select found.*, row_number() over (partition by ${inOrder} order by due_ms, id)
        + coalesce((select runs from held where tenant_id = found.tenant_id and agent_id = found.agent_id), 0) as of_agent from found),
    by_tenant as (
      select by_agent.*, row_number() over (partition by tenant_id order by of_agent, due_ms, id)
        + coalesce((select sum(runs) from held where tenant_id = by_agent.tenant_id), 0) as of_tenant from by_agent)`
}

import type { InStatement } from '@libsql/client/web'
import { type Db, objectIn, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import type { Labels } from '../../shared/wire/runtime/conventions.ts'
import { type Manifest, manifest as manifestSchema } from '../../shared/wire/runtime/manifest.ts'
import { own } from '../http/own-tenant.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import type { agents } from '../schema/tables.ts'
import type { AgentRow, VersionRow } from './agent.ts'
import { againAfterConflict } from './conflict.ts'
import {
  type Author,
  bound,
  hashOf,
  insertVersion,
  json,
  type ListedVersion,
  newVersion,
  type StoredVersion,
  toAgent,
  toVersion,
} from './rows.ts'
import type { OpenTexts, SealTexts } from './texts.ts'

/** What else ends with an agent, in the transaction that deletes it. */
export type Deleting = (agent: Pick<AgentRow, 'id' | 'tenantId' | 'name'>, nowMs: number) => InStatement[]

/** What a new agent has from the one that had its name before, in the transaction that makes it. */
export type Creating = (agent: Pick<AgentRow, 'id' | 'tenantId' | 'name'>) => InStatement

export interface AgentStoreDeps {
  now: () => Date
  newId: () => string
  creating?: Creating
  deleting?: readonly Deleting[]
  /** An agent is deleted: what ends with it may be due. */
  deleted?: () => void
  sealTexts?: SealTexts
  /** Of a node; a control plane leaves sealed texts as they are. */
  openTexts?: OpenTexts | undefined
}

export interface AgentChange {
  labels?: Labels | undefined
  description?: string | undefined
}

export interface Saving extends AgentChange {
  name: string
  /** Absent: a new agent gets the defaults, an existing one keeps what it has. */
  manifest?: Manifest | undefined
}

export interface Publishing {
  manifest: Manifest
  promote: boolean
  note?: string | undefined
}

export interface Saved {
  agent: AgentRow
  version: VersionRow
}

/** With the labels that its agent has now. */
export interface CurrentVersion extends VersionRow {
  agentLabels: Labels
}

/** What a new agent or version is made with. */
type SavingDeps = Required<Pick<AgentStoreDeps, 'now' | 'newId' | 'sealTexts'>> & Pick<AgentStoreDeps, 'creating'>

type StoredAgent = RowOf<typeof agents>

export type AgentStore = ReturnType<typeof agentStore>

const VERSION = `select v.*, agents.name as agent_name from agent_versions v join agents on agents.id = v.agent_id`

/** The versions of agents, of which the last ones that were read stay in memory. */
function versionReads(db: Db, openTexts?: OpenTexts) {
  const cache = versionCache()

  async function getVersion(versionId: string): Promise<VersionRow | undefined> {
    const cached = cache.get(versionId)
    if (cached !== undefined) return cached
    const found = await db.execute({ sql: `${VERSION} where v.id = ?`, args: [storableText(versionId)] })
    const rows = rowsOf<StoredVersion>(found)
    return rows[0] && keep(rows[0])
  }

  async function keep(row: StoredVersion): Promise<VersionRow> {
    const texts = row.box === null ? undefined : await openTexts?.(row.id, new Uint8Array(row.box))
    const version = readRow(`version ${row.id} of agent ${row.agent_name}`, row, () => {
      const manifest = { ...objectIn<Manifest>(row.manifest), ...texts }
      // Where the texts stay sealed they are left out here.
      if ((row.box === null || texts) && hashOf(manifest) !== row.manifest_hash)
        throw new Error('it is not what was published')
      return { ...toVersion(row), manifest, ...(texts && { sealed: undefined }) }
    })
    cache.put(version, row.manifest.length + (row.box?.byteLength ?? 0))
    return version
  }

  async function current(agent: AgentRow): Promise<VersionRow> {
    const version = await getVersion(agent.currentVersionId)
    if (version === undefined) throw new Error(`agent ${agent.id} has lost its version ${agent.currentVersionId}`)
    return version
  }

  async function newestEqual(agent: AgentRow, { manifest }: Publishing): Promise<VersionRow | undefined> {
    const found = await db.execute({
      sql: `${VERSION} where v.agent_id = ? and v.manifest_hash = ? order by v.number desc limit 1`,
      args: [agent.id, hashOf(manifest)],
    })
    const rows = rowsOf<StoredVersion>(found)
    return rows[0] && keep(rows[0])
  }

  return { getVersion, current, newestEqual }
}

export function agentStore(db: Db, options: AgentStoreDeps) {
  const { now, newId, deleting = [], deleted, sealTexts = async () => undefined } = options
  const deps = { now, newId, sealTexts, creating: options.creating }
  const { getVersion, current, newestEqual } = versionReads(db, options.openTexts)

  return {
    ...agentReads(db),

    getByName: (tenantId: string, name: string) => getByName(db, tenantId, name),

    /** By its id alone, of any tenant: for a run that names it. Versions of deleted agents stay readable. */
    getVersion,

    /** The agent that a name means now, with its current version. */
    async getCurrent(tenantId: string, name: string): Promise<Saved | undefined> {
      const agent = await getByName(db, tenantId, name)
      return agent && { agent, version: await current(agent) }
    },

    /** The version that a new run of this agent gets. */
    async currentByName(tenantId: string, name: string): Promise<CurrentVersion | undefined> {
      const agent = await getByName(db, tenantId, name)
      return agent && { ...(await current(agent)), agentLabels: agent.labels }
    },

    /** The same for a tenant that names it: one of another tenant is refused. */
    async findVersion(tenantId: string, versionId: string): Promise<VersionRow | undefined> {
      const version = await getVersion(versionId)
      return version && own({ tenantId }, version, 'agent version', versionId)
    },

    /** Creates the agent, or publishes when its manifest differs from the current one; the rest is updated when given. */
    save(tenantId: string, saving: Saving, by: Author): Promise<Saved> {
      return againAfterConflict(async () => {
        const agent = await getByName(db, tenantId, saving.name)
        if (agent === undefined) return createAgent(db, deps, saving, tenantId, by)
        const version = await current(agent)
        const { manifest } = saving
        if (manifest !== undefined && hashOf(manifest) !== version.manifestHash) {
          return publishVersion(db, deps, agent, { manifest, promote: true }, saving, by)
        }
        if (saving.labels === undefined && saving.description === undefined) return { agent, version }
        const changed = await changeAgent(db, agent, saving, null, bound(by, version.versionId))
        return changed ? { agent: changed, version } : createAgent(db, deps, saving, tenantId, by)
      })
    },

    /** Publishes a version, or answers the one that has an equal manifest. Undefined when there is no such agent. */
    publish(tenantId: string, name: string, publishing: Publishing, by: Author): Promise<Saved | undefined> {
      return againAfterConflict(async () => {
        const agent = await getByName(db, tenantId, name)
        if (agent === undefined) return undefined
        const now = await current(agent)
        const equal = now.manifestHash === hashOf(publishing.manifest) ? now : await newestEqual(agent, publishing)
        if (equal === undefined) return publishVersion(db, deps, agent, publishing, {}, by)
        if (!publishing.promote || equal === now) return { agent, version: equal }
        const promoted = await changeAgent(db, agent, {}, equal.versionId)
        return promoted && { agent: promoted, version: equal }
      })
    },

    update: (agent: AgentRow, changed: AgentChange) => changeAgent(db, agent, changed, null),

    promote: (agent: AgentRow, version: Pick<VersionRow, 'versionId'>) => changeAgent(db, agent, {}, version.versionId),

    /** Soft: the name is free at once, finished runs stay readable. False when it was gone. */
    async remove(agent: AgentRow): Promise<boolean> {
      const nowMs = now().getTime()
      const [done] = await db.write([
        { sql: 'update agents set deleted_ms = ? where id = ? and deleted_ms is null', args: [nowMs, agent.id] },
        ...deleting.flatMap(end => end(agent, nowMs)),
      ])
      deleted?.()
      return done?.rowsAffected === 1
    },
  }
}

async function createAgent(
  db: Db,
  deps: SavingDeps,
  { name, labels = {}, description, manifest }: Saving,
  tenantId: string,
  by: Author,
): Promise<Saved> {
  const createdMs = deps.now().getTime()
  const agent: AgentRow = {
    id: deps.newId(),
    tenantId,
    name,
    description,
    labels,
    currentVersionId: deps.newId(),
    createdMs,
  }
  const given = manifest ?? manifestSchema.parse({})
  const sealed = await deps.sealTexts(agent, agent.currentVersionId, given)
  const version = newVersion(agent, agent.currentVersionId, given, by, createdMs, sealed)
  await db.write([
    {
      sql: `insert into agents (id, tenant_id, name, description, labels, current_version_id, versions, created_ms)
values (?, ?, ?, ?, ?, ?, 1, ?)`,
      args: [agent.id, tenantId, name, json(description), json(labels), agent.currentVersionId, createdMs],
    },
    insertVersion(version, { sql: '1', args: [] }),
    ...(deps.creating ? [deps.creating(agent)] : []),
    ...bound(by, version.versionId),
  ])
  return { agent, version: { ...version, number: 1 } }
}

/** Fails, and is tried again, when someone else published or deleted since `agent` was read. */
async function publishVersion(
  db: Db,
  deps: SavingDeps,
  agent: AgentRow,
  publishing: Publishing,
  change: AgentChange,
  by: Author,
): Promise<Saved> {
  const [versionId, { manifest, note }] = [deps.newId(), publishing]
  const sealed = await deps.sealTexts({ ...agent, labels: change.labels ?? agent.labels }, versionId, manifest)
  const version = newVersion(agent, versionId, manifest, by, deps.now().getTime(), sealed, note)
  const nextNumber = {
    sql: '(select versions + 1 from agents where id = ? and current_version_id = ? and deleted_ms is null)',
    args: [agent.id, agent.currentVersionId],
  }
  const done = await db.write([
    insertVersion(version, nextNumber),
    {
      sql: `update agents set versions = versions + 1, current_version_id = coalesce(?, current_version_id),
labels = coalesce(?, labels), description = coalesce(?, description) where id = ? returning *`,
      args: [publishing.promote ? version.versionId : null, json(change.labels), json(change.description), agent.id],
    },
    ...bound(by, version.versionId),
  ])
  const row = rowsOf<StoredAgent>(done[1]!)[0]!
  return { agent: toAgent(row), version: { ...version, number: row.versions } }
}

async function getByName(db: Db, tenantId: string, name: string): Promise<AgentRow | undefined> {
  const found = await db.execute({
    sql: 'select * from agents where tenant_id = ? and name = ? and deleted_ms is null',
    args: [tenantId, storableText(name)],
  })
  const rows = rowsOf<StoredAgent>(found)
  return rows[0] && toAgent(rows[0])
}

/** Labels, description and the current version of one agent that is still there. */
async function changeAgent(
  db: Db,
  agent: AgentRow,
  { labels, description }: AgentChange,
  versionId: string | null,
  binding: InStatement[] = [],
): Promise<AgentRow | undefined> {
  const [done] = await db.write([
    {
      sql: `update agents set labels = coalesce(?, labels), description = coalesce(?, description),
current_version_id = coalesce(?, current_version_id) where id = ? and deleted_ms is null returning *`,
      args: [json(labels), json(description), versionId, agent.id],
    },
    ...binding,
  ])
  const row = done && rowsOf<StoredAgent>(done)[0]
  return row && toAgent(row)
}

/** Agents as they are listed. */
function agentReads(db: Db) {
  return {
    /** The names of these that are agents. */
    async known(tenantId: string, names: readonly string[]): Promise<Set<string>> {
      if (names.length === 0) return new Set()
      const found = await db.execute({
        sql: `select name from agents where tenant_id = ? and deleted_ms is null
and name in (select value from json_each(?))`,
        args: [tenantId, JSON.stringify(names)],
      })
      const rows = rowsOf<Pick<StoredAgent, 'name'>>(found)
      return new Set(rows.map(({ name }) => name))
    },

    async list(tenantId: string, page: PageOf, label?: { key: string; value: string }): Promise<AgentRow[]> {
      const { where, order, args } = pageSql(page)
      const labelled = label
        ? "and exists (select 1 from json_each(iif(json_valid(labels), labels, '{}')) where key = ? and value = ?)"
        : ''
      const found = await db.execute({
        sql: `select * from agents where tenant_id = ? and deleted_ms is null ${labelled} ${where} ${order}`,
        args: [tenantId, ...(label ? [storableText(label.key), storableText(label.value)] : []), ...args],
      })
      return readPage(page, rowsOf<StoredAgent>(found), toAgent)
    },

    /** The versions of an agent without their manifests. */
    async versions(agent: AgentRow, page: PageOf): Promise<Omit<VersionRow, 'manifest'>[]> {
      const { where, order, args } = pageSql(page)
      const found = await db.execute({
        sql: `select id, tenant_id, agent_id, number, manifest_hash, note, created_ms, created_by, ? as agent_name
from agent_versions where agent_id = ? ${where} ${order}`,
        args: [agent.name, agent.id, ...args],
      })
      return readPage(page, rowsOf<ListedVersion>(found), toVersion)
    },
  }
}

/** Published versions never change, so a cached one is never stale. Bounded by the text it holds; the least used goes first. */
export function versionCache(mostCharacters = 16 * 1024 * 1024) {
  const held = new Map<string, { version: VersionRow; weight: number }>()
  let total = 0

  function drop(id: string): void {
    total -= held.get(id)?.weight ?? 0
    held.delete(id)
  }

  return {
    get(id: string): VersionRow | undefined {
      const found = held.get(id)
      if (found === undefined) return undefined
      held.delete(id)
      held.set(id, found)
      return found.version
    },
    put(version: VersionRow, weight: number): void {
      drop(version.versionId)
      if (weight > mostCharacters) return
      held.set(version.versionId, { version, weight })
      total += weight
      for (const id of held.keys()) {
        if (total <= mostCharacters) break
        drop(id)
      }
    },
  }
}

import type { InStatement } from '@libsql/client/web'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import { objectIn, type RowOf, readRow, textIn } from '../../shared/sql/db.ts'
import type { Labels } from '../../shared/wire/runtime/conventions.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { canonicalBody, type Idempotency } from '../http/idempotent.ts'
import type { agents, agentVersions } from '../schema/tables.ts'
import type { AgentRow, VersionRow } from './agent.ts'
import { type SealedTexts, withoutTexts } from './texts.ts'

/** Who writes, and the idempotency key under which. What is bound is the id of the version. */
export interface Author {
  createdBy: string
  idempotency: Idempotency
}

export function hashOf(manifest: Manifest): string {
  return sha256Hex(canonicalBody(manifest))
}

export function newVersion(
  agent: AgentRow,
  versionId: string,
  manifest: Manifest,
  { createdBy }: Author,
  createdMs: number,
  sealed: SealedTexts | undefined,
  note?: string,
): Omit<VersionRow, 'number'> {
  const { tenantId, id: agentId, name: agentName } = agent
  return {
    versionId,
    tenantId,
    agentId,
    agentName,
    manifest,
    sealed,
    manifestHash: hashOf(manifest),
    note,
    createdMs,
    createdBy,
  }
}

export function insertVersion(
  version: Omit<VersionRow, 'number'>,
  number: { sql: string; args: string[] },
): InStatement {
  const { versionId, tenantId, agentId, manifest, sealed, manifestHash, note, createdMs, createdBy } = version
  return {
    sql: `insert into agent_versions
(id, tenant_id, agent_id, number, manifest, manifest_hash, note, created_ms, created_by, box, box_pool)
values (?, ?, ?, ${number.sql}, ?, ?, ?, ?, ?, ?, ?)`,
    args: [
      versionId,
      tenantId,
      agentId,
      ...number.args,
      canonicalBody(sealed ? withoutTexts(manifest) : manifest),
      manifestHash,
      json(note),
      createdMs,
      createdBy,
      sealed?.box ?? null,
      sealed?.pool ?? null,
    ],
  }
}

export function bound({ idempotency }: Author, versionId: string): InStatement[] {
  return idempotency.bind(versionId)
}

/** Free text as JSON text, which any column can hold; nothing stays null. */
export function json(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value)
}

/** With the name of its agent. */
export type StoredVersion = RowOf<typeof agentVersions> & { agent_name: string }
/** Lists are read without what may be long. */
export type ListedVersion = Omit<StoredVersion, 'manifest' | 'box' | 'box_pool'>

export function toAgent(row: RowOf<typeof agents>): AgentRow {
  return readRow(`agent ${row.name}`, row, () => ({
    id: row.id,
    tenantId: row.tenant_id,
    name: row.name,
    description: row.description === null ? undefined : textIn(row.description),
    labels: objectIn<Labels>(row.labels),
    currentVersionId: row.current_version_id,
    createdMs: row.created_ms,
  }))
}

export function toVersion(row: ListedVersion | StoredVersion): Omit<VersionRow, 'manifest'> {
  return readRow(`version ${row.id} of an agent`, row, () => ({
    versionId: row.id,
    tenantId: row.tenant_id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    number: row.number,
    sealed: 'box' in row && row.box ? { box: new Uint8Array(row.box), pool: row.box_pool! } : undefined,
    manifestHash: row.manifest_hash,
    note: row.note === null ? undefined : textIn(row.note),
    createdMs: row.created_ms,
    createdBy: row.created_by,
  }))
}

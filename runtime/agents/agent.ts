import type { AgentItem, AgentVersion } from '../../shared/wire/runtime/agent.ts'
import type { Labels } from '../../shared/wire/runtime/conventions.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { SealedTexts } from './texts.ts'

export interface AgentRow {
  id: string
  tenantId: string
  name: string
  description: string | undefined
  labels: Labels
  currentVersionId: string
  createdMs: number
}

/** A version as it was published; it never changes, and neither does the name of its agent. */
export interface VersionRow {
  versionId: string
  tenantId: string
  agentId: string
  agentName: string
  number: number
  /** Normalised: every default written out. */
  manifest: Manifest
  /** Where only a pool can read its prompt and files, which the manifest here is then without. */
  sealed: SealedTexts | undefined
  manifestHash: string
  note: string | undefined
  createdMs: number
  createdBy: string
}

export function toAgentItem(agent: AgentRow): AgentItem {
  const { id, tenantId, name, description, currentVersionId, labels, createdMs } = agent
  return {
    id,
    tenantId,
    name,
    ...(description !== undefined && { description }),
    status: 'active',
    currentVersionId,
    labels,
    createdAt: new Date(createdMs).toISOString(),
  }
}

export function toAgentVersion(version: Omit<VersionRow, 'manifest'>, currentVersionId: string): AgentVersion {
  const { versionId: id, number, manifestHash, note, createdMs, createdBy } = version
  return {
    id,
    number,
    manifestHash,
    createdAt: new Date(createdMs).toISOString(),
    createdBy,
    current: id === currentVersionId,
    ...(note !== undefined && { note }),
  }
}

import { z } from 'zod'
import { type Alias, withAliases } from '../aliases.ts'
import { count, text } from '../bounds.ts'
import { acceptsRecord } from '../read-only.ts'
import { named } from '../schema-names.ts'
import { agentName, hex64, id, labels, timestamp } from './conventions.ts'
import { manifest } from './manifest.ts'

const description = text(0, 4096)

export const agentItem = named(
  'AgentItem',
  z.object({
    id,
    tenantId: z.string(),
    name: agentName,
    description: z.string().optional(),
    status: z.string(),
    currentVersionId: id,
    labels,
    createdAt: timestamp,
  }),
)
export type AgentItem = z.infer<typeof agentItem>

export const agent = named('Agent', agentItem.extend({ manifest }))
export type Agent = z.infer<typeof agent>

export const agentVersion = named(
  'AgentVersion',
  z.object({
    id,
    number: z.int().min(1),
    manifestHash: hex64,
    createdAt: timestamp,
    createdBy: z.string(),
    current: z.boolean(),
    note: z.string().optional(),
  }),
)
export type AgentVersion = z.infer<typeof agentVersion>

export const agentVersionWithManifest = named(
  'AgentVersionWithManifest',
  agentVersion.extend({ agentId: id, manifest }),
)
export type AgentVersionWithManifest = z.infer<typeof agentVersionWithManifest>

export const agentVersionPublished = named(
  'AgentVersionPublished',
  agentVersionWithManifest.extend({ warnings: z.array(z.string()) }),
)

export const agentCreated = named('AgentCreated', agentItem.extend({ version: count, warnings: z.array(z.string()) }))
export type AgentCreated = z.infer<typeof agentCreated>

const createFields = named(
  'AgentCreate',
  z.strictObject({
    name: agentName,
    /** Absent: a new agent gets the defaults, an existing one keeps its manifest. */
    manifest: manifest.optional(),
    labels: labels.optional(),
    description: description.optional(),
  }),
)

export const agentAliases: readonly Alias[] = [{ from: 'systemPrompt', to: 'manifest.systemPrompt' }]

export const agentCreate = acceptsRecord(withAliases(createFields, agentAliases), createFields.shape, agent)
export type AgentCreate = z.input<typeof createFields>

const patchFields = named(
  'AgentPatch',
  z.strictObject({ labels: labels.optional(), description: description.optional() }),
)
export const agentPatch = acceptsRecord(patchFields, patchFields.shape, agent)
export type AgentPatch = z.infer<typeof agentPatch>

export const versionCreate = named(
  'AgentVersionCreate',
  z.strictObject({ manifest, promote: z.boolean().default(true), note: text(0, 1000).optional() }),
)

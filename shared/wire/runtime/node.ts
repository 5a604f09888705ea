import { z } from 'zod'
import { flag, query } from '../aliases.ts'
import { count, displayName, shape } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { connectorInstall } from './connector.ts'
import { id, labels, timestamp } from './conventions.ts'
import { backend } from './isolation.ts'
import { providerSave, secretBinding, secretBindingChange, secretParams, secretValue } from './provider.ts'

const poolName = shape(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "a pool name of letters, digits, '.', '_' or '-'")

export const ENROL_TOKEN = /^wb_node_[A-Za-z0-9_-]{43}$/

export const nodeBackend = z.object({
  backend,
  rank: count,
  ok: z.boolean(),
  verifiedAt: timestamp.optional(),
  detail: z.string(),
  accel: z.string().optional(),
})
export type NodeBackend = z.infer<typeof nodeBackend>

/** A node that has not enrolled yet has said nothing about its machine, so those members are absent until then. */
export const node = named(
  'Node',
  z.object({
    id,
    name: z.string(),
    pool: z.string(),
    status: z.enum(['pending', 'online', 'draining', 'lost', 'offline']),
    version: z.string().optional(),
    os: z.string().optional(),
    arch: z.string().optional(),
    labels,
    vcpus: z.number().optional(),
    memoryMb: count.optional(),
    activeRuns: count,
    lastSeenAt: timestamp.optional(),
    capabilities: z.object({ isolation: z.array(nodeBackend) }),
  }),
)
export type Node = z.infer<typeof node>

export const nodeCreate = named(
  'NodeCreate',
  z.strictObject({ name: displayName(128), pool: poolName.default('default'), labels: labels.optional() }),
)
export type NodeCreate = z.input<typeof nodeCreate>

export const nodeCreated = named(
  'NodeCreated',
  node.extend({
    /** Shown once; one hour, one use. */
    enrolToken: z.string(),
    command: z.string(),
  }),
)
export type NodeCreated = z.infer<typeof nodeCreated>

export const nodeDeleteQuery = query({ force: flag.optional() })

export const poolParams = z.object({ pool: poolName })

const poolSecret = named(
  'PoolSecret',
  z.strictObject({ ...secretParams.shape, value: secretValue, ...secretBindingChange }),
)

/** One thing that the nodes of a pool are to have, and no other node. */
export const poolCredentialPut = named(
  'PoolCredentialPut',
  z.union(
    [
      z.strictObject({ secret: poolSecret }),
      z.strictObject({ provider: providerSave }),
      z.strictObject({ connector: connectorInstall }),
    ],
    { error: 'expected one of secret, provider and connector, with what belongs to it' },
  ),
)
export type PoolCredentialPut = z.infer<typeof poolCredentialPut>

/** What the nodes of a pool were given, without what it says; a node without a time has it still on its way. */
export const poolCredential = named(
  'PoolCredential',
  z.object({
    /** `secret/<name>`, `provider/<id>` or `connector/<id>`. */
    ref: z.string(),
    updatedAt: timestamp,
    /** Of a secret: where it may go and what may open it. */
    ...secretBinding.shape,
    nodes: z.array(z.object({ nodeId: id, at: timestamp.optional(), error: z.string().optional() })),
  }),
)
export type PoolCredential = z.infer<typeof poolCredential>

export const poolCredentialQuery = query({
  ref: shape(/^(?:secret|provider|connector)\/[\x21-\x7e]{1,200}$/, 'a ref such as secret/name or provider/openai'),
})

export const platformNodes = named(
  'PlatformNodes',
  z.object({ endpoint: z.string(), tlsFingerprint: z.string().nullable(), proto: z.literal(1) }),
)
export type PlatformNodes = z.infer<typeof platformNodes>

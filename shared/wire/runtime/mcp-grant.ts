import { z } from 'zod'
import { expected, shape, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { id, timestamp } from './conventions.ts'

const printable = shape(/^[\x21-\x7e]{1,1024}$/, 'printable ASCII characters without spaces')

export const mcpGrantStart = named(
  'McpGrantStart',
  z.strictObject({
    /** The server's address, as manifests have it. */
    url: z.url({ protocol: /^https?$/, error: expected('an http or https URL') }).max(2048),
    /** Default: what the server asks for. */
    scope: shape(/^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'scopes with a space between')
      .max(2048)
      .optional(),
    /** What this installation is called there; needed where clients cannot register by themselves. */
    clientId: printable.optional(),
    clientSecret: printable.optional(),
    redirectAfter: text(1, 2048).optional(),
  }),
)
export type McpGrantStart = z.output<typeof mcpGrantStart>

export const mcpGrant = named(
  'McpGrant',
  z.object({
    id,
    /** The server that its tokens go to, and no other. */
    url: z.string(),
    issuer: z.string(),
    scope: z.string().optional(),
    status: z.enum(['granted', 'expired']),
    expiresAt: timestamp.optional(),
    createdAt: timestamp,
    updatedAt: timestamp,
  }),
)
export type McpGrant = z.infer<typeof mcpGrant>

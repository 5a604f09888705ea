import { z } from 'zod'
import { named } from '../schema-names.ts'

export const healthz = named('Health', z.object({ status: z.literal('ok'), version: z.string() }))

/** Each check is `ok` or says what is wrong; a part that this instance does not have is absent. */
export const readyz = named(
  'Readiness',
  z.object({
    status: z.enum(['ready', 'starting', 'draining', 'failing']),
    checks: z
      .object({ database: z.string(), migrations: z.string(), masterKey: z.string(), sweep: z.string() })
      .partial(),
  }),
)
export type Readyz = z.infer<typeof readyz>

import { z } from 'zod'
import { named } from '../schema-names.ts'

export const routerHealth = named(
  'RouterHealth',
  z.object({ status: z.enum(['ok', 'starting', 'draining']), service: z.literal('router'), version: z.string() }),
)
export type RouterHealth = z.infer<typeof routerHealth>

/** Each check is `ok` or says what is wrong; a part that this instance does not have (no store, no spill) is absent. */
export const routerReadiness = named(
  'RouterReadiness',
  z.object({
    status: z.enum(['ready', 'not_ready']),
    checks: z.object({ config: z.string(), store: z.string(), writer: z.string(), spill: z.string() }).partial(),
  }),
)
export type RouterReadiness = z.infer<typeof routerReadiness>

export const reloadResult = named(
  'ReloadResult',
  z.object({ config_hash: z.string(), changed: z.boolean(), restart_required: z.array(z.string()) }),
)
export type ReloadResult = z.infer<typeof reloadResult>

import { z } from 'zod'
import { count } from '../bounds.ts'
import { named } from '../named.ts'

export const calibrationMethods = ['aci', 'eprocess', 'fixed', 'off'] as const
export const calibrationMethod = z.enum(calibrationMethods)

/** Where one route's serve threshold stands. */
export const calibrationState = named(
  'CalibrationState',
  z.object({
    tenant_id: z.string(),
    route_ix: count,
    state: z.enum(['certified', 'not_certified', 'off']),
    method: calibrationMethod,
    threshold: z.number().nullable(),
    n: count,
    alpha: z.number(),
    delta: z.number(),
  }),
)
export type CalibrationState = z.infer<typeof calibrationState>

import { z } from 'zod'
import { count } from '../bounds.ts'
import { named } from '../schema-names.ts'

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
    /** Scored answers with an outcome. */
    n: count,
    alpha: z.number(),
    delta: z.number(),
    /** Served answers with an outcome, scored or not, best attempts included, and the failures of them. */
    reported: count,
    failed: count,
    /** Outcomes that count for a certificate: those of answers that are `feedback_delay_s` old. */
    counted: count,
    /** How long after an answer its failure may still be reported. */
    feedback_delay_s: count,
    /** Sessions that were reported on since the evidence for a certificate began; each is as much of it as one outcome. */
    sessions: count,
    /** The fewest outcomes that can certify a route, if none of them is a failure and each is of another session. */
    fewest: count,
    /** What `certified` says of this route, in words. */
    claim: z.string(),
    /** Whether any gate of the route gives scores between 0 and 1, which alone a threshold can tell apart. */
    threshold_acts: z.boolean(),
    note: z.string().optional(),
  }),
)
export type CalibrationState = z.infer<typeof calibrationState>

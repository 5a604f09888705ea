import { z } from 'zod'
import { freeForm } from '../bounds.ts'
import { named } from '../schema-names.ts'

export const explanation = named(
  'Explanation',
  z.object({
    trace_id: z.string(),
    summary: z.string(),
    steps: z.array(z.object({ step: z.string(), decision: z.string(), because: z.string(), numbers: freeForm })),
  }),
)
export type Explanation = z.infer<typeof explanation>

import { z } from 'zod'
import { count, freeForm } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { calibrationState } from './calibration.ts'
import { inboundApis, mode, profile, providerDialects } from './conventions.ts'
import { outcomes, verdicts } from './feedback.ts'

/** A profile with its resolved knobs (docs/spec/router.md §6.7). */
export const routingMode = z.object({ name: profile, knobs: freeForm })

/** docs/spec/router.md §2.5. No secrets, no full URLs, only the caller's tenant. */
export const capabilities = named(
  'Capabilities',
  z.object({
    service: z.literal('router'),
    version: z.string(),
    config_version: z.int(),
    config_hash: z.string(),
    config_path_set: z.boolean(),
    price_table: z.object({ hash: z.string(), date: z.string(), overrides: count }),
    /** Name and version of what is known of the settings that models take. */
    model_table: z.string(),
    mode,
    modes: z.array(mode),
    routing_modes: z.array(routingMode),
    apis: z.array(z.enum(inboundApis)),
    providers: z.array(
      z.object({
        id: z.string(),
        dialect: z.enum(providerDialects),
        /** It takes the Responses API as well. */
        responses: z.boolean(),
        auth: z.enum(['passthrough', 'env', 'none', 'sigv4', 'oauth', 'entra']),
        base_host: z.string(),
        credential: z.enum(['passthrough', 'env', 'signed', 'none', 'missing']),
        breaker: z.enum(['closed', 'open', 'half_open']),
      }),
    ),
    gates: z.array(
      z.object({
        id: z.string(),
        kind: z.string(),
        on_abstain: z.enum(['fail-open', 'fail-closed']),
        timeout_ms: count,
        state: z.enum(['active', 'disabled']),
      }),
    ),
    routes: z.array(
      z.object({
        ix: count,
        match: freeForm,
        mode,
        profile,
        ladder: z.array(z.object({ model: z.string(), price: freeForm.nullable() })),
        gates: z.array(z.string()),
        budget: freeForm.nullable(),
      }),
    ),
    calibration: z.array(calibrationState),
    feedback: z.object({
      path: z.string(),
      outcomes: z.array(z.enum(outcomes)),
      verdicts: z.array(z.enum(verdicts)),
    }),
    receipts: z.object({
      durability: z.enum(['best_effort', 'durable']),
      key_id: z.string().nullable(),
      checkpoint_every: count,
      checkpoint_seconds: z.number(),
    }),
    limits: z.record(z.string(), z.number()),
    auth: z.object({ required: z.boolean(), header: z.literal('x-router-key') }),
    /** How to leave: one sentence. */
    offboarding: z.string(),
  }),
)
export type Capabilities = z.infer<typeof capabilities>

import { z } from 'zod'
import { logFilter } from '../shared/env/log-filter.ts'
import { bindSchema } from '../shared/http/bind.ts'

const flag = z.enum(['0', '1'], { error: 'expected 0 or 1' }).transform(value => value === '1')

/** What the router process reads from its environment. */
export const routerEnv = z.object({
  ROUTER_BIND: bindSchema.default({ host: '127.0.0.1', port: 8080 }),
  ROUTER_DB: z.string().default('router.db'),
  ROUTER_DB_TOKEN: z.string().optional(),
  ROUTER_METRICS_OPEN: flag.default(false),
  ROUTER_DRAIN_SECONDS: z
    .string()
    .regex(/^\d{1,4}$/, 'expected a number of seconds from 0 to 9999')
    .transform(Number)
    .default(30),
  ROUTER_LOG: logFilter.optional(),
  RUST_LOG: logFilter.default({ all: 'info', byTarget: new Map() }),
})

export type RouterEnv = z.output<typeof routerEnv>

import { z } from 'zod'
import { logFilter } from '../shared/env/log-filter.ts'
import { bindSchema } from '../shared/http/bind.ts'
import { parseDuration } from '../shared/time/duration.ts'

const duration = z.string().transform((text, ctx) => {
  const ms = parseDuration(text)
  if (ms !== undefined) return ms
  ctx.addIssue({ code: 'custom', message: 'expected a duration such as 30s, 500ms, 5m or 24h' })
  return z.NEVER
})

const bytes = z
  .string()
  .regex(/^\d+$/, 'expected a number of bytes')
  .transform(Number)
  .refine(size => size >= 1024 && size <= 1024 ** 3, 'expected 1024 to 1073741824 bytes')

/** What the runtime process reads from its environment. */
export const runtimeEnv = z.object({
  PLATFORM_BIND: bindSchema.default({ host: 'localhost', port: 8080 }),
  PLATFORM_DATABASE_URL: z.string().optional(),
  PLATFORM_DATABASE_TOKEN: z.string().optional(),
  PLATFORM_DATA_DIR: z.string().default('./data'),
  PLATFORM_DRAIN_TIMEOUT: duration.default(30_000),
  PLATFORM_MAX_BODY_BYTES: bytes.default(1_048_576),
  PLATFORM_METRICS_TOKEN: z.string().min(16, 'expected at least 16 characters').optional(),
  PLATFORM_LOG_LEVEL: logFilter.default({ all: 'info', byTarget: new Map() }),
})

export type RuntimeEnv = z.output<typeof runtimeEnv>

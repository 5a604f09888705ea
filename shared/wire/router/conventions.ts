import { z } from 'zod'
import { fromText } from '../aliases.ts'
import { dayOrMoment, int, shape, text } from '../bounds.ts'

export const hex64 = shape(/^[0-9a-f]{64}$/, '64 lower-case hexadecimal digits')

export const traceId = shape(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  'a lower-case UUID of version 7',
)

export const tenantId = shape(/^[A-Za-z0-9._-]{1,64}$/, "1 to 64 letters, digits, '.', '_' or '-'")

/** RFC 3339 with exactly 3 decimals and `Z`. */
export const timestamp = shape(
  /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/,
  'a timestamp such as 2026-01-02T03:04:05.678Z',
).refine(value => !Number.isNaN(Date.parse(value)), { error: 'this day or time does not exist' })

/** Strings of a sealed record (docs/spec/router.md §1.2). */
export const sealed = text(0, 512)

export const modes = ['observe', 'enforce'] as const
export const mode = z.enum(modes)
export type Mode = z.infer<typeof mode>

export const profiles = ['cost', 'balanced', 'quality', 'latency', 'max'] as const
export const profile = z.enum(profiles)
export type Profile = z.infer<typeof profile>

/** What a provider is configured to speak; one that speaks chat may take the Responses API as well. */
export const providerDialects = ['messages', 'chat'] as const
export type ProviderDialect = (typeof providerDialects)[number]

export const inboundApis = [...providerDialects, 'responses'] as const
export type InboundApi = (typeof inboundApis)[number]

export const window = { since: dayOrMoment.optional(), until: dayOrMoment.optional() }

export const traceLimit = fromText(int(1, 500).default(50))

import { z } from 'zod'
import { type Alias, fromText, query } from '../aliases.ts'
import { expected, int, plainText, shape, text } from '../bounds.ts'

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
export const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/
export const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/

/** We make version 7; any version is read, because journals from elsewhere must still verify. */
export const id = shape(UUID, 'a lower-case UUID')

/** ISO 8601 UTC with milliseconds, as every answer writes it. */
export const timestamp = shape(TIMESTAMP, 'a timestamp such as 2026-01-02T03:04:05.678Z').refine(
  value => !Number.isNaN(Date.parse(value)),
  { error: 'this day or time does not exist' },
)

/** A moment in a request: any ISO 8601 date-time that carries its zone. */
export const moment = z.iso.datetime({
  offset: true,
  error: expected('an ISO 8601 time with a zone such as 2026-01-02T03:04:05Z'),
})

export const hex64 = shape(/^[0-9a-f]{64}$/, '64 lower-case hexadecimal digits')

/** The most that a safe integer of nano-USD can hold. */
export const MAX_USD = 9_000_000

/** An answer's US dollars: nano-USD as a number, so at most 9 decimals. */
export const usd = z.number().min(0)

/** US dollars in a request; a tenth decimal could not be stored. */
export const usdLimit = z
  .number({ error: expected(`US dollars from 0 to ${MAX_USD} with at most 9 decimals`) })
  .min(0)
  .max(MAX_USD)
  .refine(value => Math.abs(value * 1e9 - Math.round(value * 1e9)) < 1e-3 || value * 1e9 > 2 ** 43, {
    error: 'expected at most 9 decimals',
  })

export const agentName = shape(
  AGENT_NAME,
  "a name of 1 to 128 letters, digits, '.', '_' or '-' that starts with a letter or digit",
)

export const labels = z
  .record(plainText(1, 128), plainText(0, 256), { error: expected('an object of text values') })
  .refine(map => Object.keys(map).length <= 64, { error: 'expected at most 64 labels' })
/** One label of a list's filter. */
export const labelFilter = shape(/^[^:]{1,128}:.{0,256}$/s, 'key:value')

/** The two parts of one; a name may hold no colon, a value may. */
export function readLabel(label: string): { key: string; value: string } {
  const colon = label.indexOf(':')
  return { key: label.slice(0, colon), value: label.slice(colon + 1) }
}

export type Labels = z.infer<typeof labels>

export const LIMIT = { min: 1, max: 200, default: 50 } as const

/** `limit` and `cursor` of every list; spread into a list's own filters. */
export const page = {
  limit: fromText(int(LIMIT.min, LIMIT.max).default(LIMIT.default)),
  cursor: text(1, 1024).optional(),
}

export const pageAliases: readonly Alias[] = [
  { from: 'pageSize', to: 'limit' },
  { from: 'pageToken', to: 'cursor' },
]
/** The query of a list that has no filters of its own. */
export const pageQuery = query(page, pageAliases)

export const listAliases: readonly Alias[] = [...pageAliases, { from: 'agent', to: 'agentName' }]
export const agentNameAlias: Alias = { from: 'agent_name', to: 'agentName' }

/** A filter value: an unknown name or id gives an empty list, so its form is not checked. */
export const filter = text(1, 256).optional()

/** An id in a path: an ill-formed one is simply unknown (404), not a validation error. */
const pathText = z.string()
export const idParams = z.object({ id: pathText })
export const nameParams = z.object({ name: pathText })

/** The body of a POST that takes none; `{}` and no body at all are the same. */
export const emptyBody = z.strictObject({}).prefault({})

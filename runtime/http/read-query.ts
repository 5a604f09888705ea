import type { Context } from 'hono'
import type { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import { check, sentence } from '../../shared/wire/issues.ts'

/** Checks the query of a list; the answer names each parameter that does not fit. */
export function readQuery<T extends z.ZodType>(c: Context, schema: T): z.output<T> {
  const checked = check(schema, c.req.query())
  if (checked.ok) return checked.value
  throw new ApiError('validation_failed', sentence(checked.details), { details: checked.details })
}

import { ApiError } from '../../shared/http/api-error.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { schemaProblem } from '../json-schema/schema-check.ts'

/** Refuses a manifest whose answers could not be held against its schema. */
export function checkOutputSchema({ outputSchema }: Manifest): void {
  const message = outputSchema && schemaProblem(outputSchema)
  if (message === undefined) return
  const path = 'manifest.outputSchema'
  throw new ApiError('validation_failed', `${path}: ${message}`, { details: [{ path, message }] })
}

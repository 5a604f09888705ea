import { ApiError } from '../../shared/http/api-error.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { schemaCheckOrRefusal } from '../json-schema/schema-check.ts'

/** Holds what a caller gives a run against the schema of the version, before anything is stored. */
export function refuseUnfitInput(
  inputSchema: NonNullable<Manifest['inputSchema']>,
  input: Readonly<Record<string, unknown>>,
): void {
  const fault = schemaCheckOrRefusal(inputSchema)(input)
  if (!fault) return
  const path = placeOf(fault.at)
  throw new ApiError('validation_failed', `${path}: ${fault.message}`, { details: [{ path, message: fault.message }] })
}

/** A JSON pointer as the place in the body that every other refusal names. */
function placeOf(pointer: string): string {
  const names = pointer.split('/').slice(1)
  return ['input', ...names.map(name => name.replaceAll('~1', '/').replaceAll('~0', '~'))].join('.')
}

import { z } from 'zod'
import { check } from '../../shared/wire/issues.ts'
import { manifest } from '../../shared/wire/runtime/manifest.ts'

export const manifestCheck = z.strictObject({ manifest: z.unknown() })

/** What publishing would say of a manifest, without publishing it: it is the same schema. */
export function checkManifest(given: unknown): { issues: readonly { path: string; message: string }[] } {
  const checked = check(manifest, given)
  return { issues: checked.ok ? [] : checked.details }
}

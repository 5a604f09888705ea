import { z } from 'zod'
import { check } from '../../shared/wire/issues.ts'
import { manifest } from '../../shared/wire/runtime/manifest.ts'
import { checkDepth, isObject, type Json } from '../connectors/openapi/document.ts'

export const manifestCheck = z.strictObject({ manifest: z.unknown() })

/** What publishing would say of a manifest, without publishing it: it is the same schema. */
export function checkManifest(given: unknown): { issues: readonly { path: string; message: string }[] } {
  const checked = check(manifest, given)
  return { issues: checked.ok ? [] : checked.details }
}

/** Much longer than any manifest. */
const MOST_CHARACTERS = 128 * 1024
export const manifestText = z.strictObject({ text: z.string().max(MOST_CHARACTERS) })

/** The manifest that a text is as YAML; nothing where it is none. */
export async function readManifestText(text: string): Promise<{ manifest?: Json }> {
  // Few ever need the reader of YAML.
  const { readYaml } = await import('../connectors/openapi/yaml.ts')
  try {
    const value = await readYaml(text)
    if (!isObject(value) || Array.isArray(value)) return {}
    checkDepth(value)
    return { manifest: value }
  } catch {
    return {}
  }
}

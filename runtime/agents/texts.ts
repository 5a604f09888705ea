import type { Labels } from '../../shared/wire/runtime/conventions.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'

/** What of a manifest only those need who run it: placing, admitting and checking a run do without. */
export type ManifestTexts = Pick<Manifest, 'systemPrompt' | 'files'>

/** The texts of a version, sealed to the key of the pool that alone runs it. */
export interface SealedTexts {
  pool: string
  box: Uint8Array<ArrayBuffer>
}

/** Seals where the pool of an agent has a key; undefined where its texts stay as they are. */
export type SealTexts = (
  agent: { tenantId: string; labels: Labels },
  versionId: string,
  manifest: Manifest,
) => Promise<SealedTexts | undefined>

/** Opens them, where this process is a node of that pool. */
export type OpenTexts = (versionId: string, box: Uint8Array) => Promise<ManifestTexts>

export const textsOf = ({ systemPrompt, files }: Manifest): ManifestTexts => ({ systemPrompt, files })

export const hasTexts = ({ systemPrompt, files }: ManifestTexts): boolean => systemPrompt !== '' || files.length > 0

export const withoutTexts = (manifest: Manifest): Manifest => ({ ...manifest, systemPrompt: '', files: [] })

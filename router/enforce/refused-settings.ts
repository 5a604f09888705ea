import type { Model } from '../config/model.ts'

/** Models and keys remembered at once; what was learned longest ago is forgotten first. */
const MOST_KNOWN = 1000
/** A provider may take tomorrow what it refuses today. */
const MOST_AGE_MS = 3_600_000

/** Which settings each model has refused to a key, so that the next call does not bring them. Lives as long as the process. */
export type RefusedSettings = Map<string, { settings: ReadonlySet<string>; at: number }>

const NONE: ReadonlySet<string> = new Set()
const keyOf = (model: Model, fingerprint: string) =>
  `${model.dialect} ${model.model} ${model.upstreamModel} ${fingerprint}`

export function refusedOf(known: RefusedSettings, model: Model, fingerprint: string, now: number): ReadonlySet<string> {
  const found = known.get(keyOf(model, fingerprint))
  return found === undefined || now - found.at > MOST_AGE_MS ? NONE : found.settings
}

/** Takes down a setting without which the model did answer. */
export function learnRefused(
  known: RefusedSettings,
  { model, fingerprint, setting }: { model: Model; fingerprint: string; setting: string },
  now: number,
): void {
  const settings = new Set([...refusedOf(known, model, fingerprint, now), setting])
  const key = keyOf(model, fingerprint)
  known.delete(key)
  known.set(key, { settings, at: now })
  if (known.size > MOST_KNOWN) known.delete(known.keys().next().value!)
}

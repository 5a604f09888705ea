import { settingOf } from '../../shared/dialects/adapt/refused-value.ts'
import type { Model } from '../config/model.ts'

/** Models and keys remembered at once; what was learned longest ago is forgotten first. */
const MOST_KNOWN = 1000
/** A provider may take tomorrow what it refuses today. */
const MOST_AGE_MS = 3_600_000

/**
 * Which settings each model has refused to a tenant and a key, so that the next call does not bring them. Lives as long as the process.
 * A refusal may be of a value that only this tenant sends, so it says nothing to another.
 */
export type RefusedSettings = Map<string, { settings: ReadonlySet<string>; at: number }>

const NONE: ReadonlySet<string> = new Set()
/** Who asks a model. */
interface Asker {
  tenantId: string
  fingerprint: (model: Model) => string
}

const keyOf = (model: Model, { tenantId, fingerprint }: Asker) =>
  `${tenantId} ${model.dialect} ${model.model} ${model.upstreamModel} ${fingerprint(model)}`

export function refusedOf(known: RefusedSettings, model: Model, asker: Asker, now: number): ReadonlySet<string> {
  const found = known.get(keyOf(model, asker))
  return found === undefined || now - found.at > MOST_AGE_MS ? NONE : found.settings
}

/** Takes down a setting, or its value, without which the model did answer. */
export function learnRefused(
  known: RefusedSettings,
  { model, asker, setting }: { model: Model; asker: Asker; setting: string },
  now: number,
): void {
  const settings = withRefusal(refusedOf(known, model, asker, now), setting)
  const key = keyOf(model, asker)
  known.delete(key)
  known.set(key, { settings, at: now })
  if (known.size > MOST_KNOWN) known.delete(known.keys().next().value!)
}

/** Values of one setting that are remembered; a model that refuses more of them is taken to refuse the setting. */
const MOST_VALUES = 3

/** What is remembered, with one more refusal. */
function withRefusal(before: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const setting = settingOf(key)
  const others = [...before].filter(one => one !== setting && settingOf(one) === setting && one !== key)
  if (key !== setting && others.length < MOST_VALUES - 1) return new Set([...before, key])
  return new Set([...[...before].filter(one => settingOf(one) !== setting), setting])
}

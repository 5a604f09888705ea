import { asObject, isObject, type Json } from '../json-value.ts'

/** How a refusal is remembered: the name of a setting, or with `=` the one value of it that was refused. */
export function refusalKey(setting: string, value: Json | undefined): string {
  const text = valueText(setting, value)
  return text === undefined ? setting : `${setting}=${text}`
}

export const settingOf = (key: string): string => key.split('=', 1)[0]!

/** The settings that are left out of a request with these values. */
export function refusedNames(
  keys: ReadonlySet<string>,
  valueAt: (setting: string) => Json | undefined,
): ReadonlySet<string> {
  const names = new Set<string>()
  for (const key of keys) {
    const setting = settingOf(key)
    if (setting === key || refusalKey(setting, valueAt(setting)) === key) names.add(setting)
  }
  return names
}

/** The value of a setting under its path, of a request as it is or of its settings alone. */
export function valueUnder(path: string, at: (name: string) => Json | undefined): Json | undefined {
  const [first = '', ...rest] = path.split('.')
  return rest.reduce<Json | undefined>((value, key) => (isObject(value) ? asObject(value)[key] : undefined), at(first))
}

const MOST_TEXT = 64

/** Words and numbers alone: what else a client wrote is not kept. Of thinking the form is the value. */
function valueText(setting: string, value: Json | undefined): string | undefined {
  const said = setting === 'thinking' && isObject(value) ? value.type : value
  const isWord = typeof said === 'string' && said.length <= MOST_TEXT
  return isWord || typeof said === 'number' || typeof said === 'boolean' ? JSON.stringify(said) : undefined
}

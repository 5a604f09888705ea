import { type Manifest, manifest as manifestSchema } from '../../shared/wire/runtime/manifest.ts'
import { manifestMembers } from './manifest-help.ts'

type Json = Readonly<Record<string, unknown>>

let defaults: Json | undefined

/**
 * A manifest with nothing in it but what was set: publishing it gives the same manifest again. Members stand in the order of the schema,
 * which is the order in which they matter, and not by their letters.
 */
export function setMembers(manifest: Manifest): Json {
  defaults ??= manifestSchema.parse({})
  const given = manifest as unknown as Json
  const names = [...manifestMembers().map(({ name }) => name), ...Object.keys(given)]
  const kept: Record<string, unknown> = {}
  for (const name of new Set(names)) {
    const value = beside(given[name], defaults[name])
    if (value !== undefined) kept[name] = value
  }
  if (manifest.tools.length > 0) kept.tools = manifest.tools.map(briefTool)
  return kept
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What of a value is not its default; undefined where all of it is. */
function beside(value: unknown, usual: unknown): unknown {
  if (value === undefined || JSON.stringify(value) === JSON.stringify(usual)) return undefined
  if (!isObject(value) || !isObject(usual)) return value
  const kept = Object.entries(value).flatMap(([name, one]): [string, unknown][] => {
    const left = beside(one, usual[name])
    return left === undefined ? [] : [[name, left]]
  })
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** A tool of which nothing but its name was said. */
function briefTool(tool: Manifest['tools'][number]): unknown {
  const [usual] = manifestSchema.parse({ tools: [tool.name] }).tools
  return JSON.stringify(sorted(tool)) === JSON.stringify(sorted(usual)) ? tool.name : tool
}

const sorted = (value: object | undefined): unknown =>
  Object.entries(value ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))

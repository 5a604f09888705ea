import { readJson } from '../../shared/json/read-json.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { compilePattern } from '../../shared/wire/runtime/pattern.ts'
import { FINDERS } from './personal-data.ts'

/** Puts `[<type>]` in the place of what an agent may neither send on nor keep. Redacting a second time by type changes nothing more. */
export interface Redaction {
  text(text: string): string
  /** Every text of a JSON value. */
  value<T>(value: T): T
}

const known = new WeakMap<Manifest, Redaction>()

/** What `privacy.redact` of a manifest asks for; undefined: nothing. */
export function redactionOf(manifest: Manifest): Redaction | undefined {
  if (manifest.privacy.redact.length === 0) return undefined
  let made = known.get(manifest)
  if (!made) {
    made = redaction(manifest.privacy.redact)
    known.set(manifest, made)
  }
  return made
}

/** A canonical JSON text, redacted. */
export function redactedInput(manifest: Manifest, input: string): string {
  const redact = redactionOf(manifest)
  return redact ? canonicalize(redact.value(readJson(input) as unknown)) : input
}

/** Numbers go by the last: what has the form of an account or a card is not to be taken for a telephone. */
const ORDER = ['card', 'iban', 'ssn', 'ip', 'email', 'phone'] as const

const MOST_PASSES = 8

interface Finder {
  name: string
  find: (text: string) => readonly (readonly [start: number, end: number])[]
}

function replaced(text: string, finders: readonly Finder[]): string {
  let left = text
  for (const { name, find } of finders) {
    const found = find(left)
    if (found.length === 0) continue
    let out = ''
    let from = 0
    for (const [start, end] of found) {
      out += `${left.slice(from, start)}[${name}]`
      from = end
    }
    left = out + left.slice(from)
  }
  return left
}

function redaction(wanted: Manifest['privacy']['redact']): Redaction {
  const types = new Set<unknown>(wanted)
  const byType: Finder[] = ORDER.filter(type => types.has(type)).map(type => ({ name: type, find: FINDERS[type] }))
  const byPattern: Finder[] = wanted.flatMap(one => {
    if (typeof one === 'string') return []
    const pattern = compilePattern(one.pattern)
    // Publishing refuses what does not compile.
    return typeof pattern === 'string' ? [] : [{ name: one.name, find: pattern.covered }]
  })

  function text(whole: string): string {
    // What stood beside one that was taken out may have a boundary now.
    let left = whole
    for (let pass = 0; pass < MOST_PASSES; pass++) {
      const before = left
      left = replaced(left, byType)
      if (left === before) break
    }
    return replaced(left, byPattern)
  }

  function each(value: unknown): unknown {
    if (typeof value === 'string') return text(value)
    if (typeof value === 'number') return Math.abs(value) < 1e9 ? value : number(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(each)
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [text(name), each(one)]))
  }

  /** A card or a telephone may come as a number. */
  function number(value: number): unknown {
    const plain = String(value)
    const redacted = text(plain)
    return redacted === plain ? value : redacted
  }

  return { text, value: <T>(value: T) => each(value) as T }
}

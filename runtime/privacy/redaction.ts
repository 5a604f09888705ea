import { readIp } from '../../shared/http/outbound/ip-address.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import type { Manifest, PersonalData } from '../../shared/wire/runtime/manifest.ts'
import { compilePattern, type Work } from '../../shared/wire/runtime/pattern.ts'

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

/** A quarter of a second of following an author's patterns, for all the texts of a value. */
const MOST_WORK = 20_000_000

interface Finder {
  name: string
  find: (text: string, work: Work) => readonly (readonly [start: number, end: number])[] | undefined
}

/** What cannot be searched with the work that is left is not passed on: its name stands for the whole of it. */
function replaced(text: string, finders: readonly Finder[], work: Work): string {
  let left = text
  for (const { name, find } of finders) {
    const found = find(left, work)
    if (found === undefined) return `[${name}]`
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

  function text(whole: string, work: Work): string {
    // What stood beside one that was taken out may have a boundary now.
    let left = whole
    for (let pass = 0; pass < MOST_PASSES; pass++) {
      const before = left
      left = replaced(left, byType, work)
      if (left === before) break
    }
    return replaced(left, byPattern, work)
  }

  /** Names have work of their own: where there is none left for the texts, the value keeps its form. */
  function each(value: unknown, work: Work, names: Work): unknown {
    if (typeof value === 'string') return text(value, work)
    if (typeof value === 'number') return Math.abs(value) < 1e9 ? value : number(value, work)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(one => each(one, work, names))
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [text(name, names), each(one, work, names)]))
  }

  /** A card or a telephone may come as a number. */
  function number(value: number, work: Work): unknown {
    const plain = String(value)
    const redacted = text(plain, work)
    return redacted === plain ? value : redacted
  }

  const whole = (): Work => ({ left: MOST_WORK })
  return { text: one => text(one, whole()), value: <T>(value: T) => each(value, whole(), whole()) as T }
}

/** Where a text holds data of one type. Each takes time by the length of the text: repetitions are bounded, and none is inside another. */
type Find = (text: string) => [start: number, end: number][]

const FINDERS: Readonly<Record<PersonalData, Find>> = {
  email: emails,
  phone: checked(/(?<![\w.+/-])/, /(?:\+|00)?\(?\d(?:[ ()./-]{0,2}\d){5,18}(?![\w-])/, isPhone),
  card: checked(/(?<![\w.-])/, /[2-6]\d{3}(?:[ -]?\d){9,15}(?![\w-])/, isCard),
  iban: checked(/(?<!\w)/, /[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){11,30}(?!\w)/, isIban),
  ssn: checked(/(?<![\w-])/, /\d{3}([ -])\d{2}\1\d{4}(?![\w-])/, isSsn),
  ip: checked(/(?<![\w.:])/, /(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]{2,39}(?:\.\d{1,3}){0,3})(?![\w:])/, isIp),
}

/**
 * The parts of a text that have a form, and stand a check; where one does not, shorter ones that begin there may. One that begins where
 * the one before it ends is found too, whatever character that was: it will stand behind a replacement.
 */
function checked(before: RegExp, form: RegExp, fits: (text: string) => boolean): Find {
  const apart = new RegExp(before.source + form.source, 'g')
  const adjoining = new RegExp(form.source, 'y')
  return text => {
    const found: [number, number][] = []
    let from = 0
    for (;;) {
      adjoining.lastIndex = from
      let match = found.length > 0 ? adjoining.exec(text) : null
      if (match === null || !fits(match[0])) {
        apart.lastIndex = from
        match = apart.exec(text)
      }
      if (match === null) return found
      from = match.index + match[0].length
      if (fits(match[0])) found.push([match.index, from])
    }
  }
}

const LOCAL = /[\p{L}\p{N}.!#$%&'*+/=?^_`{|}~-]/u
const DOMAIN = /[\p{L}\p{N}.-]/u
const MOST_LOCAL = 64
const MOST_DOMAIN = 253

/** Around each `@`: a text without one is passed over. */
function emails(text: string): [number, number][] {
  const found: [number, number][] = []
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    let [start, end] = [at, at + 1]
    while (start > 0 && at - start < MOST_LOCAL && LOCAL.test(text[start - 1]!)) start--
    while (end < text.length && end - at <= MOST_DOMAIN && DOMAIN.test(text[end]!)) end++
    // A full stop behind it ends a sentence.
    while (/[.-]/.test(text[end - 1]!)) end--
    if (start === at || !/^[^.].*\.\p{L}{2,}$/u.test(text.slice(at + 1, end))) continue
    found.push([Math.max(start, found.at(-1)?.[1] ?? 0), end])
  }
  return found
}

const digitsOf = (text: string): string => text.replace(/\D/g, '')

/** With a prefix for abroad, or as numbers are written at home; days, times and bare numbers are none. */
function isPhone(text: string): boolean {
  const digits = digitsOf(text)
  if (/^(?:\+|00)/.test(text)) return digits.length >= 8 && digits.length <= 17
  if (/^\d{4}[-./]\d{1,2}[-./]\d{1,2}\b|^\d{1,2}[-./]\d{1,2}[-./]\d{4}\b|^\d{1,3}(?:\.\d{1,3}){3}$/.test(text))
    return false
  if (/^\(?[2-9]\d{2}\)?[ .-]?\d{3}[ .-]\d{4}$/.test(text)) return true
  return /^\(?0[1-9]/.test(text) && digits.length >= 9 && digits.length <= 13
}

/** ISO/IEC 7812-1, annex B. */
function isCard(text: string): boolean {
  const digits = digitsOf(text)
  if (/^(\d)\1*$/.test(digits)) return false
  let sum = 0
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place])
    const twice = place % 2 === 1 ? digit * 2 : digit
    sum += twice > 9 ? twice - 9 : twice
  }
  return sum % 10 === 0
}

/** ISO 13616: 97 divides it with one left over. */
function isIban(text: string): boolean {
  const plain = text.replaceAll(' ', '').toUpperCase()
  let rest = 0
  for (const char of plain.slice(4) + plain.slice(0, 4)) {
    const value = Number.parseInt(char, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}

/** Of the United States; these ranges are never given out. */
function isSsn(text: string): boolean {
  const [area = '', group, serial] = text.split(/[ -]/)
  return area !== '000' && area !== '666' && area < '900' && group !== '00' && serial !== '0000'
}

function isIp(text: string): boolean {
  return readIp(text) !== undefined && text !== '::'
}

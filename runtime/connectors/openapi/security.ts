import type { Scheme } from './compiled.ts'
import { DocumentProblem, followed, isObject, type Json, member, memberPlace, type Placed } from './document.ts'
import { RESERVED_HEADERS } from './parameters.ts'

/** Keys of a config that mean something else. */
const TAKEN = new Set(['baseUrl', 'authMethod', 'expiresAt', 'username', 'password'])
const SCHEMES = '#/components/securitySchemes'

/** The schemes of the first alternative that can be satisfied here. */
export function chosenSecurity(root: Json, { value, place }: Placed<Json>): readonly string[] {
  const own = member(value, 'security')
  const given = own ?? member(root, 'security')
  const at = own === undefined ? '#/security' : memberPlace(place, 'security')
  if (given === undefined) return []
  if (!Array.isArray(given)) throw new DocumentProblem(at, 'expected a list of security requirements')
  if (given.length === 0) return []
  let first: unknown
  for (const [n, alternative] of given.entries()) {
    if (!isObject(alternative)) throw new DocumentProblem(memberPlace(at, n), 'expected an object of security schemes')
    const names = Object.keys(alternative)
    try {
      const schemes = schemesOf(root, new Set(names))
      if (Object.values(schemes).filter(({ kind }) => kind !== 'apiKey').length <= 1) return names
      throw new DocumentProblem(memberPlace(at, n), 'two schemes of one alternative both want the Authorization header')
    } catch (error) {
      if (!(error instanceof DocumentProblem)) throw error
      first ??= error
    }
  }
  throw first
}

export function schemesOf(root: Json, names: ReadonlySet<string>): Record<string, Scheme> {
  const found: Record<string, Scheme> = {}
  const keys = new Set<string>()
  for (const name of names) {
    const scheme = schemeOf(root, name)
    if (scheme.kind !== 'basic' && keys.has(scheme.key)) {
      throw new DocumentProblem(memberPlace(SCHEMES, name), `another scheme is called ${scheme.key} as well`)
    }
    if (scheme.kind !== 'basic') keys.add(scheme.key)
    found[name] = scheme
  }
  return found
}

function schemeOf(root: Json, name: string): Scheme {
  const place = memberPlace(SCHEMES, name)
  if (name === '__proto__') throw new DocumentProblem(place, 'expected another name')
  const given = member(member(member(root, 'components'), 'securitySchemes'), name)
  const { value } = followed(root, { value: given, place }, 'a security scheme')
  const word = name.replaceAll(/[^A-Za-z0-9_-]+/g, '_').slice(0, 64)
  const key = TAKEN.has(word) ? `${word}Secret` : word
  const { type, scheme } = value
  if (type === 'http' && typeof scheme === 'string') {
    if (scheme.toLowerCase() === 'bearer') return { kind: 'bearer', key }
    if (scheme.toLowerCase() === 'basic') return { kind: 'basic' }
  }
  if (type === 'apiKey') {
    const where = value.in
    const as = value.name
    if (where !== 'header' && where !== 'query' && where !== 'cookie') {
      throw new DocumentProblem(memberPlace(place, 'in'), 'expected header, query or cookie')
    }
    if (typeof as !== 'string' || as === '__proto__' || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(as)) {
      throw new DocumentProblem(memberPlace(place, 'name'), 'expected the name of a header, parameter or cookie')
    }
    if (where === 'header' && as.toLowerCase() !== 'authorization' && RESERVED_HEADERS.has(as.toLowerCase())) {
      throw new DocumentProblem(
        memberPlace(place, 'name'),
        `${as} belongs to the request itself and can be no credential`,
      )
    }
    return { kind: 'apiKey', key, in: where, name: as }
  }
  const at = memberPlace(place, type === 'http' ? 'scheme' : 'type')
  throw new DocumentProblem(at, 'expected apiKey, or http with basic or bearer: others are not supported')
}

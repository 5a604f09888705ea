import { ApiError } from '../../shared/http/api-error.ts'
import type { Detail } from '../../shared/wire/issues.ts'
import { sentence } from '../../shared/wire/issues.ts'
import { moment } from '../../shared/wire/runtime/conventions.ts'
import type { AuthMethod, ConfigKey, Connector, Credential } from './definition.ts'

/** What an install's `config` says. */
export interface ReadConfig {
  credential: Credential
  baseUrl: string | undefined
  /** Names of what is still needed before a call can be made. */
  missing: string[]
  warnings: string[]
}

const GENERIC = ['token', 'apiKey', 'accessToken']
const MOST_CHARACTERS = 8192
/** What travels in a header or a path. */
const PRINTABLE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/**
 * Reads a config by the keys of its connector (docs/spec/runtime.md §8). `token`, `apiKey` and `accessToken` stand for the primary
 * secret; `accessToken` beside anything else that only OAuth has, or with `authMethod: "oauth2"`, is an OAuth token. What
 * is unknown is left out with a warning.
 */
export function readConfig(connector: Connector, config: Record<string, unknown>): ReadConfig {
  const { keys, auth } = connector
  const known = new Map(keys.map(key => [key.name, key]))
  const primary = keys[0]
  const warnings: string[] = []
  const details: Detail[] = []
  const values: Record<string, string> = {}
  const others = new Map<string, string>()
  for (const [name, given] of Object.entries(config)) {
    if (given === null || given === undefined || given === '') continue
    const isOther = OTHER_KEYS.has(name)
    const key = known.get(name) ?? (!isOther && GENERIC.includes(name) ? primary : undefined)
    if (!key && !isOther) {
      warnings.push(`config.${name.slice(0, 64).toWellFormed()} is not a key of ${connector.id} and was not stored`)
      continue
    }
    const value = typeof given === 'number' ? String(given) : given
    const problem = problemOf(value, key)
    if (problem !== undefined) details.push({ path: `config.${name}`, message: problem })
    else if (isOther) others.set(name, String(value).trim())
    else values[name] = String(value).trim()
  }
  const method = methodOf(connector, values, others.get('authMethod'))
  if (method === undefined) {
    details.push({ path: 'config.authMethod', message: `expected one of ${auth.join(', ')}` })
  }
  const expiresAt = others.get('expiresAt')
  if (expiresAt !== undefined && !moment.safeParse(expiresAt).success) {
    details.push({ path: 'config.expiresAt', message: 'expected an ISO 8601 time with a zone' })
  }
  if (details.length > 0 || method === undefined) throw invalid(details)

  if (primary && uses(primary, method)) {
    const found = GENERIC.find(name => values[name] !== undefined)
    if (values[primary.name] === undefined && found !== undefined) values[primary.name] = values[found]!
  }
  const kept: Record<string, string> = {}
  for (const key of keys) {
    const value = values[key.name]
    if (value === undefined) continue
    if (uses(key, method)) kept[key.name] = value
    else if (!GENERIC.includes(key.name))
      warnings.push(`config.${key.name} is not used with ${method} and was not stored`)
  }
  return {
    credential: {
      method,
      values: kept,
      ...(expiresAt !== undefined && { expiresMs: Date.parse(expiresAt) }),
    },
    baseUrl: others.get('baseUrl'),
    missing: missingIn(connector, method, new Set(Object.keys(kept))),
    warnings,
  }
}

/** The keys that an install needs and does not have. */
export function missingIn({ keys }: Connector, method: AuthMethod, have: ReadonlySet<string>): string[] {
  return keys.flatMap(key => (!key.optional && uses(key, method) && !have.has(key.name) ? [key.name] : []))
}

export function invalid(details: readonly Detail[]): ApiError<'validation_failed'> {
  return new ApiError('validation_failed', sentence(details), { details })
}

const OTHER_KEYS = new Set(['baseUrl', 'authMethod', 'expiresAt'])

const uses = ({ usedBy }: ConfigKey, method: AuthMethod) => usedBy === undefined || usedBy.includes(method)

function methodOf({ auth, keys }: Connector, values: Record<string, string>, named?: string): AuthMethod | undefined {
  if (named !== undefined) return auth.find(one => one === named)
  if (auth.length === 1 || (keys[0] && values[keys[0].name] !== undefined)) return auth[0]
  const ofOAuth = keys.some(
    ({ name, usedBy }) => name !== 'accessToken' && usedBy?.includes('oauth2') && values[name] !== undefined,
  )
  return ofOAuth ? 'oauth2' : auth[0]
}

function problemOf(value: unknown, key: ConfigKey | undefined): string | undefined {
  if (typeof value !== 'string') return 'expected a string'
  const text = value.trim()
  if (text.length > MOST_CHARACTERS) return `expected at most ${MOST_CHARACTERS} characters`
  // As of an install that was read and is sent back.
  if (text === '***') return '*** stands for it in answers: send the value itself'
  if (key?.shape) return key.shape[0].test(text) ? undefined : `expected ${key.shape[1]}`
  if (!PRINTABLE.test(text)) return 'expected printable ASCII characters'
  return undefined
}

import type { ProviderDialect } from '../../shared/wire/router/conventions.ts'
import { urlProblem } from './base-url.ts'
import { type Named, named } from './frozen.ts'
import { isCredentialHeader, isHeaderName, isOwnedHeader } from './header-names.ts'
import type { Path } from './locate.ts'
import type { Problems } from './problem.ts'
import type { ProviderTable } from './provider-table.ts'
import { missing, nameOf } from './read-table.ts'
import type { Limits, Provider } from './routing-config.ts'
import { type Row, type Rows, uniqueRows } from './schema.ts'

/** The two providers that need no block, with the address their dialect's calls go to unless one is given. */
const BUILTIN = {
  anthropic: { dialect: 'messages', baseUrl: 'https://api.anthropic.com', apiKeyEnv: 'ANTHROPIC_API_KEY' },
  openai: { dialect: 'chat', baseUrl: 'https://api.openai.com', apiKeyEnv: 'OPENAI_API_KEY' },
} as const

/** Whether it is a vendor's own host, which its id names. */
export const isVendor = ({ id, baseUrl }: Pick<Provider, 'id' | 'baseUrl'>): boolean =>
  (id === 'anthropic' || id === 'openai') && BUILTIN[id].baseUrl === baseUrl

const UPSTREAM = { anthropic: 'ROUTER_UPSTREAM_MESSAGES', openai: 'ROUTER_UPSTREAM_CHAT' } as const

export type Vars = Readonly<Record<string, string | undefined>>

export interface Providers {
  /** Those that hold together. */
  usable: Named<Provider>
  /** Every id in the file, so that a broken block does not make its models unknown as well. */
  ids: ReadonlySet<string>
}

/** docs/spec/router.md §6.6. */
export function resolveProviders(problems: Problems, rows: Rows<ProviderTable>, env: Vars, limits: Limits): Providers {
  const given = uniqueRows(problems, rows, 'id')
  for (const row of rows) if (row.read) checkProvider(problems, row.path, row.read.value, row.read.bad)
  const found = new Map<string, Provider>()
  for (const id of ['anthropic', 'openai'] as const) {
    const { [UPSTREAM[id]]: upstream } = env
    const wrong = upstream ? urlProblem(upstream, { plainHttp: true }) : undefined
    if (wrong !== undefined) problems.outside(UPSTREAM[id], wrong)
    found.set(id, withDefaults({ id }, { ...BUILTIN[id], ...(upstream && { baseUrl: upstream }) }, limits))
  }
  for (const [id, row] of given) {
    const provider = usable(row, found.get(id), limits)
    if (provider !== undefined) found.set(id, provider)
  }
  return { usable: named(found), ids: new Set([...found.keys(), ...given.keys()]) }
}

function usable(row: Row<ProviderTable>, builtin: Provider | undefined, limits: Limits): Provider | undefined {
  const table = row.read?.value
  if (table === undefined) return undefined
  const dialect = table.dialect ?? builtin?.dialect
  const baseUrl = table.base_url ?? builtin?.baseUrl
  if (dialect === undefined || baseUrl === undefined) return undefined
  return withDefaults(table, { dialect, baseUrl, apiKeyEnv: builtin?.apiKeyEnv ?? null }, limits)
}

type Base = Pick<Provider, 'dialect' | 'baseUrl' | 'apiKeyEnv'>

function withDefaults(table: ProviderTable, base: Base, limits: Limits): Provider {
  const builtin = Object.hasOwn(BUILTIN, table.id)
  const { timeouts = {} } = table
  return {
    id: table.id,
    builtin,
    dialect: base.dialect,
    baseUrl: base.baseUrl.replace(/\/+$/, ''),
    auth: table.auth ?? (table.api_key_env !== undefined ? 'env' : builtin ? 'passthrough' : 'none'),
    apiKeyEnv: table.api_key_env ?? base.apiKeyEnv,
    authHeader: table.auth_header?.toLowerCase() ?? (table.api_version === undefined ? null : 'api-key'),
    region: table.region ?? null,
    service: table.service ?? 'bedrock',
    project: table.project ?? null,
    tokenUrl: table.token_url ?? null,
    credentialsEnv: table.credentials_env ?? null,
    apiVersion: table.api_version ?? null,
    headers: named(Object.entries(table.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])),
    responses: table.responses ?? (builtin && base.dialect === 'chat'),
    injectUsage: table.inject_usage ?? false,
    legacyMaxTokens: table.legacy_max_tokens ?? false,
    timeouts: {
      connectMs: timeouts.connect_ms ?? limits.connectMs,
      firstByteMs: timeouts.first_byte_ms ?? limits.firstByteMs,
      idleMs: timeouts.idle_ms ?? limits.idleMs,
      contentMs: timeouts.content_ms ?? limits.contentMs,
      totalMs: timeouts.total_ms ?? limits.totalMs,
    },
  }
}

const dialectOf = ({ id, dialect }: ProviderTable): ProviderDialect | undefined =>
  dialect ?? (id === 'anthropic' || id === 'openai' ? BUILTIN[id].dialect : undefined)

function checkProvider(problems: Problems, path: Path, table: ProviderTable, bad: ReadonlySet<string>): void {
  const at = (key: keyof ProviderTable): Path => [...path, key]
  const say = (key: keyof ProviderTable, message: string) => problems.atValue(at(key), `${nameOf(at(key))}: ${message}`)
  const need = (key: keyof ProviderTable, why = '') => {
    if (table[key] === undefined && !bad.has(key)) problems.atValue(at(key), missing(at(key)) + why)
  }

  if (!Object.hasOwn(BUILTIN, table.id)) {
    need('dialect')
    need('base_url')
    if (table.auth === 'env') need('api_key_env', ': auth = "env" reads the key from the variable it names')
  }
  if ((table.auth === 'sigv4' || table.auth === 'oauth') && table.dialect === 'chat')
    say('dialect', `auth = "${table.auth}" is for hosts of the messages dialect: expected "messages"`)
  if (table.responses === true && dialectOf(table) === 'messages')
    say('responses', 'only a provider of the chat dialect takes the Responses API: expected false')
  if (table.auth === 'sigv4') need('region', ': auth = "sigv4" signs for a region')
  if (table.auth === 'oauth') {
    need('project', ': auth = "oauth" calls a project')
    need('region', ': auth = "oauth" calls a region')
  }
  if (table.api_version !== undefined) {
    if (!/^[A-Za-z0-9.-]+$/.test(table.api_version)) say('api_version', 'expected a version such as "2024-10-21"')
    if (dialectOf(table) === 'messages') say('api_version', 'only deployments of the chat dialect have one')
    if (table.responses === true)
      say('responses', 'deployments take no Responses API: leave api_version out and let base_url end in /openai/v1')
  }
  if (table.base_url !== undefined) {
    const wrong = urlProblem(table.base_url, { plainHttp: table.allow_http === true })
    if (wrong !== undefined) say('base_url', wrong + (wrong.includes('plain http') ? ', or set allow_http = true' : ''))
  }
  if (table.token_url !== undefined) {
    const wrong = urlProblem(table.token_url, { plainHttp: false })
    if (wrong !== undefined) say('token_url', wrong)
  }
  if (table.auth_header !== undefined && !isHeaderName(table.auth_header)) say('auth_header', 'expected a header name')
  for (const name of Object.keys(table.headers ?? {})) {
    const where = [...at('headers'), name]
    if (!isHeaderName(name)) problems.atKey(where, `${nameOf(where)}: not a header name`)
    else if (isCredentialHeader(name))
      problems.atKey(where, `${nameOf(where)}: this header carries a key, name its variable in api_key_env instead`)
    else if (isOwnedHeader(name)) problems.atKey(where, `${nameOf(where)}: the router sets this header itself`)
  }
}

import { z } from 'zod'
import { utf8 } from '../../shared/sign/bytes.ts'
import { TransportError } from '../upstream/transport.ts'
import {
  ask,
  type Expiring,
  fileOf,
  form,
  NoSourceError,
  parsed,
  REMOTE_TIMEOUT_MS,
  type SourceDeps,
  tokenOf,
} from './credential-request.ts'
import { metadataOrigin, safe } from './vendor-addresses.ts'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const TOKEN_URL = 'https://oauth2.googleapis.com/token'
const LIFE_S = 3600
const METADATA_MS = 3000

export interface GoogleToken {
  token: string
  /** Where the quota of another project is used. */
  quotaProject: string | undefined
}

export interface GoogleAccount {
  /** JSON of a variable that the config names; undefined looks where Google's own programs look. */
  json: string | undefined
  /** Instead of the account's own. */
  tokenUrl: string | null
}

const format = z
  .object({ type: z.enum(['text', 'json']), subject_token_field_name: z.string().min(1).optional() })
  .default({ type: 'text' })

/** Where the token of the other identity provider is: of a file or an address. Programs and keys of AWS are not read. */
const subjectTokenSource = z.union([
  z.object({ file: z.string().min(1), format }),
  z.object({ url: z.url(), headers: z.record(z.string(), z.string()).default({}), format }),
])

const serviceAccount = z.object({
  type: z.literal('service_account').default('service_account'),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().optional(),
  token_uri: z.url().optional(),
})
const user = z.object({
  type: z.literal('authorized_user'),
  client_id: z.string().min(1),
  client_secret: z.string().min(1),
  refresh_token: z.string().min(1),
})
const external = z.object({
  type: z.literal('external_account'),
  audience: z.string().min(1),
  subject_token_type: z.string().min(1),
  token_url: z.url(),
  credential_source: subjectTokenSource,
  service_account_impersonation_url: z.url().optional(),
})
const quota = z.object({ quota_project_id: z.string().min(1).optional() })
const account = z.union([user, external, serviceAccount])

const NAME = "Google's token endpoint"

/** An access token by the application default credentials, or by the account that the config names. */
export async function googleToken(deps: SourceDeps, given: GoogleAccount): Promise<Expiring<GoogleToken>> {
  const json = given.json ?? (await defaultAccount(deps))
  if (json === undefined) {
    const { value, until } = await instanceToken(deps)
    return { value: { token: value, quotaProject: undefined }, until }
  }
  const read = parsed(account, json)
  if (read === undefined) throw new TransportError('the Google credentials are of a form that the router does not read')
  const { value, until } = await exchanged(deps, read, given.tokenUrl)
  const project = deps.env.GOOGLE_CLOUD_QUOTA_PROJECT || parsed(quota, json)?.quota_project_id
  return { value: { token: value, quotaProject: project }, until }
}

function exchanged(deps: SourceDeps, read: z.output<typeof account>, tokenUrl: string | null) {
  switch (read.type) {
    case 'authorized_user':
      return userToken(deps, read, tokenUrl)
    case 'external_account':
      return federatedToken(deps, read, tokenUrl)
    default:
      return serviceToken(deps, read, tokenUrl)
  }
}

/** The file that `GOOGLE_APPLICATION_CREDENTIALS` names, else the one that `gcloud auth application-default login` writes. */
async function defaultAccount(deps: SourceDeps): Promise<string | undefined> {
  const { GOOGLE_APPLICATION_CREDENTIALS: named, CLOUDSDK_CONFIG: folder } = deps.env
  if (named) return fileOf(deps, named, 'the account of GOOGLE_APPLICATION_CREDENTIALS')
  const { host } = deps
  const place = folder || (host?.home && `${host.home}/.config/gcloud`)
  if (host === undefined || !place) return undefined
  return host.readFile(`${place}/application_default_credentials.json`).catch(() => undefined)
}

async function serviceToken(deps: SourceDeps, one: z.output<typeof serviceAccount>, tokenUrl: string | null) {
  const url = safe(tokenUrl ?? one.token_uri ?? TOKEN_URL, 'token_uri')
  const { SignJWT, importPKCS8 } = await import('jose')
  const now = Math.floor(deps.clock.now().getTime() / 1000)
  const key = await importPKCS8(one.private_key, 'RS256').catch(() => {
    throw new TransportError('the private key of the service account cannot be read')
  })
  const assertion = await new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(one.private_key_id && { kid: one.private_key_id }) })
    .setIssuer(one.client_email)
    .setAudience(url)
    .setIssuedAt(now)
    .setExpirationTime(now + LIFE_S)
    .sign(key)
  return posted(deps, url, { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })
}

function userToken(deps: SourceDeps, one: z.output<typeof user>, tokenUrl: string | null) {
  const { client_id, client_secret, refresh_token } = one
  const url = safe(tokenUrl ?? TOKEN_URL, 'token_url')
  return posted(deps, url, { grant_type: 'refresh_token', client_id, client_secret, refresh_token })
}

/** A token of another identity provider for one of Google (RFC 8693), and that one for a service account's where one is named. */
async function federatedToken(deps: SourceDeps, one: z.output<typeof external>, tokenUrl: string | null) {
  const subject_token = await subjectToken(deps, one.credential_source)
  const token = await posted(deps, safe(tokenUrl ?? one.token_url, 'token_url'), {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: one.audience,
    scope: SCOPE,
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token,
    subject_token_type: one.subject_token_type,
  })
  const { service_account_impersonation_url: impersonation } = one
  if (impersonation === undefined) return token
  const reply = await ask(deps, {
    name: 'the service account of the external account',
    method: 'POST',
    url: safe(impersonation, 'service_account_impersonation_url'),
    headers: [
      ['authorization', `Bearer ${token.value}`],
      ['content-type', 'application/json'],
    ],
    body: utf8(JSON.stringify({ scope: [SCOPE], lifetime: `${LIFE_S}s` })),
    ms: REMOTE_TIMEOUT_MS,
  })
  const read = reply.status === 200 ? parsed(impersonated, reply.text) : undefined
  if (read === undefined)
    throw new TransportError(`the service account of the external account gave no token, status ${reply.status}`)
  return { value: read.accessToken, until: Date.parse(read.expireTime) }
}
const impersonated = z.object({ accessToken: z.string().min(1), expireTime: z.iso.datetime({ offset: true }) })

async function posted(deps: SourceDeps, url: string, fields: Record<string, string>): Promise<Expiring<string>> {
  return tokenOf(
    deps,
    NAME,
    await ask(deps, { name: NAME, method: 'POST', url, ...form(fields), ms: REMOTE_TIMEOUT_MS }),
  )
}

const METADATA = "Google's metadata server"

/** The token of the service account of the machine. */
async function instanceToken(deps: SourceDeps): Promise<Expiring<string>> {
  const { GCE_METADATA_HOST: named, GCE_METADATA_IP: ip, METADATA_SERVER_DETECTION: detection } = deps.env
  const given = ip || named
  if (!given && (deps.host === undefined || detection === 'none'))
    throw new NoSourceError('no Google credentials are set up')
  const origin = metadataOrigin(given || '169.254.169.254', 'GCE_METADATA_HOST')
  const url = new URL('/computeMetadata/v1/instance/service-accounts/default/token', origin)
  url.searchParams.set('scopes', SCOPE)
  const reply = await ask(deps, {
    name: METADATA,
    url: url.href,
    headers: [['metadata-flavor', 'Google']],
    ms: METADATA_MS,
  }).catch((cause: unknown) => {
    if (given) throw cause
    throw new NoSourceError('no Google credentials are set up, and no metadata server answers', { cause })
  })
  // What answers without this header is another program at the same address.
  if (reply.header('metadata-flavor') !== 'Google')
    throw new NoSourceError('no Google credentials are set up, and what answers is not the metadata server')
  if (reply.status === 404) throw new NoSourceError('no Google credentials are set up, and the machine has no account')
  return tokenOf(deps, METADATA, reply)
}

/** Read for each exchange, because the platform replaces it in time. */
async function subjectToken(deps: SourceDeps, source: z.output<typeof subjectTokenSource>): Promise<string> {
  const text = 'file' in source ? await fileOf(deps, source.file, SUBJECT) : await fetched(deps, source)
  const { type, subject_token_field_name: field } = source.format
  if (type === 'text') return text.trim()
  const token = field && parsed(z.record(z.string(), z.unknown()), text)?.[field]
  if (typeof token !== 'string' || token === '')
    throw new TransportError(`${SUBJECT} is not in the member that is named`)
  return token
}

const SUBJECT = 'the subject token of the external account'

async function fetched(deps: SourceDeps, { url, headers }: { url: string; headers: Record<string, string> }) {
  const reply = await ask(deps, {
    name: SUBJECT,
    url: safe(url, 'credential_source.url'),
    headers: Object.entries(headers),
    ms: REMOTE_TIMEOUT_MS,
  })
  if (reply.status !== 200) throw new TransportError(`${SUBJECT} was not given, status ${reply.status}`)
  return reply.text
}

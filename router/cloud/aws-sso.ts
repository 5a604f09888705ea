import { z } from 'zod'
import { utf8 } from '../../shared/sign/bytes.ts'
import { TransportError } from '../upstream/transport.ts'
import type { AwsKeys } from './aws-sts.ts'
import {
  ask,
  type Expiring,
  fileOf,
  parsed,
  REMOTE_TIMEOUT_MS,
  refusalWord,
  type SourceDeps,
} from './credential-request.ts'
import { serviceUrl } from './vendor-addresses.ts'

export interface SsoProfile {
  accountId: string
  roleName: string
  region: string
  /** The name of the session, else its start address: its file in the cache is called by the hash of it. */
  cachedAs: string
}

const cached = z.looseObject({
  accessToken: z.string().min(1),
  expiresAt: z.string(),
  refreshToken: z.string().optional(),
  clientId: z.string().optional(),
  clientSecret: z.string().optional(),
})
type Cached = z.output<typeof cached>

const renewed = z.object({
  accessToken: z.string().min(1),
  expiresIn: z.number().positive(),
  refreshToken: z.string().optional(),
})

const roleCredentials = z.object({
  roleCredentials: z.object({
    accessKeyId: z.string().min(1),
    secretAccessKey: z.string().min(1),
    sessionToken: z.string().min(1),
    expiration: z.number(),
  }),
})

const EARLY_MS = 300_000
const PORTAL = 'the single sign-on of AWS'

/** Keys of a role by the sign-on that `aws sso login` has left in its cache. */
export async function ssoKeys(deps: SourceDeps, profile: SsoProfile): Promise<Expiring<AwsKeys>> {
  const token = await signOnToken(deps, profile)
  const url = new URL('federation/credentials', serviceUrl(deps.env, 'sso', profile.region))
  url.search = String(new URLSearchParams({ role_name: profile.roleName, account_id: profile.accountId }))
  const reply = await ask(deps, {
    name: PORTAL,
    url: url.href,
    headers: [['x-amz-sso_bearer_token', token]],
    ms: REMOTE_TIMEOUT_MS,
  })
  if (reply.status === 401) throw new TransportError(`${PORTAL} has ended: ${LOGIN}`)
  const read = reply.status === 200 ? parsed(roleCredentials, reply.text) : undefined
  if (read === undefined)
    throw new TransportError(`${PORTAL} gave no keys, status ${reply.status}${refusalWord(reply.text)}`)
  const { expiration, ...value } = read.roleCredentials
  return { value, until: expiration }
}

const LOGIN = 'run "aws sso login" with this profile'

async function signOnToken(deps: SourceDeps, { cachedAs, region }: SsoProfile): Promise<string> {
  const { host, clock } = deps
  if (host?.home === undefined) throw new TransportError(`${PORTAL} is in a file, and this host has no files`)
  const path = `${host.home}/.aws/sso/cache/${host.sha1(cachedAs)}.json`
  const text = await fileOf(deps, path, PORTAL).catch((cause: unknown) => {
    throw new TransportError(`${PORTAL} has not begun: ${LOGIN}`, { cause })
  })
  const token = parsed(cached, text)
  if (token === undefined) throw new TransportError(`${PORTAL} has left nothing that can be read: ${LOGIN}`)
  const left = Date.parse(token.expiresAt) - clock.now().getTime()
  if (left > EARLY_MS) return token.accessToken
  const next = await renewSignOn(deps, region, token)
  if (next === undefined) {
    if (left > 0) return token.accessToken
    throw new TransportError(`${PORTAL} has ended: ${LOGIN}`)
  }
  // As AWS's own programs do, so that they can go on with it: the old token for renewal may not serve twice.
  await host.writeFile(path, JSON.stringify(next, null, 2)).catch(() => undefined)
  return next.accessToken
}

async function renewSignOn(deps: SourceDeps, region: string, token: Cached): Promise<Cached | undefined> {
  const { clientId, clientSecret, refreshToken } = token
  if (!clientId || !clientSecret || !refreshToken) return undefined
  const reply = await ask(deps, {
    name: PORTAL,
    method: 'POST',
    url: new URL('token', serviceUrl(deps.env, 'oidc', region)).href,
    headers: [['content-type', 'application/json']],
    body: utf8(JSON.stringify({ clientId, clientSecret, grantType: 'refresh_token', refreshToken })),
    ms: REMOTE_TIMEOUT_MS,
  }).catch(() => undefined)
  const read = reply?.status === 200 ? parsed(renewed, reply.text) : undefined
  if (read === undefined) return undefined
  return {
    ...token,
    accessToken: read.accessToken,
    expiresAt: new Date(deps.clock.now().getTime() + read.expiresIn * 1000).toISOString(),
    refreshToken: read.refreshToken ?? refreshToken,
  }
}

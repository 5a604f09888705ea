import { toBase64, utf8 } from '../../../shared/sign/bytes.ts'
import { VERSION } from '../../../shared/version.ts'
import type { AnyConnectorId, ConnectorId } from '../../../shared/wire/runtime/catalog.ts'
import { isConnector } from '../../../shared/wire/runtime/catalog.ts'

/** This installation as a vendor knows it. Without a secret it is a public client, which PKCE alone protects. */
export interface OAuthClient {
  id: string
  secret?: string | undefined
}

/** Where a vendor gives consent, tokens and an end to them. */
interface OAuthEndpoints {
  /** Compared with what a vendor says of itself on the way back, where it does (RFC 9207). */
  issuer?: string
  authorization: string
  token: string
  /** Takes tokens back as RFC 7009 says. */
  revocation?: string
}

export interface Tokens {
  accessToken: string
  refreshToken?: string | undefined
}

interface RevocationRequest {
  method: 'POST' | 'DELETE'
  url: string
  headers: Record<string, string>
  body?: string
}

/** How one vendor does OAuth, as its documentation has it. */
export interface OAuthVendor extends OAuthEndpoints {
  /** The <CONNECTOR> of PLATFORM_OAUTH_<CONNECTOR>_CLIENT_ID. */
  client: string
  /** What its actions need and no more. */
  scopes: readonly string[]
  separator?: ','
  /** Further parameters of the consent page. */
  extra?: Readonly<Record<string, string>>
  /** Default: the secret stands in the body. */
  secretIn?: 'header'
  /** It names its issuer on the way back, so a way back without one is not from there (RFC 9207). */
  saysIssuer?: true
  /** What tokens are for, where a server wants to be told (RFC 8707). */
  resource?: string
  /** The token endpoint reads JSON. */
  json?: true
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>
  /** Takes tokens back in a way of its own. */
  revoke?: (tokens: Tokens, client: OAuthClient) => RevocationRequest
}

const google = (...scopes: readonly string[]): OAuthVendor => ({
  client: 'GOOGLE',
  issuer: 'https://accounts.google.com',
  authorization: 'https://accounts.google.com/o/oauth2/v2/auth',
  token: 'https://oauth2.googleapis.com/token',
  revocation: 'https://oauth2.googleapis.com/revoke',
  scopes: scopes.map(scope => `https://www.googleapis.com/auth/${scope}`),
  // Without both of them there is a refresh token at the first consent only.
  extra: { access_type: 'offline', prompt: 'consent' },
})

export const basicOf = ({ id, secret = '' }: OAuthClient) => `Basic ${toBase64(utf8(`${id}:${secret}`))}`
const form = (values: Record<string, string>) => new URLSearchParams(values).toString()
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const JSON_BODY = { 'content-type': 'application/json' }

const oauthVendors: Readonly<Partial<Record<ConnectorId, OAuthVendor>>> = {
  gmail: google('gmail.modify'),
  'google-calendar': google('calendar.readonly'),
  'google-drive': google('drive.metadata.readonly'),
  'google-sheets': google('spreadsheets.readonly'),
  slack: {
    client: 'SLACK',
    authorization: 'https://slack.com/oauth/v2/authorize',
    token: 'https://slack.com/api/oauth.v2.access',
    scopes: ['channels:read', 'chat:write', 'users:read'],
    separator: ',',
    revoke: ({ accessToken }) => ({
      method: 'POST',
      url: 'https://slack.com/api/auth.revoke',
      headers: { ...FORM, authorization: `Bearer ${accessToken}` },
    }),
  },
  discord: {
    client: 'DISCORD',
    authorization: 'https://discord.com/oauth2/authorize',
    token: 'https://discord.com/api/oauth2/token',
    revocation: 'https://discord.com/api/oauth2/token/revoke',
    scopes: ['identify', 'guilds'],
    headers: { 'user-agent': `DiscordBot (waybill, ${VERSION})` },
  },
  github: {
    client: 'GITHUB',
    authorization: 'https://github.com/login/oauth/authorize',
    token: 'https://github.com/login/oauth/access_token',
    scopes: ['repo', 'read:user'],
    revoke: ({ accessToken }, client) => ({
      method: 'DELETE',
      url: `https://api.github.com/applications/${encodeURIComponent(client.id)}/token`,
      headers: { ...JSON_BODY, authorization: basicOf(client), accept: 'application/vnd.github+json' },
      body: JSON.stringify({ access_token: accessToken }),
    }),
  },
  linear: {
    client: 'LINEAR',
    authorization: 'https://linear.app/oauth/authorize',
    token: 'https://api.linear.app/oauth/token',
    scopes: ['read', 'write'],
    separator: ',',
    revoke: ({ accessToken }) => ({
      method: 'POST',
      url: 'https://api.linear.app/oauth/revoke',
      headers: { ...FORM, authorization: `Bearer ${accessToken}` },
      body: form({ token: accessToken }),
    }),
  },
  jira: {
    client: 'JIRA',
    authorization: 'https://auth.atlassian.com/authorize',
    token: 'https://auth.atlassian.com/oauth/token',
    scopes: ['read:jira-work', 'write:jira-work', 'read:jira-user', 'offline_access'],
    extra: { audience: 'api.atlassian.com', prompt: 'consent' },
    json: true,
  },
  notion: {
    client: 'NOTION',
    authorization: 'https://api.notion.com/v1/oauth/authorize',
    token: 'https://api.notion.com/v1/oauth/token',
    scopes: [],
    extra: { owner: 'user' },
    secretIn: 'header',
    json: true,
    headers: { 'notion-version': '2022-06-28' },
    revoke: ({ accessToken }, client) => ({
      method: 'POST',
      url: 'https://api.notion.com/v1/oauth/revoke',
      headers: { ...JSON_BODY, authorization: basicOf(client) },
      body: JSON.stringify({ token: accessToken }),
    }),
  },
  hubspot: {
    client: 'HUBSPOT',
    authorization: 'https://app.hubspot.com/oauth/authorize',
    token: 'https://api.hubapi.com/oauth/2026-03/token',
    revocation: 'https://api.hubapi.com/oauth/2026-03/token/revoke',
    scopes: ['oauth', 'crm.objects.contacts.read', 'crm.objects.deals.read'],
  },
  salesforce: {
    client: 'SALESFORCE',
    authorization: 'https://login.salesforce.com/services/oauth2/authorize',
    token: 'https://login.salesforce.com/services/oauth2/token',
    revocation: 'https://login.salesforce.com/services/oauth2/revoke',
    scopes: ['api', 'refresh_token'],
  },
}

/**
 * Another home of a vendor, such as a server of one's own: its endpoints, and the origin of its API. The vendor's own ways
 * to end a token go with its endpoints.
 */
export type OtherHome = OAuthEndpoints & { api: string }

export function vendorAt(id: AnyConnectorId, home: OtherHome | undefined): OAuthVendor | undefined {
  const vendor = isConnector(id) ? oauthVendors[id] : undefined
  if (!vendor || !home) return vendor
  const { client, scopes, separator, extra, secretIn, json, headers } = vendor
  const { api: _, ...endpoints } = home
  return {
    client,
    scopes,
    ...endpoints,
    ...(separator && { separator }),
    ...(extra && { extra }),
    ...(secretIn && { secretIn }),
    ...(json && { json }),
    ...(headers && { headers }),
  }
}

/** Every name that stands in a variable of the environment. */
export const clientNames: ReadonlySet<string> = new Set(Object.values(oauthVendors).map(({ client }) => client))

import { toBase64, utf8 } from '../../shared/sign/bytes.ts'
import type { ConfigKey, Credential } from './definition.ts'

/** The keys of an OAuth credential, for connectors that offer it; its access token is needed where it is how one signs in. */
export const oauthKeys: readonly ConfigKey[] = [
  { name: 'accessToken', secret: true, usedBy: ['oauth2'] },
  { name: 'refreshToken', secret: true, usedBy: ['oauth2'], optional: true },
  { name: 'clientId', usedBy: ['oauth2'], optional: true },
  { name: 'clientSecret', secret: true, usedBy: ['oauth2'], optional: true },
]

export function bearer(token: string | undefined): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}

export function basic(user: string | undefined, password: string | undefined): Record<string, string> {
  return { authorization: `Basic ${toBase64(utf8(`${user}:${password}`))}` }
}

/** The access token of OAuth, or the primary secret. */
export function tokenOf({ method, values }: Credential, primary: string): string | undefined {
  return method === 'oauth2' ? values.accessToken : values[primary]
}

import { StoreServerError } from './server-error.ts'

export interface ServerAddress {
  /** Over HTTP, without a slash at the end. */
  url: string
  token: string | undefined
  /** On this machine, where compressing costs more than it saves. */
  loopback: boolean
}

const SCHEMES: Readonly<Record<string, string>> = {
  'http:': 'http:',
  'ws:': 'http:',
  'https:': 'https:',
  'wss:': 'https:',
  'libsql:': 'https:',
}

/** Reads the address of a libSQL server. It may carry a token, and `tls=0` for a `libsql:` one that is plain HTTP. */
export function serverAddress(text: string, token?: string): ServerAddress {
  const parsed = URL.parse(text)
  const scheme = parsed === null ? undefined : SCHEMES[parsed.protocol]
  if (parsed === null || scheme === undefined || parsed.host === '') {
    throw new StoreServerError('it is no address of a libSQL server', 'URL_INVALID')
  }
  const query = parsed.searchParams
  for (const name of query.keys()) {
    if (name === 'authToken' || name === 'tls') continue
    throw new StoreServerError(`it has a parameter that is not known: ${name}`, 'URL_PARAM_NOT_SUPPORTED')
  }
  const tls = query.get('tls')
  if (tls !== null && tls !== '0' && tls !== '1') {
    throw new StoreServerError('its parameter tls is 0 or 1', 'URL_INVALID')
  }
  const plain = parsed.protocol === 'libsql:' && tls === '0'
  const secure = scheme === 'https:' && !plain
  if (tls !== null && tls !== (secure ? '1' : '0')) {
    throw new StoreServerError(`a ${parsed.protocol} address takes no tls=${tls}`, 'URL_INVALID')
  }
  const path = parsed.pathname.replace(/\/$/, '')
  return {
    url: `${secure ? 'https:' : 'http:'}//${parsed.host}${path}`,
    token: query.get('authToken') ?? token,
    loopback: /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(parsed.hostname),
  }
}

/** The headers of every request to it. */
export function serverHeaders({ token, loopback }: ServerAddress): Record<string, string> {
  return {
    'content-type': 'application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(loopback && { 'accept-encoding': 'identity' }),
  }
}

/** Longest wait for a server's answer. A step of a schema over millions of rows is the longest thing that is ever asked. */
export const ANSWER_MS = 30_000

/** Largest answer that is read. A server bounds each of those in it by 10 MB. */
export const MOST_ANSWER_BYTES = 256 * 1024 * 1024

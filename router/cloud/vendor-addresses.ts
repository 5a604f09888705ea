import { urlProblem } from '../config/base-url.ts'
import { TransportError } from '../upstream/transport.ts'
import type { Vars } from './credential-request.ts'

/** Where the services of AWS are, unless the variables that its own programs read say otherwise. */
const HOSTS = {
  sts: ['AWS_ENDPOINT_URL_STS', 'sts'],
  sso: ['AWS_ENDPOINT_URL_SSO', 'portal.sso'],
  oidc: ['AWS_ENDPOINT_URL_SSO_OIDC', 'oidc'],
} as const

export function serviceUrl(env: Vars, service: keyof typeof HOSTS, region: string): string {
  const [variable, host] = HOSTS[service]
  const ignored = env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS?.toLowerCase() === 'true'
  const { [variable]: own, AWS_ENDPOINT_URL: general } = env
  if (!ignored && own) return folder(safe(own, variable))
  if (!ignored && general) return folder(safe(general, 'AWS_ENDPOINT_URL'))
  if (!/^[a-z0-9-]{1,64}$/.test(region)) throw new TransportError('the region is not the name of one')
  return `https://${host}.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}/`
}

/** Paths of the service are put behind it. */
const folder = (url: string) => (url.endsWith('/') ? url : `${url}/`)

/** An address that a secret is sent to: https, or this machine. */
export function safe(url: string, name: string): string {
  const wrong = urlProblem(url, { plainHttp: false })
  if (wrong !== undefined) throw new TransportError(`${name}: ${wrong}`)
  return new URL(url).href
}

/** Beside this machine, plain http reaches the agents of containers and nothing else. */
const CONTAINER_AGENTS = new Set(['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]'])

export function containerUrl({
  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: relative,
  AWS_CONTAINER_CREDENTIALS_FULL_URI: full,
}: Vars): string | undefined {
  // Put behind the host as it is, what does not begin with a slash would name another host.
  if (relative) return `http://169.254.170.2/${relative.replace(/^\/+/, '')}`
  if (!full) return undefined
  const url = URL.parse(full)
  if (url?.protocol === 'http:' && CONTAINER_AGENTS.has(url.hostname)) return url.href
  return safe(full, 'AWS_CONTAINER_CREDENTIALS_FULL_URI')
}

/** The service of an EC2 instance; `AWS_EC2_METADATA_DISABLED` says that there is none. */
export function instanceUrl(env: Vars): string | undefined {
  if ((env.AWS_EC2_METADATA_DISABLED ?? '').toLowerCase() === 'true') return undefined
  const { AWS_EC2_METADATA_SERVICE_ENDPOINT: given, AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: mode } = env
  if (given) return metadataOrigin(given, 'AWS_EC2_METADATA_SERVICE_ENDPOINT')
  return mode?.toLowerCase() === 'ipv6' ? 'http://[fd00:ec2::254]' : 'http://169.254.169.254'
}

/** Metadata services speak plain http; what is given may lack the scheme. */
export function metadataOrigin(given: string, name: string): string {
  const url = URL.parse(/^https?:\/\//.test(given) ? given : `http://${given}`)
  if (url === null) throw new TransportError(`${name}: expected an address`)
  return url.origin
}

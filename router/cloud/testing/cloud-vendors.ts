import { randomUUID } from 'node:crypto'
import { type ScriptedUpstream, type Seen, scriptedUpstream } from '../../../tests/upstream/scripted.ts'

type Headers = ReadonlyMap<string, string>
type Answer = [status: number, body: object | string, headers?: Record<string, string>]
type Service = (seen: Seen, headers: Headers, form: URLSearchParams) => Answer

export interface CloudVendors extends ScriptedUpstream {
  /** What each service gave out, oldest first. */
  given: { keys: string[]; tokens: string[] }
  /** How long what is given lasts. */
  lives: (seconds: number) => void
  /** Stands in for one service from now on. */
  refuse: (path: string, answer: Answer) => void
  asked: (path: string) => Seen[]
}

export const WEB_TOKEN = 'eyJ.web.identity'
export const AGENT_TOKEN = 'Basic agent-token'

/** The services that give out credentials, as their vendors document them, on one address. */
export async function cloudVendors(now = () => Date.now()): Promise<CloudVendors> {
  const upstream = await scriptedUpstream()
  const given = { keys: [] as string[], tokens: [] as string[] }
  const sessions = new Set<string>()
  let life = 3600
  const end = () => new Date(now() + life * 1000)
  const keys = () => {
    const AccessKeyId = `ASIA${String(given.keys.length).padStart(4, '0')}`
    given.keys.push(AccessKeyId)
    return { AccessKeyId, SecretAccessKey: `secret/of+${AccessKeyId}`, Token: `session-of-${AccessKeyId}=` }
  }
  const token = () => {
    const access_token = `token-${given.tokens.length}`
    given.tokens.push(access_token)
    return { access_token, expires_in: life, token_type: 'Bearer' }
  }
  const stsError = (status: number, code: string): Answer => [
    status,
    `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>no</Message></Error><RequestId>r</RequestId></ErrorResponse>`,
    { 'content-type': 'text/xml' },
  ]
  const sts: Service = (_, headers, form) => {
    const action = form.get('Action') ?? ''
    if (form.get('Version') !== '2011-06-15' || !form.get('RoleArn')?.startsWith('arn:aws:iam::'))
      return stsError(400, 'ValidationError')
    if (!/^[\w+=,.@-]{2,64}$/.test(form.get('RoleSessionName') ?? '')) return stsError(400, 'ValidationError')
    if (action === 'AssumeRoleWithWebIdentity' && form.get('WebIdentityToken') !== WEB_TOKEN)
      return stsError(400, 'InvalidIdentityToken')
    if (action === 'AssumeRole' && !headers.get('authorization')?.startsWith('AWS4-HMAC-SHA256 Credential='))
      return stsError(403, 'MissingAuthenticationToken')
    const { AccessKeyId, SecretAccessKey, Token } = keys()
    return [
      200,
      `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><AssumedRoleUser><AssumedRoleId>AROA:s</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/r/s</Arn></AssumedRoleUser><Credentials><AccessKeyId>${AccessKeyId}</AccessKeyId><SecretAccessKey>${SecretAccessKey}</SecretAccessKey><SessionToken>${Token}</SessionToken><Expiration>${end().toISOString()}</Expiration></Credentials></${action}Result><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></${action}Response>`,
      { 'content-type': 'text/xml' },
    ]
  }
  const instance =
    (path: string): Service =>
    (seen, headers) => {
      // With version 1 turned off the service answers 401 to what brings no session token.
      if (!sessions.has(headers.get('x-aws-ec2-metadata-token') ?? '')) return [401, '']
      if (path === 'roles') return [200, 'router-role']
      if (!seen.url.endsWith('/router-role')) return [404, '']
      return [
        200,
        {
          Code: 'Success',
          Type: 'AWS-HMAC',
          LastUpdated: new Date().toISOString(),
          ...keys(),
          Expiration: end().toISOString(),
        },
      ]
    }
  const roles = '/latest/meta-data/iam/security-credentials/'
  const services = new Map<string, Service>([
    ['POST /sts/', sts],
    [
      'PUT /latest/api/token',
      (_, headers) => {
        const seconds = Number(headers.get('x-aws-ec2-metadata-token-ttl-seconds'))
        if (!(seconds >= 1 && seconds <= 21600)) return [400, '']
        const session = randomUUID()
        sessions.add(session)
        return [200, session, { 'x-aws-ec2-metadata-token-ttl-seconds': String(seconds) }]
      },
    ],
    [`GET ${roles}`, instance('roles')],
    [`GET ${roles}router-role`, instance('role')],
    [
      'GET /v1/credentials',
      (_, headers) =>
        headers.get('authorization') === AGENT_TOKEN
          ? [200, { ...keys(), Expiration: end().toISOString(), AccountId: '1' }]
          : [401, { Code: 'AccessDenied', Message: 'no' }],
    ],
    [
      'GET /sso/federation/credentials',
      (_, headers) => {
        if (headers.get('x-amz-sso_bearer_token') !== 'sso-access')
          return [
            401,
            { message: 'Session token not found or invalid' },
            { 'x-amzn-errortype': 'UnauthorizedException' },
          ]
        const { AccessKeyId, SecretAccessKey, Token } = keys()
        return [
          200,
          {
            roleCredentials: {
              accessKeyId: AccessKeyId,
              secretAccessKey: SecretAccessKey,
              sessionToken: Token,
              expiration: end().getTime(),
            },
          },
        ]
      },
    ],
    [
      'POST /oidc/token',
      seen => {
        const { grantType, refreshToken } = JSON.parse(String(seen.body)) as Record<string, string>
        if (grantType !== 'refresh_token' || refreshToken !== 'sso-refresh') return [400, { error: 'invalid_grant' }]
        return [200, { accessToken: 'sso-access', expiresIn: 3600, refreshToken: 'sso-refresh-2', tokenType: 'Bearer' }]
      },
    ],
    [
      'POST /google/token',
      (_, __, form) => {
        const grant = form.get('grant_type')
        if (grant === 'refresh_token' && form.get('refresh_token') !== '1//good')
          return [400, { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' }]
        if (grant === 'urn:ietf:params:oauth:grant-type:token-exchange' && form.get('subject_token') !== WEB_TOKEN)
          return [400, { error: 'invalid_grant' }]
        return [200, token()]
      },
    ],
    [
      'POST /iam/sa:generateAccessToken',
      (_, headers) =>
        headers.get('authorization')?.startsWith('Bearer token-')
          ? [200, { accessToken: `impersonated-${given.tokens.length}`, expireTime: end().toISOString() }]
          : [401, { error: { code: 401 } }],
    ],
    [
      'GET /computeMetadata/v1/instance/service-accounts/default/token',
      (_, headers) =>
        headers.get('metadata-flavor') === 'Google' ? [200, token(), { 'metadata-flavor': 'Google' }] : [403, ''],
    ],
    [
      'POST /tenant-1/oauth2/v2.0/token',
      (_, __, form) => {
        const known = form.get('client_secret') === 'entra-secret' || form.get('client_assertion') === WEB_TOKEN
        if (!known || form.get('scope') !== 'https://cognitiveservices.azure.com/.default')
          return [401, { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret provided.' }]
        return [200, token()]
      },
    ],
    [
      'GET /metadata/identity/oauth2/token',
      (_, headers) => {
        if (headers.get('metadata') !== 'true') return [400, { error: 'invalid_request' }]
        // A string, as this service has it.
        return [200, { ...token(), expires_in: String(life), expires_on: String(Math.floor(end().getTime() / 1000)) }]
      },
    ],
    [
      'GET /msi/token',
      (_, headers) =>
        headers.get('x-identity-header') === 'msi-secret'
          ? [200, { ...token(), expires_in: undefined, expires_on: String(Math.floor(end().getTime() / 1000)) }]
          : [401, { error: 'unauthorized' }],
    ],
  ])
  upstream.always((response, seen) => {
    const path = seen.url.split('?', 1)[0]!
    const service = services.get(`${seen.method} ${path}`)
    const headers = headersOf(seen)
    const [status, body, more] = service?.(seen, headers, new URLSearchParams(String(seen.body))) ?? [404, '']
    response.writeHead(status, { 'content-type': 'application/json', ...more })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  return {
    ...upstream,
    given,
    lives(seconds) {
      life = seconds
    },
    refuse(path, answer) {
      for (const name of services.keys()) if (name.endsWith(` ${path}`)) services.set(name, () => answer)
    },
    asked: path => upstream.seen.filter(({ url }) => url.split('?', 1)[0] === path),
  }
}

export function headersOf({ rawHeaders }: Seen): Headers {
  const found = new Map<string, string>()
  for (let at = 0; at < rawHeaders.length; at += 2) found.set(rawHeaders[at]!.toLowerCase(), rawHeaders[at + 1]!)
  return found
}

import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../shared/time/clock.ts'
import type { Provider } from '../config/routing-config.ts'
import { credentialHost } from '../host/credential-host.ts'
import { undiciTransport } from '../host/undici-transport.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { type CloudSigner, cloudSigner } from './cloud-signer.ts'
import type { Vars } from './credential-request.ts'
import { AGENT_TOKEN, type CloudVendors, cloudVendors, headersOf, WEB_TOKEN } from './testing/cloud-vendors.ts'

let vendors: CloudVendors
let home: string
let later = 0
const transport = undiciTransport({ connectMs: 1000 })
const clock: Clock = { now: () => new Date(Date.now() + later), monotonic: () => performance.now() + later }
beforeEach(async () => {
  vendors = await cloudVendors(() => Date.now() + later)
  home = await mkdtemp(join(tmpdir(), 'waybill-cloud-'))
  later = 0
})
afterEach(async () => {
  await vendors.close()
  await rm(home, { recursive: true, force: true })
})

const provider = (auth: Provider['auth'], more: Partial<Provider> = {}) =>
  ({
    id: 'cloud',
    auth,
    service: 'bedrock',
    region: 'eu-west-1',
    credentialsEnv: null,
    tokenUrl: null,
    ...more,
  }) as Provider
const signerOf = (env: Vars) =>
  cloudSigner({
    transport,
    clock,
    env: { AWS_EC2_METADATA_DISABLED: 'true', ...env },
    host: credentialHost({ HOME: home }),
  })
const call = () => ({
  url: 'https://bedrock.example/model/m/invoke',
  headers: [['content-type', 'application/json']] as HeaderList,
  body: new TextEncoder().encode('{}'),
  signal: AbortSignal.timeout(30_000),
})
const proofOf = async (signer: CloudSigner, of: Provider) => {
  const headers = new Map(await signer.signed(of, call()))
  return { key: /Credential=([^/]+)/.exec(headers.get('authorization') ?? '')?.[1], headers }
}
const keep = async (path: string, text: string) => {
  await mkdir(dirname(join(home, path)), { recursive: true })
  await writeFile(join(home, path), text)
  return join(home, path)
}
const expired: { status: number; headers: HeaderList } = {
  status: 403,
  headers: [['x-amzn-ErrorType', 'ExpiredTokenException:http://internal.amazon.com/coral/']],
}
const aws = provider('sigv4')

/** Each way by which AWS's own programs come to keys. */
const awsWays: [name: string, service: string, setUp: () => Promise<Vars>][] = [
  [
    'a web identity token',
    '/sts/',
    async () => ({
      AWS_WEB_IDENTITY_TOKEN_FILE: await keep('token', `${WEB_TOKEN}\n`),
      AWS_ROLE_ARN: 'arn:aws:iam::1:role/r',
      AWS_ENDPOINT_URL_STS: `${vendors.origin}/sts/`,
    }),
  ],
  [
    'the agent of a container',
    '/v1/credentials',
    async () => ({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${vendors.origin}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: await keep('agent', `${AGENT_TOKEN}\n`),
    }),
  ],
  [
    'the metadata service of an instance',
    '/latest/meta-data/iam/security-credentials/router-role',
    async () => ({ AWS_EC2_METADATA_DISABLED: 'false', AWS_EC2_METADATA_SERVICE_ENDPOINT: vendors.origin }),
  ],
  [
    'a role of a profile, by the keys of another one',
    '/sts/',
    async () => {
      await keep(
        '.aws/config',
        '[profile work]\nrole_arn = arn:aws:iam::1:role/r ; comment\nsource_profile = base\nexternal_id = ext\n',
      )
      await keep('.aws/credentials', '[base]\naws_access_key_id = AKIABASE\naws_secret_access_key = s3cr3t\n')
      return { AWS_PROFILE: 'work', AWS_ENDPOINT_URL_STS: `${vendors.origin}/sts/` }
    },
  ],
  [
    'a role of a profile, by the agent of a container',
    '/sts/',
    async () => {
      await keep('.aws/config', '[profile work]\nrole_arn = arn:aws:iam::1:role/r\ncredential_source = EcsContainer\n')
      return {
        AWS_PROFILE: 'work',
        AWS_ENDPOINT_URL_STS: `${vendors.origin}/sts/`,
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${vendors.origin}/v1/credentials`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN: AGENT_TOKEN,
      }
    },
  ],
  [
    'a single sign-on',
    '/sso/federation/credentials',
    async () => {
      await signOn({ accessToken: 'sso-access', expiresAt: new Date(Date.now() + 36_000_000).toISOString() })
      return { AWS_PROFILE: 'sso', AWS_ENDPOINT_URL_SSO: `${vendors.origin}/sso` }
    },
  ],
]

const signOn = async (token: object) => {
  await keep(
    '.aws/config',
    '[profile sso]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = r\n[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n',
  )
  return keep(`.aws/sso/cache/${createHash('sha1').update('corp').digest('hex')}.json`, JSON.stringify(token))
}

describe.each(awsWays)('keys of AWS by %s', (_, service, setUp) => {
  it('are asked for once by a crowd, before their end again, and after a refusal as outdated once more', async () => {
    const signer = signerOf(await setUp())
    expect(signer.has(aws)).toBe(true)
    const crowd = await Promise.all(Array.from({ length: 20 }, () => proofOf(signer, aws)))
    const first = vendors.given.keys.at(-1)
    expect(crowd.map(({ key }) => key)).toEqual(Array(20).fill(first))
    expect(crowd[0]!.headers.get('x-amz-security-token')).toBe(`session-of-${first}=`)
    expect(vendors.asked(service)).toHaveLength(1)
    // Four minutes before its end a call goes on with it while it is exchanged.
    later = 3_360_000
    expect((await proofOf(signer, aws)).key).toBe(first)
    await expect.poll(async () => (await proofOf(signer, aws)).key).not.toBe(first)
    expect(vendors.asked(service)).toHaveLength(2)
    const { headers } = await proofOf(signer, aws)
    expect(
      signer.refused(aws, [...headers], { status: 403, headers: [['x-amzn-errortype', 'AccessDeniedException']] }),
    ).toBe(false)
    expect(signer.refused(aws, [...headers], expired)).toBe(true)
    await proofOf(signer, aws)
    expect(vendors.asked(service)).toHaveLength(3)
    // A late refusal of keys that are not held any more drops none.
    expect(signer.refused(aws, [...headers], expired)).toBe(true)
    await proofOf(signer, aws)
    expect(vendors.asked(service)).toHaveLength(3)
  })

  it('are waited for by calls that come when they have all but ended', async () => {
    const signer = signerOf(await setUp())
    await proofOf(signer, aws)
    later = 3_570_000
    const crowd = await Promise.all(Array.from({ length: 10 }, () => proofOf(signer, aws)))
    expect(new Set(crowd.map(({ key }) => key))).toEqual(new Set([vendors.given.keys.at(-1)]))
    expect(vendors.asked(service)).toHaveLength(2)
  })

  it('serve until their end where the service has gone, and are refused in one sentence without a secret', async () => {
    const env = await setUp()
    const signer = signerOf(env)
    const { key } = await proofOf(signer, aws)
    vendors.refuse(service, [500, '{"SecretAccessKey":"leak","message":"leak"}'])
    later = 3_570_000
    expect((await proofOf(signer, aws)).key).toBe(key)
    later = 3_601_000
    const refusal = await proofOf(signer, aws).catch((error: Error) => error.message)
    expect(refusal).toMatch(/^provider "cloud" has no credential: .+, status 500$/)
    expect(refusal).not.toMatch(/leak|secret|session-of|Bearer|Basic|eyJ/)
  })
})

describe('keys of AWS', () => {
  it('that variables hold come first and are signed with as they are', async () => {
    const signer = signerOf({ ...(await awsWays[0]![2]()), AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: 'x' })
    expect((await proofOf(signer, aws)).key).toBe('AKIAENV')
    expect(vendors.seen).toEqual([])
  })

  it('give way to a Bedrock API key, which is sent and not signed', async () => {
    const signer = signerOf({
      AWS_BEARER_TOKEN_BEDROCK: 'ABSK-1',
      AWS_ACCESS_KEY_ID: 'AKIAENV',
      AWS_SECRET_ACCESS_KEY: 'x',
    })
    const { headers } = await proofOf(signer, aws)
    expect(headers.get('authorization')).toBe('Bearer ABSK-1')
    expect(signer.refused(aws, [...headers], { status: 403, headers: expired.headers })).toBe(false)
  })

  it('in a file are read again after other programs have replaced them', async () => {
    const write = (id: string) =>
      keep('.aws/credentials', `[default]\naws_access_key_id=${id}\naws_secret_access_key=x\naws_session_token=t\n`)
    await write('ASIAONE')
    const signer = signerOf({})
    const { key, headers } = await proofOf(signer, aws)
    expect(key).toBe('ASIAONE')
    await write('ASIATWO')
    expect(signer.refused(aws, [...headers], expired)).toBe(true)
    expect((await proofOf(signer, aws)).key).toBe('ASIATWO')
  })

  it('of a sign-on whose token has ended are had by its renewal, which is left where other programs find it', async () => {
    const path = await signOn({
      accessToken: 'old',
      expiresAt: new Date(Date.now() - 1000).toISOString(),
      refreshToken: 'sso-refresh',
      clientId: 'c',
      clientSecret: 's',
      startUrl: 'https://corp.example/start',
    })
    const env = {
      AWS_PROFILE: 'sso',
      AWS_ENDPOINT_URL_SSO: `${vendors.origin}/sso`,
      AWS_ENDPOINT_URL_SSO_OIDC: `${vendors.origin}/oidc/`,
    }
    expect((await proofOf(signerOf(env), aws)).key).toBe(vendors.given.keys[0])
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({
      accessToken: 'sso-access',
      refreshToken: 'sso-refresh-2',
      startUrl: 'https://corp.example/start',
    })
    vendors.refuse('/oidc/token', [400, { error: 'invalid_grant' }])
    await signOn({ accessToken: 'old', expiresAt: new Date(Date.now() - 1000).toISOString() })
    await expect(proofOf(signerOf(env), aws)).rejects.toThrow('has ended: run "aws sso login" with this profile')
  })

  it.each([
    [
      'AWS_CONTAINER_CREDENTIALS_FULL_URI',
      'http://169.254.169.254/x',
      'AWS_CONTAINER_CREDENTIALS_FULL_URI: plain http goes to this machine only',
    ],
    ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://127.0.0.1.evil.example/x', 'plain http goes to this machine only'],
    ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://evil.example/x', 'plain http goes to this machine only'],
    ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'file:///etc/passwd', 'expected an https address'],
    ['AWS_PROFILE', 'nowhere', 'AWS profile "nowhere" is in neither file'],
  ])('are not looked for with %s = %s', async (name, value, why) => {
    await expect(proofOf(signerOf({ [name]: value }), aws)).rejects.toThrow(why)
    expect(vendors.seen).toEqual([])
  })

  it.each([
    [
      '[profile p]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = q\n[profile q]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = p\n',
      'names itself as its source',
    ],
    ['[profile p]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = p\nmfa_serial = m\n', 'a code at each sign-in'],
    ['[profile p]\ncredential_process = /bin/keys\n', 'runs a program for its keys, which the router does not'],
    [
      '[profile p]\nrole_arn = arn:aws:iam::1:role/r\ncredential_source = constructor\n',
      'no source that it is assumed with',
    ],
    ['[profile p]\nregion = eu-west-1\n', 'holds no credentials'],
  ])('of the profile %j are refused', async (config, why) => {
    await keep('.aws/config', config)
    await expect(proofOf(signerOf({ AWS_PROFILE: 'p' }), aws)).rejects.toThrow(why)
  })

  it('are refused with the word of the token service', async () => {
    const env = { ...(await awsWays[0]![2]()), AWS_WEB_IDENTITY_TOKEN_FILE: await keep('other', 'stale') }
    await expect(proofOf(signerOf(env), aws)).rejects.toThrow(
      'gave no keys for the role, status 400 (InvalidIdentityToken)',
    )
  })

  it('are had with a new session token where the metadata service forgot the one in use', async () => {
    const role = '/latest/meta-data/iam/security-credentials/'
    let forgot = 0
    vendors.wrap(script => (response, seen, request) => {
      if (seen.url === role && forgot++ === 0) return void response.writeHead(401).end()
      return script(response, seen, request)
    })
    const signer = signerOf({ AWS_EC2_METADATA_DISABLED: 'false', AWS_EC2_METADATA_SERVICE_ENDPOINT: vendors.origin })
    expect((await proofOf(signer, aws)).key).toBe(vendors.given.keys[0])
    expect(vendors.asked('/latest/api/token')).toHaveLength(2)
  })

  it('that are nowhere make the provider one without a credential, for a minute', async () => {
    const signer = signerOf({})
    expect(signer.has(aws)).toBe(true)
    await expect(proofOf(signer, aws)).rejects.toThrow('no AWS credentials are set up')
    expect(signer.has(aws)).toBe(false)
    later = 61_000
    expect(signer.has(aws)).toBe(true)
  })

  it('do not hang on a service that takes the call and says nothing', async () => {
    vendors.always(() => undefined)
    const started = performance.now()
    const signer = signerOf({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${vendors.origin}/v1/credentials` })
    await expect(proofOf(signer, aws)).rejects.toThrow('did not answer within 1000 ms')
    expect(performance.now() - started).toBeLessThan(5000)
  })
})

const USER = {
  type: 'authorized_user',
  client_id: 'c',
  client_secret: 's',
  refresh_token: '1//good',
  quota_project_id: 'quota-1',
}
const google = (more: Partial<Provider> = {}) =>
  provider('oauth', { tokenUrl: `${vendors.origin}/google/token`, ...more })
const bearer = async (signer: CloudSigner, of: Provider) =>
  new Map(await signer.signed(of, call())).get('authorization')

describe('tokens of Google', () => {
  const external = (more: object = {}) => ({
    type: 'external_account',
    audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: `${vendors.origin}/google/token`,
    credential_source: { file: join(home, 'subject') },
    ...more,
  })

  it('are those of the user whom gcloud has signed in, with the project of the quota', async () => {
    await keep('.config/gcloud/application_default_credentials.json', JSON.stringify(USER))
    const signer = signerOf({})
    const headers = new Map(await signer.signed(google(), call()))
    expect([headers.get('authorization'), headers.get('x-goog-user-project')]).toEqual(['Bearer token-0', 'quota-1'])
    expect(signer.refused(google(), [...headers], { status: 403, headers: [] })).toBe(false)
    expect(signer.refused(google(), [...headers], { status: 401, headers: [] })).toBe(true)
    expect(await bearer(signer, google())).toBe('Bearer token-1')
  })

  it('are refused with the word of the endpoint where the sign-in was revoked', async () => {
    const path = await keep('adc.json', JSON.stringify({ ...USER, refresh_token: '1//revoked' }))
    await expect(bearer(signerOf({ GOOGLE_APPLICATION_CREDENTIALS: path }), google())).rejects.toThrow(
      `provider "cloud" has no credential: Google's token endpoint gave no token, status 400 (invalid_grant)`,
    )
  })

  it('are exchanged for the token of another identity provider, and for that of a service account', async () => {
    await keep('subject', JSON.stringify({ id_token: WEB_TOKEN }))
    const account = external({
      credential_source: {
        file: join(home, 'subject'),
        format: { type: 'json', subject_token_field_name: 'id_token' },
      },
      service_account_impersonation_url: `${vendors.origin}/iam/sa:generateAccessToken`,
    })
    const path = await keep('adc.json', JSON.stringify(account))
    const signer = signerOf({ GOOGLE_APPLICATION_CREDENTIALS: path })
    expect(await bearer(signer, google({ tokenUrl: null }))).toBe('Bearer impersonated-1')
    const asked = new URLSearchParams(String(vendors.asked('/google/token')[0]!.body))
    expect(asked.get('scope')).toBe('https://www.googleapis.com/auth/cloud-platform')
  })

  it('are those of the machine, of its metadata server alone', async () => {
    const env = { GCE_METADATA_HOST: vendors.origin.slice('http://'.length) }
    expect(await bearer(signerOf(env), google())).toBe('Bearer token-0')
    vendors.refuse('/computeMetadata/v1/instance/service-accounts/default/token', [
      200,
      { access_token: 'of another program' },
    ])
    await expect(bearer(signerOf(env), google())).rejects.toThrow('what answers is not the metadata server')
  })

  it('are not had by what the router does not read, and secrets go to https alone', async () => {
    for (const [account, why] of [
      [
        external({ credential_source: { executable: { command: '/bin/x' } } }),
        'of a form that the router does not read',
      ],
      [external({ credential_source: { environment_id: 'aws1' } }), 'of a form that the router does not read'],
      [{ type: 'impersonated_service_account' }, 'of a form that the router does not read'],
      [
        external({
          token_url: 'http://elsewhere.example/token',
          credential_source: { file: await keep('subject', 'x') },
        }),
        'token_url: plain http goes to this machine only',
      ],
    ] as const) {
      const path = await keep('adc.json', JSON.stringify(account))
      await expect(
        bearer(signerOf({ GOOGLE_APPLICATION_CREDENTIALS: path }), google({ tokenUrl: null })),
      ).rejects.toThrow(why)
    }
    expect(vendors.seen).toEqual([])
  })
})

describe('tokens of Microsoft Entra', () => {
  const entra = provider('entra')
  const application = () => ({
    AZURE_TENANT_ID: 'tenant-1',
    AZURE_CLIENT_ID: 'client-1',
    AZURE_AUTHORITY_HOST: `${vendors.origin}/`,
  })

  it.each([
    ['the secret of an application', async () => ({ ...application(), AZURE_CLIENT_SECRET: 'entra-secret' })],
    [
      'the token of a workload',
      async () => ({ ...application(), AZURE_FEDERATED_TOKEN_FILE: await keep('federated', WEB_TOKEN) }),
    ],
    [
      'the managed identity of App Service',
      async () => ({ IDENTITY_ENDPOINT: `${vendors.origin}/msi/token`, IDENTITY_HEADER: 'msi-secret' }),
    ],
    [
      'the managed identity of a virtual machine',
      async () => ({ AZURE_POD_IDENTITY_AUTHORITY_HOST: vendors.origin, AZURE_CLIENT_ID: 'client-1' }),
    ],
  ])('are had by %s, once for a crowd and again before their end and after a 401', async (_, setUp) => {
    const signer = signerOf(await setUp())
    expect(signer.has(entra)).toBe(true)
    const crowd = await Promise.all(Array.from({ length: 20 }, () => bearer(signer, entra)))
    expect(new Set(crowd)).toEqual(new Set(['Bearer token-0']))
    later = 3_570_000
    expect(await bearer(signer, entra)).toBe('Bearer token-1')
    expect(signer.refused(entra, [['authorization', 'Bearer token-1']], { status: 401, headers: [] })).toBe(true)
    expect(await bearer(signer, entra)).toBe('Bearer token-2')
    expect(vendors.seen).toHaveLength(3)
    const headers = headersOf(vendors.seen[0]!)
    if (vendors.seen[0]!.method === 'GET')
      expect(headers.get('metadata') ?? headers.get('x-identity-header')).toBeTruthy()
  })

  it('are refused with the word of Entra alone', async () => {
    await expect(bearer(signerOf({ ...application(), AZURE_CLIENT_SECRET: 'wrong' }), entra)).rejects.toThrow(
      'provider "cloud" has no credential: Microsoft Entra gave no token, status 401 (invalid_client)',
    )
  })
})

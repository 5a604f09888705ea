import { z } from 'zod'
import { TransportError } from '../upstream/transport.ts'
import { type NamedSources, profileKeys } from './aws-profile.ts'
import { type AwsKeys, webIdentityKeys } from './aws-sts.ts'
import {
  ask,
  type CredentialReply,
  type Expiring,
  fileOf,
  LOCAL_TIMEOUT_MS,
  NoSourceError,
  parsed,
  refusalWord,
  type SourceDeps,
} from './credential-request.ts'
import { containerUrl, instanceUrl } from './vendor-addresses.ts'

/** The keys of the first source that is set up, in the order of AWS's own programs; a source that fails is not passed over. */
export async function awsKeys(deps: SourceDeps, region: string): Promise<Expiring<AwsKeys>> {
  return (
    environmentKeys(deps) ??
    (await profileKeys(deps, region, sources)) ??
    (await tokenFileKeys(deps, region)) ??
    (await containerKeys(deps)) ??
    (await instanceKeys(deps))
  )
}

const sources: NamedSources = {
  Environment: environmentKeys,
  EcsContainer: containerKeys,
  Ec2InstanceMetadata: instanceKeys,
}

function environmentKeys({ env }: SourceDeps): Expiring<AwsKeys> | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: token } = env
  if (!accessKeyId || !secretAccessKey) return undefined
  return { value: { accessKeyId, secretAccessKey, sessionToken: token || undefined }, until: undefined }
}

async function tokenFileKeys(deps: SourceDeps, region: string): Promise<Expiring<AwsKeys> | undefined> {
  const { AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile, AWS_ROLE_ARN: arn, AWS_ROLE_SESSION_NAME: sessionName } = deps.env
  if (!tokenFile || !arn) return undefined
  return webIdentityKeys(deps, region, { role: { arn, sessionName }, tokenFile })
}

const AGENT = 'the container credentials endpoint'

async function containerKeys(deps: SourceDeps): Promise<Expiring<AwsKeys> | undefined> {
  const url = containerUrl(deps.env)
  if (url === undefined) return undefined
  const { AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file, AWS_CONTAINER_AUTHORIZATION_TOKEN: plain } = deps.env
  const token = file ? await fileOf(deps, file, 'the container authorization token') : plain
  if (token && /[\r\n]/.test(token.trim()))
    throw new TransportError('the container authorization token has a line break')
  const reply = await ask(deps, {
    name: AGENT,
    url,
    headers: token ? [['authorization', token.trim()]] : [],
    ms: LOCAL_TIMEOUT_MS,
  })
  return keysOf(AGENT, reply)
}

const INSTANCE = 'the instance metadata service'
const ROLES = '/latest/meta-data/iam/security-credentials/'
const TOKEN_S = '21600'

/** Version 2 of the service only: a request without a session token could be made by what only forwards requests. */
async function instanceKeys(deps: SourceDeps): Promise<Expiring<AwsKeys>> {
  const origin = deps.host && instanceUrl(deps.env)
  if (origin === undefined) throw new NoSourceError('no AWS credentials are set up')
  let token = await sessionToken(deps, origin)
  const get = async (path: string): Promise<CredentialReply> => {
    const one = () =>
      ask(deps, {
        name: INSTANCE,
        url: origin + path,
        headers: [['x-aws-ec2-metadata-token', token]],
        ms: LOCAL_TIMEOUT_MS,
      })
    const reply = await one()
    if (reply.status !== 401) return reply
    token = await sessionToken(deps, origin)
    return one()
  }
  const roles = await get(ROLES)
  if (roles.status === 404) throw new NoSourceError('no AWS credentials are set up, and the instance has no role')
  const role = roles.text.trim().split('\n', 1)[0] ?? ''
  if (roles.status !== 200 || role === '') throw new TransportError(`${INSTANCE} named no role, status ${roles.status}`)
  return keysOf(INSTANCE, await get(ROLES + encodeURIComponent(role)))
}

async function sessionToken(deps: SourceDeps, origin: string): Promise<string> {
  const given = deps.env.AWS_EC2_METADATA_SERVICE_ENDPOINT
  const reply = await ask(deps, {
    name: INSTANCE,
    method: 'PUT',
    url: `${origin}/latest/api/token`,
    headers: [
      ['x-aws-ec2-metadata-token-ttl-seconds', TOKEN_S],
      ['content-length', '0'],
    ],
    ms: LOCAL_TIMEOUT_MS,
  }).catch((cause: unknown) => {
    // Away from such a machine there is no service at all, and inside a container of one the hop limit hides it.
    if (given) throw cause
    throw new NoSourceError(
      'no AWS credentials are set up, and no instance metadata service answers (in a container it needs a hop limit of 2)',
      { cause },
    )
  })
  if (reply.status !== 200 || reply.text === '')
    throw new TransportError(`${INSTANCE} gave no session token, status ${reply.status}`)
  return reply.text.trim()
}

const served = z.object({
  Code: z.literal('Success').optional(),
  AccessKeyId: z.string().min(1),
  SecretAccessKey: z.string().min(1),
  Token: z.string().min(1),
  Expiration: z.iso.datetime({ offset: true }),
})

function keysOf(name: string, { status, text }: CredentialReply): Expiring<AwsKeys> {
  const read = status === 200 ? parsed(served, text) : undefined
  if (read === undefined) throw new TransportError(`${name} gave no keys, status ${status}${refusalWord(text)}`)
  return {
    value: { accessKeyId: read.AccessKeyId, secretAccessKey: read.SecretAccessKey, sessionToken: read.Token },
    until: Date.parse(read.Expiration),
  }
}

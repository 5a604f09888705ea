import type { HeaderList } from '../upstream/transport.ts'
import { TransportError } from '../upstream/transport.ts'
import { ask, type Expiring, fileOf, form, REMOTE_TIMEOUT_MS, type SourceDeps } from './credential-request.ts'
import { serviceUrl } from './vendor-addresses.ts'

export interface AwsKeys {
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | undefined
}

export interface Role {
  arn: string
  sessionName: string | undefined
  externalId?: string | undefined
  durationS?: string | undefined
}

const VERSION = '2011-06-15'
const NAME = 'the AWS token service'

/** Keys of a role, by a token that the platform keeps in a file and replaces in time. */
export async function webIdentityKeys(
  deps: SourceDeps,
  region: string,
  { role, tokenFile }: { role: Role; tokenFile: string },
): Promise<Expiring<AwsKeys>> {
  const token = (await fileOf(deps, tokenFile, 'the web identity token')).trim()
  return keysFrom(deps, region, {
    Action: 'AssumeRoleWithWebIdentity',
    WebIdentityToken: token,
    ...roleFields(deps, role),
  })
}

/** Keys of a role, by other keys. */
export async function assumedKeys(
  deps: SourceDeps,
  region: string,
  { role, by }: { role: Role; by: AwsKeys },
): Promise<Expiring<AwsKeys>> {
  return keysFrom(deps, region, { Action: 'AssumeRole', ExternalId: role.externalId, ...roleFields(deps, role) }, by)
}

const roleFields = ({ clock }: SourceDeps, { arn, sessionName, durationS }: Role) => ({
  Version: VERSION,
  RoleArn: arn,
  RoleSessionName: sessionName || `waybill-${clock.now().getTime()}`,
  DurationSeconds: durationS,
})

async function keysFrom(
  deps: SourceDeps,
  region: string,
  fields: Record<string, string | undefined>,
  by?: AwsKeys,
): Promise<Expiring<AwsKeys>> {
  const url = serviceUrl(deps.env, 'sts', region)
  const { headers, body } = form(fields)
  const proof = by ? await signature(deps, { url, headers, body, service: 'sts', region, keys: by }) : []
  const reply = await ask(deps, {
    name: NAME,
    method: 'POST',
    url,
    headers: [...headers, ...proof],
    body,
    ms: REMOTE_TIMEOUT_MS,
  })
  const member = (name: string) => xmlText(reply.text, name)
  const accessKeyId = member('AccessKeyId')
  const secretAccessKey = member('SecretAccessKey')
  const until = Date.parse(member('Expiration') ?? '')
  if (reply.status !== 200 || !accessKeyId || !secretAccessKey || Number.isNaN(until)) {
    const code = member('Code') ?? ''
    const word = /^[A-Za-z.]{1,64}$/.test(code) ? ` (${code})` : ''
    throw new TransportError(`${NAME} gave no keys for the role, status ${reply.status}${word}`)
  }
  return { value: { accessKeyId, secretAccessKey, sessionToken: member('SessionToken') }, until }
}

/** The text of the first element of a name; such answers have no attributes, and nothing in them is nested. */
function xmlText(xml: string, name: string): string | undefined {
  const open = xml.indexOf(`<${name}>`)
  const close = open < 0 ? -1 : xml.indexOf(`</${name}>`, open)
  if (close < 0) return undefined
  const text = xml.slice(open + name.length + 2, close).trim()
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (_, entity: keyof typeof ENTITIES) => ENTITIES[entity])
}
const ENTITIES = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }

/** Headers that say what is sent; the others are the transport's and may change on the way. */
const SIGNED = new Set(['accept', 'content-type'])
const PROOF = ['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256']

/** The headers that prove who makes a call, over its final bytes. */
export async function signature(
  { clock }: Pick<SourceDeps, 'clock'>,
  call: {
    url: string
    headers: HeaderList
    body: Uint8Array<ArrayBuffer>
    service: string
    region: string
    keys: AwsKeys
  },
): Promise<HeaderList> {
  const { AwsV4Signer } = await import('aws4fetch')
  const { accessKeyId, secretAccessKey, sessionToken } = call.keys
  const { headers } = await new AwsV4Signer({
    method: 'POST',
    url: call.url,
    accessKeyId,
    secretAccessKey,
    body: call.body,
    headers: call.headers.filter(([name]) => SIGNED.has(name.toLowerCase())),
    service: call.service,
    region: call.region,
    ...(sessionToken && { sessionToken }),
    datetime: clock
      .now()
      .toISOString()
      .replace(/[-:]|\.\d{3}/g, ''),
  }).sign()
  return PROOF.flatMap((name): HeaderList => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value]]
  })
}

import { TransportError } from '../upstream/transport.ts'
import {
  ask,
  type Expiring,
  fileOf,
  form,
  LOCAL_TIMEOUT_MS,
  NoSourceError,
  REMOTE_TIMEOUT_MS,
  type SourceDeps,
  tokenOf,
} from './credential-request.ts'
import { metadataOrigin, safe } from './vendor-addresses.ts'

const RESOURCE = 'https://cognitiveservices.azure.com'
const ENTRA = 'Microsoft Entra'
const IDENTITY = 'the managed identity'

/** An access token of the first source that is set up, in the order of Azure's own programs. */
export async function entraToken(deps: SourceDeps): Promise<Expiring<string>> {
  const { env } = deps
  const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client } = env
  if (tenant && client && env.AZURE_CLIENT_SECRET)
    return granted(deps, tenant, { client_id: client, client_secret: env.AZURE_CLIENT_SECRET })
  if (tenant && client && env.AZURE_FEDERATED_TOKEN_FILE) {
    const assertion = await fileOf(deps, env.AZURE_FEDERATED_TOKEN_FILE, 'the federated token')
    return granted(deps, tenant, {
      client_id: client,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion.trim(),
    })
  }
  return identityToken(deps, client || undefined)
}

async function granted(deps: SourceDeps, tenant: string, fields: Record<string, string>): Promise<Expiring<string>> {
  const { AZURE_AUTHORITY_HOST: given } = deps.env
  if (!/^[A-Za-z0-9.-]{1,128}$/.test(tenant)) throw new TransportError('AZURE_TENANT_ID is not the id or name of one')
  const host = /^https?:\/\//.test(given ?? '') ? given! : `https://${given || 'login.microsoftonline.com'}`
  const url = `${safe(host, 'AZURE_AUTHORITY_HOST').replace(/\/+$/, '')}/${tenant}/oauth2/v2.0/token`
  const asked = form({ grant_type: 'client_credentials', scope: `${RESOURCE}/.default`, ...fields })
  return tokenOf(deps, ENTRA, await ask(deps, { name: ENTRA, method: 'POST', url, ...asked, ms: REMOTE_TIMEOUT_MS }))
}

/** Of App Service and its like by the address that they set, of a virtual machine by the metadata service. */
async function identityToken(deps: SourceDeps, client: string | undefined): Promise<Expiring<string>> {
  const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: secret, AZURE_POD_IDENTITY_AUTHORITY_HOST: given } = deps.env
  const who: Record<string, string> = client ? { client_id: client } : {}
  const urlOf = (base: string, version: string) => {
    const url = new URL(base)
    url.search = String(new URLSearchParams({ 'api-version': version, resource: RESOURCE, ...who }))
    return url.href
  }
  if (endpoint && secret) {
    const reply = await ask(deps, {
      name: IDENTITY,
      url: urlOf(metadataAddress(endpoint), '2019-08-01'),
      headers: [['x-identity-header', secret]],
      ms: REMOTE_TIMEOUT_MS,
    })
    return identityAnswer(deps, reply)
  }
  if (!given && deps.host === undefined) throw new NoSourceError('no Azure credentials are set up')
  const origin = metadataOrigin(given || '169.254.169.254', 'AZURE_POD_IDENTITY_AUTHORITY_HOST')
  const reply = await ask(deps, {
    name: IDENTITY,
    url: urlOf(`${origin}/metadata/identity/oauth2/token`, '2018-02-01'),
    headers: [['metadata', 'true']],
    ms: given ? REMOTE_TIMEOUT_MS : LOCAL_TIMEOUT_MS,
  }).catch((cause: unknown) => {
    if (given) throw cause
    throw new NoSourceError('no Azure credentials are set up, and no managed identity answers', { cause })
  })
  return identityAnswer(deps, reply)
}

function identityAnswer(deps: SourceDeps, reply: Awaited<ReturnType<typeof ask>>): Expiring<string> {
  return tokenOf(deps, IDENTITY, reply)
}

/** Set by the platform, on the machine itself and in plain http. */
function metadataAddress(endpoint: string): string {
  if (!URL.canParse(endpoint)) throw new TransportError('IDENTITY_ENDPOINT: expected an address')
  return endpoint
}

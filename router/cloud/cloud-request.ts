import { cutsOf, withoutSpans } from '../../shared/dialects/json-cut.ts'
import { eachMember, keyTable, readSpan, wholeObject } from '../../shared/dialects/json-members.ts'
import { joined, utf8 } from '../../shared/sign/bytes.ts'
import type { Provider } from '../config/routing-config.ts'

/** Hosts that serve the messages dialect under addresses, bodies and credentials of their own (dialects §4). */
export type CloudHost = 'sigv4' | 'oauth'

export function cloudHost({ auth }: Pick<Provider, 'auth'>): CloudHost | undefined {
  return auth === 'sigv4' || auth === 'oauth' ? auth : undefined
}

const VERSION = { sigv4: 'bedrock-2023-05-31', oauth: 'vertex-2023-10-16' }
const OURS = keyTable(['model', 'stream', 'anthropic_version', 'anthropic_beta'])
const CUT: Readonly<Record<CloudHost, readonly string[]>> = {
  sigv4: ['model', 'stream', 'anthropic_version', 'anthropic_beta'],
  // Its streams are asked for by the address and by the member alike.
  oauth: ['model', 'anthropic_version'],
}

/** A messages body as such a host reads it: what the address says is cut out, the version goes first; every other byte stays. */
export function cloudBody(body: Uint8Array, host: CloudHost, betas: readonly string[]): Uint8Array<ArrayBuffer> {
  let open = 0
  const members: { start: number; end: number; drop: boolean }[] = []
  wholeObject(body, c => {
    open = c.at + 1
    eachMember(c, OURS, (key, start) => {
      const { end } = readSpan(c)
      members.push({ start, end, drop: key !== undefined && CUT[host].includes(key) })
    })
  })
  const first: [string, unknown][] = [['anthropic_version', VERSION[host]]]
  if (host === 'sigv4' && betas.length > 0) first.push(['anthropic_beta', betas])
  const text = first.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')
  const kept = withoutSpans(body, cutsOf(members))
  const comma = members.some(({ drop }) => !drop) ? ',' : ''
  return joined([kept.subarray(0, open), utf8(text + comma), kept.subarray(open)])
}

/** Where a call for a model goes. */
export function cloudUrl({ baseUrl, project, region }: Provider, host: CloudHost, model: string, stream: boolean) {
  const name = encodeURIComponent(model)
  if (host === 'sigv4') return `${baseUrl}/model/${name}/${stream ? 'invoke-with-response-stream' : 'invoke'}`
  const root = baseUrl.endsWith('/v1') ? baseUrl : `${baseUrl}/v1`
  const place = `projects/${encodeURIComponent(project ?? '')}/locations/${encodeURIComponent(region ?? '')}`
  return `${root}/${place}/publishers/anthropic/models/${name}:${stream ? 'streamRawPredict' : 'rawPredict'}`
}

/** The address of a deployment of Azure OpenAI; undefined for a provider that has none. */
export function deploymentUrl({ baseUrl, apiVersion }: Provider, model: string): string | undefined {
  if (apiVersion === null) return undefined
  const root = baseUrl.replace(/\/openai$/, '')
  return `${root}/openai/deployments/${encodeURIComponent(model)}/chat/completions?api-version=${apiVersion}`
}

/** The values of every `anthropic-beta` header. */
export function betasOf(headers: readonly (readonly [string, string])[]): string[] {
  return headers
    .filter(([name]) => name.toLowerCase() === 'anthropic-beta')
    .flatMap(([, value]) => value.split(','))
    .map(value => value.trim())
    .filter(value => value !== '')
}

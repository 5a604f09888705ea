import { z } from 'zod'
import { VERSION } from '../version.ts'

/** Where a collector is. What fails on the way to it is logged with its address, so that no password may stand there. */
export const otlpEndpoint = z
  .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
  .refine(text => !/^https?:\/\/[^/?#]*@/.test(text), {
    error: 'expected no name and password in the address: put them into OTEL_EXPORTER_OTLP_HEADERS',
  })

/** `name=value,name=value`: values are percent-encoded. */
const pairs = (nameForm: RegExp) =>
  z.string().transform((text, ctx): Record<string, string> => {
    const found: Record<string, string> = {}
    for (const pair of text.split(',').filter(part => part.trim() !== '')) {
      const at = pair.indexOf('=')
      const name = pair.slice(0, Math.max(at, 0)).trim()
      if (!nameForm.test(name)) {
        ctx.addIssue({ code: 'custom', message: 'expected name=value, with commas between them' })
        return z.NEVER
      }
      found[name] = decoded(pair.slice(at + 1).trim())
    }
    return found
  })

/** As OTEL_RESOURCE_ATTRIBUTES has them. */
export const otelAttributes = pairs(/^\S+$/)

/** As OTEL_EXPORTER_OTLP_HEADERS has them; names of headers have no case. */
export const otlpHeaders = pairs(/^[\w!#$%&'*+.^`|~-]+$/).transform(headers =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
)

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The address of the trace service below an endpoint, unless it is that already. */
function tracesUrl(endpoint: string): string {
  const plain = endpoint.replace(/\/+$/, '')
  return plain.endsWith('/v1/traces') ? plain : `${plain}/v1/traces`
}

/** Where a collector of traces is, and who sends them. */
export interface CollectorPlace {
  url: string
  headers: Readonly<Record<string, string>>
  /** Of what sends, its name among them. */
  resource: Readonly<Record<string, string>>
}

/** The same, with the way to it. */
export interface Collector extends CollectorPlace {
  fetch: (url: string, init: RequestInit) => Promise<Response>
}

interface CollectorEnv {
  PLATFORM_OTLP_ENDPOINT?: string | undefined
  OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined
  OTEL_EXPORTER_OTLP_HEADERS: Record<string, string>
  OTEL_RESOURCE_ATTRIBUTES: Record<string, string>
  OTEL_SERVICE_NAME?: string | undefined
}

/** Undefined while the operator names none: nothing is traced then. */
export function collectorPlace(env: CollectorEnv, service: string): CollectorPlace | undefined {
  const endpoint = env.PLATFORM_OTLP_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT
  if (endpoint === undefined) return undefined
  const resource = {
    'service.name': service,
    ...env.OTEL_RESOURCE_ATTRIBUTES,
    ...(env.OTEL_SERVICE_NAME && { 'service.name': env.OTEL_SERVICE_NAME }),
    'service.version': VERSION,
  }
  return { url: tracesUrl(endpoint), headers: env.OTEL_EXPORTER_OTLP_HEADERS, resource }
}

export function collectorOf(env: CollectorEnv, by: typeof fetch = fetch): Collector | undefined {
  const place = collectorPlace(env, 'waybill-runtime')
  return place && { ...place, fetch: (url, init) => by(url, init) }
}

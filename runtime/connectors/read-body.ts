import type { VendorProblem } from './definition.ts'
import { messageIn } from './vendor-failure.ts'

/** A member of a vendor's body, any depth; undefined where the body is made otherwise. */
export function at(body: unknown, ...names: readonly (string | number)[]): unknown {
  let found = body
  for (const name of names) {
    if (typeof found !== 'object' || found === null) return undefined
    found = (found as Record<string | number, unknown>)[name]
  }
  return found
}

/** The same, where it is a text with something in it. */
export function textAt(body: unknown, ...names: readonly (string | number)[]): string | undefined {
  const found = at(body, ...names)
  if (typeof found === 'number') return String(found)
  return typeof found === 'string' && found !== '' ? found : undefined
}

export function arrayAt(body: unknown, ...names: readonly (string | number)[]): readonly unknown[] {
  const found = at(body, ...names)
  return Array.isArray(found) ? found : []
}

/** Google says with 403 that it is asked too often, and why only beside the message. */
export function rateLimitProblem(body: unknown, status: number): VendorProblem | undefined {
  if (status !== 403) return undefined
  const limited = arrayAt(body, 'error', 'errors').some(one => GOOGLE_LIMITS.has(textAt(one, 'reason') ?? ''))
  return limited ? { message: messageIn(body) ?? 'rate limit exceeded', limited } : undefined
}

const GOOGLE_LIMITS = new Set(['rateLimitExceeded', 'userRateLimitExceeded'])

interface Link {
  url: string
  parameters: Readonly<Record<string, string>>
}

const LINK = /<([^<>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^",;\s]+))*)/g
const PARAMETER = /;\s*([\w-]+)\s*=\s*(?:"([^"]*)"|([^",;\s]+))/g

/** The link of a relation in a Link header (RFC 8288); the first, where several say the same. */
export function linkTo(relation: string, headers: Headers): Link | undefined {
  for (const [, url = '', rest = ''] of (headers.get('link') ?? '').matchAll(LINK)) {
    const parameters: Record<string, string> = {}
    for (const [, name = '', quoted, bare] of rest.matchAll(PARAMETER)) parameters[name] ??= quoted ?? bare ?? ''
    if (parameters.rel?.split(/\s+/).includes(relation)) return { url, parameters }
  }
  return undefined
}

/** A parameter of the query of the link to the next page. */
export function nextParameter(name: string, headers: Headers): string | undefined {
  const link = linkTo('next', headers)
  return (link && URL.parse(link.url, 'http://relative')?.searchParams.get(name)) ?? undefined
}

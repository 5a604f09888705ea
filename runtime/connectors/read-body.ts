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
export function askedTooOften(body: unknown, status: number): VendorProblem | undefined {
  if (status !== 403) return undefined
  const limited = arrayAt(body, 'error', 'errors').some(one => GOOGLE_LIMITS.has(textAt(one, 'reason') ?? ''))
  return limited ? { message: messageIn(body) ?? 'rate limit exceeded', limited } : undefined
}

const GOOGLE_LIMITS = new Set(['rateLimitExceeded', 'userRateLimitExceeded'])

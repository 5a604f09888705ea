import type { UpstreamError } from './candidate.ts'
import { tryParseJson } from './json-text.ts'
import type { Json, JsonObject } from './json-value.ts'
import { asArray, asObject, asString, isArray, isObject } from './json-value.ts'

/**
 * The error an object of either dialect carries, also in the looser spellings of compatible hosts (`error` a plain string,
 * `code` a number, or the members at the top); null when there is none.
 */
export function errorIn(value: Json | undefined): UpstreamError | null {
  if (!isObject(value)) return null
  const { error } = value
  if (typeof error === 'string' && error !== '')
    return { type: asString(value.type), message: error, code: codeOf(value.code), param: null }
  if (isObject(error)) {
    return {
      type: asString(error.type),
      message: asString(error.message) ?? '',
      code: codeOf(error.code),
      param: asString(error.param),
      ...quotaOf(error),
    }
  }
  if (value.type === 'error') {
    return { type: null, message: asString(value.message) ?? '', code: codeOf(value.code), param: null }
  }
  return null
}

/** What Google says of a quota beside its sentence: when to come back, and whether that is the next day. OpenRouter says the latter in it. */
function quotaOf({ details: given, message }: JsonObject): Pick<UpstreamError, 'waitMs' | 'isOfDay'> {
  const details = asArray(given).map(asObject)
  const [, seconds] = details.map(({ retryDelay }) => DELAY.exec(asString(retryDelay) ?? '')).find(Boolean) ?? []
  const violations = details.flatMap(({ violations: list }) => asArray(list).map(asObject))
  const isOfDay =
    violations.some(({ quotaId }) => /PerDay/.test(asString(quotaId) ?? '')) ||
    /\bfree-models-per-day\b/.test(asString(message) ?? '')
  return { ...(seconds !== undefined && { waitMs: Number(seconds) * 1000 }), ...(isOfDay && { isOfDay }) }
}

const DELAY = /^(\d{1,9}(?:\.\d{1,9})?)s$/

/** Gemini's address for OpenAI clients puts the object of an error into a list. */
export function outOfList(value: Json | undefined): Json | undefined {
  return isArray(value) ? value[0] : value
}

/** The error of an HTTP error body; null for a body that is no error object (HTML of a proxy, nothing at all). */
export function errorOfBody(body: Uint8Array): UpstreamError | null {
  const value = outOfList(tryParseJson(body))
  const error = errorIn(value)
  if (error !== null || !isObject(value)) return error
  const message = asString(value.message) ?? asString(value.detail) ?? firstSentence(value.detail ?? value.errors)
  return message === null ? null : { type: asString(value.type), message, code: codeOf(value.code), param: null }
}

/** Of a list of errors: what reads a body with pydantic has one, and Cloudflare. */
function firstSentence(list: Json | undefined): string | null {
  const { msg, message, loc } = asObject(asArray(list)[0])
  const said = asString(msg) ?? asString(message)
  return said === null || !isArray(loc) ? said : `${loc.map(String).join('.')}: ${said}`
}

function codeOf(code: Json | undefined): string | null {
  return typeof code === 'number' ? String(code) : asString(code)
}

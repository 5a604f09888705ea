import { zValidator } from '@hono/zod-validator'
import type { MiddlewareHandler } from 'hono'
import type { z } from 'zod'
import { readJson } from '../json/read-json.ts'
import { isObject } from '../wire/aliases.ts'
import { check, type Detail, sentence } from '../wire/issues.ts'
import { differing, remember, repeated, splitReadOnly } from '../wire/read-only.ts'
import { ApiError } from './api-error.ts'
import { readBody } from './body-limit.ts'

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

type JsonValidated<T extends z.ZodType> = MiddlewareHandler<
  object,
  string,
  { in: { json: z.input<T> }; out: { json: z.output<T> } }
>

/**
 * Reads and checks a JSON body. A missing content type and any `+json` type are read as JSON; an empty body counts as
 * absent, so that a schema may allow it.
 */
export function jsonBody<T extends z.ZodType>(schema: T, maxBytes: number): JsonValidated<T> {
  return async (c, next) => {
    c.req.addValidatedData('json', readBodyAs(schema, await jsonBytes(c.req.raw, maxBytes)) as object)
    await next()
  }
}

/** The bytes of a body that may be JSON by its type. */
export async function jsonBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const type = request.headers.get('content-type') ?? undefined
  if (isJson(type)) return readBody(request, maxBytes)
  throw new ApiError('bad_json', `content-type ${type} is not accepted here: send application/json`)
}

/** Of a content type: whether its body is read as JSON. */
export const isJson = (type: string | undefined): boolean => type === undefined || JSON_TYPE.test(type)

/** The JSON of a whole body, checked. Generated clients send `null` for a body that may be left out. */
export function readBodyAs<T extends z.ZodType>(schema: T, bytes: Uint8Array): z.output<T> {
  const body = parseJson(bytes)
  const isLeftOut = body === null && schema.safeParse(undefined).success
  const { rest, members } = splitReadOnly(schema, isLeftOut ? undefined : body)
  const checked = check(schema, rest)
  if (!checked.ok) throw invalid(checked.details)
  remember(checked.value, members)
  return checked.value
}

/** Refuses a body that repeats members of its record otherwise than the record has them; a body that repeats none costs no read. */
export async function sameRecord(body: object, read: () => object | Promise<object>): Promise<void> {
  const members = repeated(body)
  if (members === undefined) return
  const found = differing(members, await read())
  if (found.length > 0) throw invalid(found)
}

/** Checks the parameters of the path or the query; the refusal names each one that does not fit. */
export function checked<T extends z.ZodType, P extends 'param' | 'query'>(place: P, schema: T) {
  return zValidator(place, schema, ({ success, data }) => {
    if (success) return
    // Read once more, for the words of this service.
    const found = check(schema, data)
    if (!found.ok) throw invalid(found.details.map(detail => onceOnly(detail, data)))
  })
}

/** A parameter that is there twice comes as a list, which is no fault of either value. */
function onceOnly({ path, message }: Detail, data: unknown): Detail {
  const value = isObject(data) ? data[path] : undefined
  return { path, message: Array.isArray(value) ? 'expected once, and it is given more than once' : message }
}

/** What reads and writes values calls itself for each level, on a stack that has an end. */
const MOST_LEVELS = 500

/** The JSON of a whole body; undefined of an empty one. */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) return undefined
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch (cause) {
    throw new ApiError('bad_json', 'the body is not JSON: it is not UTF-8', { cause })
  }
  if (isDeeper(text, MOST_LEVELS)) {
    const message = `the body is nested too deep: put its objects and arrays at most ${MOST_LEVELS} levels into each other`
    throw new ApiError('bad_json', message)
  }
  try {
    return readJson(text)
  } catch (cause) {
    const why = cause instanceof SyntaxError ? cause.message : String(cause)
    throw new ApiError('bad_json', `the body is not JSON: ${why.slice(0, 200)}`, { cause })
  }
}

function invalid(found: readonly Detail[]): ApiError<'validation_failed'> {
  return new ApiError('validation_failed', sentence(found), { details: found })
}

/** Whether objects and arrays of a JSON text stand deeper in each other than that. */
export function isDeeper(text: string, most: number): boolean {
  if (!hasMoreBrackets(text, most)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const one = text.charCodeAt(at)
    if (one === QUOTE) at = endOfString(text, at)
    else if (one === OPEN_BRACE || one === OPEN_BRACKET) {
      depth++
      if (depth > most) return true
    } else if (one === CLOSE_BRACE || one === CLOSE_BRACKET) depth--
  }
  return false
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Most texts have fewer brackets than they may have levels. */
function hasMoreBrackets(text: string, most: number): boolean {
  let seen = 0
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      seen++
      if (seen > most) return true
    }
  }
  return false
}

function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}

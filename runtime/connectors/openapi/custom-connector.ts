import { z } from 'zod'
import { toBase64, utf8 } from '../../../shared/sign/bytes.ts'
import type { CustomId } from '../../../shared/wire/runtime/catalog.ts'
import { type SchemaCheck, schemaCheckOrRefusal } from '../../json-schema/schema-check.ts'
import { ArgumentError } from '../argument-error.ts'
import type {
  Action,
  AuthMethod,
  ConfigKey,
  Connector,
  Credential,
  VendorAnswer,
  VendorRequest,
} from '../definition.ts'
import { segment } from '../path.ts'
import { nextParameter } from '../read-body.ts'
import { VendorFailure } from '../vendor-failure.ts'
import type { CompiledApi, Operation, Parameter } from './compiled.ts'
import { isObject, type Json, member } from './document.ts'

/** Few at a time: how many a stranger takes is not known. */
const RATE = { concurrent: 10 }

/** A connector of the same shape as those of the catalogue, from what an install kept of its document. */
export function customConnector(id: CustomId, api: CompiledApi): Connector {
  const keys = keysOf(api)
  const secrets = keys.filter(({ secret }) => secret)
  const basic = secrets[0]?.name === 'password'
  const method: AuthMethod = secrets.length === 0 ? 'none' : basic ? 'basic' : 'token'
  const probe = api.operations.find(({ name }) => name === api.probe)
  return {
    id,
    name: api.title,
    auth: [method],
    keys,
    rate: api.rate ?? RATE,
    origin: () => api.server ?? '',
    lineOf(action) {
      const { method, path } = api.operations.find(({ name }) => name === action)!
      return [method, path]
    },
    // Each operation has its own.
    authorize: () => ({}),
    probe: {
      request(credential) {
        if (probe) return requestOf(api, probe, {}, credential)
        const message = 'none of the chosen operations reads without arguments, so nothing can be tried'
        throw new VendorFailure({ message, declined: true })
      },
    },
    actions: Object.fromEntries(api.operations.map(operation => [operation.name, actionOf(api, operation)])),
  }
}

/** Secrets first, so that `token` and `apiKey` mean the first of them. */
function keysOf({ schemes }: CompiledApi): ConfigKey[] {
  const all = Object.values(schemes)
  const basic = all.some(({ kind }) => kind === 'basic')
  return [
    ...all.flatMap((scheme): ConfigKey[] => (scheme.kind === 'basic' ? [] : [{ name: scheme.key, secret: true }])),
    ...(basic ? [{ name: 'password', secret: true } as const, { name: 'username' }] : []),
  ]
}

function actionOf(api: CompiledApi, operation: Operation): Action {
  const { about, effect, parameters, body, pages, result } = operation
  const shape: Record<string, z.ZodType> = {}
  for (const { argument, schema, required } of parameters) shape[argument] = argumentOf(schema, required)
  if (body) shape.body = argumentOf(body.schema, body.required)
  if (pages) shape.cursor = z.string().min(1).max(4096).optional()
  return {
    about,
    effect,
    aliases: {},
    arguments: z.object(shape),
    async run(args, vendor) {
      const answer = await vendor.send(requestOf(api, operation, args, vendor.credential))
      const next = pages && nextOf(pages, answer)
      return { body: result === undefined ? answer.body : at(answer.body, result), ...(next !== undefined && { next }) }
    },
  }
}

function nextOf({ parameter, next }: NonNullable<Operation['pages']>, { body, headers }: VendorAnswer) {
  if (next === undefined) return nextParameter(parameter, headers)
  const found = at(body, next)
  return (typeof found === 'string' && found !== '') || typeof found === 'number' ? String(found) : undefined
}

/** What a JSON Pointer leads to; nothing where there is nothing. */
function at(body: unknown, pointer: string): unknown {
  const names = pointer.split('/').slice(1)
  const found = names.reduce<unknown>(
    (from, name) => member(from, name.replaceAll('~1', '/').replaceAll('~0', '~')),
    body,
  )
  return found ?? {}
}

/** The type is zod's, so that texts of numbers are understood as in every connector; the rest is held by the JSON Schema. */
function argumentOf(schema: Json, required: boolean): z.ZodType {
  let check: SchemaCheck | undefined
  const fits = (value: unknown, ctx: z.RefinementCtx) => {
    if (value === undefined) {
      if (required) ctx.addIssue({ code: 'custom', message: 'Required' })
      return
    }
    check ??= schemaCheckOrRefusal(schema)
    const fault = check(value)
    if (fault) ctx.addIssue({ code: 'custom', path: fault.at.split('/').slice(1), message: fault.message })
  }
  const typed = typeOf(schema)
    .superRefine(fits)
    .meta({ ...schema })
  return required ? typed : typed.optional()
}

function typeOf({ type }: Json): z.ZodType {
  switch (type) {
    case 'string':
      return z.string()
    case 'number':
    case 'integer':
      return z.number()
    case 'boolean':
      return z.boolean()
    case 'array':
      return z.array(z.unknown())
    default:
      return z.unknown()
  }
}

type Query = Record<string, string | readonly string[]>

/** The request of an operation, with the credentials that it takes and no others. */
function requestOf(
  { schemes }: Pick<CompiledApi, 'schemes'>,
  operation: Operation,
  args: Readonly<Record<string, unknown>>,
  { values }: Credential,
): VendorRequest {
  const query: Query = {}
  const headers: Record<string, string> = {}
  let path = operation.path
  for (const parameter of operation.parameters) {
    const value = args[parameter.argument]
    if (value === undefined) continue
    if (parameter.in === 'path') path = path.replaceAll(`{${parameter.name}}`, () => inPath(parameter, value))
    else if (parameter.in === 'header') headers[parameter.name.toLowerCase()] = inHeader(parameter, value)
    else Object.assign(query, inQuery(parameter, value))
  }
  const { pages, body } = operation
  if (pages && typeof args.cursor === 'string') query[pages.parameter] = args.cursor
  for (const name of operation.security) addCredential(schemes[name]!, values, query, headers)
  const sent = body && args.body !== undefined
  return {
    method: operation.method,
    path,
    query,
    headers:
      sent && body.contentType !== 'application/json' ? { ...headers, 'content-type': body.contentType } : headers,
    ...(sent && { json: args.body }),
  }
}

function addCredential(
  scheme: CompiledApi['schemes'][string],
  values: Credential['values'],
  query: Query,
  headers: Record<string, string>,
): void {
  if (scheme.kind === 'basic') {
    headers.authorization = `Basic ${toBase64(utf8(`${values.username ?? ''}:${values.password ?? ''}`))}`
    return
  }
  const value = values[scheme.key]!
  if (scheme.kind === 'bearer') headers.authorization = `Bearer ${value}`
  else if (scheme.in === 'query') query[scheme.name] = value
  else if (scheme.in === 'header') headers[scheme.name.toLowerCase()] = value
  else {
    const cookie = `${scheme.name}=${encodeURIComponent(value)}`
    headers.cookie = headers.cookie === undefined ? cookie : `${headers.cookie}; ${cookie}`
  }
}

function inPath(parameter: Parameter, value: unknown): string {
  if (parameter.style === 'json') return segment(JSON.stringify(value))
  const parts = Array.isArray(value) ? value : isObject(value) ? pairs(parameter, value) : [value]
  return parts.map(part => segment(scalar(parameter, part))).join(',')
}

function inHeader(parameter: Parameter, value: unknown): string {
  const parts = Array.isArray(value) ? value : isObject(value) ? pairs(parameter, value) : [value]
  const text = parameter.style === 'json' ? JSON.stringify(value) : parts.map(part => scalar(parameter, part)).join(',')
  if (/^[\x20-\x7e]*$/.test(text)) return text
  throw unfit(parameter, 'expected printable ASCII characters, as it goes into a header')
}

function inQuery(parameter: Parameter, value: unknown): Query {
  const { name, style, explode } = parameter
  if (style === 'json') return { [name]: JSON.stringify(value) }
  const text = (one: unknown) => scalar(parameter, one)
  if (isObject(value)) {
    const entries = Object.entries(value).filter(([, one]) => one !== undefined && one !== null)
    if (style === 'deepObject') return Object.fromEntries(entries.map(([key, one]) => [`${name}[${key}]`, text(one)]))
    if (explode) return Object.fromEntries(entries.map(([key, one]) => [key, text(one)]))
    return { [name]: pairs(parameter, value).map(text).join(',') }
  }
  if (!Array.isArray(value)) return { [name]: text(value) }
  if (explode) return { [name]: value.map(text) }
  const between = style === 'spaceDelimited' ? ' ' : style === 'pipeDelimited' ? '|' : ','
  return { [name]: value.map(text).join(between) }
}

/** `a,1,b,2`, or `a=1,b=2` where it says so. */
function pairs(parameter: Parameter, value: Record<string, unknown>): unknown[] {
  const { explode, in: where } = parameter
  const entries = Object.entries(value).filter(([, one]) => one !== undefined && one !== null)
  return explode && where !== 'query' ? entries.map(([key, one]) => `${key}=${scalar(parameter, one)}`) : entries.flat()
}

function scalar(parameter: Parameter, value: unknown): string {
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw unfit(parameter, 'expected a text, a number or a boolean in each place')
}

function unfit({ argument }: Parameter, message: string): ArgumentError {
  return new ArgumentError([{ path: argument, message }])
}

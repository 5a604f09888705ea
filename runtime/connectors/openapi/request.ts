import { toBase64, utf8 } from '../../../shared/sign/bytes.ts'
import { ArgumentError } from '../argument-error.ts'
import type { Credential, VendorRequest } from '../definition.ts'
import { segment } from '../path.ts'
import type { CompiledApi, Operation, Parameter } from './compiled.ts'

type Query = Record<string, string | readonly string[]>

/** The request of an operation, with the credentials that it takes and no others. */
export function requestOf(
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
  for (const name of operation.security) {
    const scheme = schemes[name]!
    if (scheme.kind === 'basic') {
      headers.authorization = `Basic ${toBase64(utf8(`${values.username ?? ''}:${values.password ?? ''}`))}`
    } else if (scheme.kind === 'bearer') headers.authorization = `Bearer ${values[scheme.key]}`
    else if (scheme.in === 'query') query[scheme.name] = values[scheme.key]!
    else if (scheme.in === 'header') headers[scheme.name.toLowerCase()] = values[scheme.key]!
    else {
      const cookie = `${scheme.name}=${encodeURIComponent(values[scheme.key]!)}`
      headers.cookie = headers.cookie === undefined ? cookie : `${headers.cookie}; ${cookie}`
    }
  }
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

function inPath(parameter: Parameter, value: unknown): string {
  if (parameter.style === 'json') return segment(JSON.stringify(value))
  const parts = Array.isArray(value) ? value : isPlain(value) ? pairs(parameter, value) : [value]
  return parts.map(part => segment(scalar(parameter, part))).join(',')
}

function inHeader(parameter: Parameter, value: unknown): string {
  const parts = Array.isArray(value) ? value : isPlain(value) ? pairs(parameter, value) : [value]
  const text = parameter.style === 'json' ? JSON.stringify(value) : parts.map(part => scalar(parameter, part)).join(',')
  if (/^[\x20-\x7e]*$/.test(text)) return text
  throw unfit(parameter, 'expected printable ASCII characters, as it goes into a header')
}

function inQuery(parameter: Parameter, value: unknown): Query {
  const { name, style, explode } = parameter
  if (style === 'json') return { [name]: JSON.stringify(value) }
  const text = (one: unknown) => scalar(parameter, one)
  if (isPlain(value)) {
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

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

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

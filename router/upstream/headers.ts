import type { HeaderList } from './transport.ts'

/** RFC 9110 §7.6.1 and the names that only concern one connection. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const all = () => true

/** What goes to the upstream: everything end to end that `also` lets pass, in order; our own headers, `host` and `expect` are consumed. */
export function toUpstream(headers: HeaderList, also: (lowerName: string) => boolean = all): HeaderList {
  const named = connectionNames(headers)
  return headers.filter(([name]) => {
    const key = name.toLowerCase()
    if (HOP_BY_HOP.has(key) || named.has(key) || key === 'host' || key === 'expect') return false
    return !key.startsWith('x-router-') && also(key)
  })
}

/** What goes back to the client: everything end to end that `also` lets pass, in order. An upstream cannot set our headers. */
export function toClient(headers: HeaderList, also: (lowerName: string) => boolean = all): HeaderList {
  const named = connectionNames(headers)
  return headers.filter(([name]) => {
    const key = name.toLowerCase()
    return !HOP_BY_HOP.has(key) && !named.has(key) && !key.startsWith('x-router-') && also(key)
  })
}

/** The value of a header, the last one when it is repeated. */
export function headerValue(headers: HeaderList, wanted: string): string | undefined {
  let found: string | undefined
  for (const [name, value] of headers) if (name.length === wanted.length && name.toLowerCase() === wanted) found = value
  return found
}

function connectionNames(headers: HeaderList): ReadonlySet<string> {
  let named: Set<string> | undefined
  for (const [name, value] of headers) {
    if (name.length !== CONNECTION.length || name.toLowerCase() !== CONNECTION) continue
    named ??= new Set()
    for (const one of value.split(',')) named.add(one.trim().toLowerCase())
  }
  return named ?? NONE
}

const CONNECTION = 'connection'

const NONE: ReadonlySet<string> = new Set()

import { nonFiniteAt } from '../../../../shared/json/finite.ts'

/** A field as the body of an operation needs it: where it goes, and as what. */
export interface Field {
  /** Dotted: `config.input`. */
  name: string
  value: string
  as: string
}

/** What was typed into a field does not read, before anything is sent. */
export class FieldFault extends Error {
  readonly details: readonly { path: string; message: string }[]
  constructor(name: string, message: string) {
    super(`${name}: ${message}`)
    this.name = 'FieldFault'
    this.details = [{ path: name, message }]
  }
}

/** The JSON body of a form's fields. An empty text is left out, unless the field says what it stands for. */
export function bodyFrom(fields: Iterable<Field>): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const { name, value, as } of fields) {
    const read = readValue(name, value, as)
    if (read === undefined) continue
    const path = name.split('.')
    const last = path.pop()!
    let at = body
    for (const member of path) {
      at[member] ??= {}
      at = at[member] as Record<string, unknown>
    }
    at[last] = as.startsWith('many') ? [...((at[last] as unknown[]) ?? []), read] : read
  }
  return body
}

function readValue(name: string, value: string, as: string): unknown {
  switch (as) {
    case 'number':
      return value.trim() === '' ? undefined : numberIn(name, value)
    case 'limit':
      return value.trim() === '' ? null : numberIn(name, value)
    case 'hosts':
      return hostsIn(value)
    case 'hosts-or-null':
      return hostsIn(value) ?? null
    case 'labels':
      return labelsIn(name, value)
    case 'flag':
      return value === 'true'
    case 'many-json':
    case 'json':
      return value.trim() === '' ? undefined : jsonIn(name, value)
    case 'text':
      return value
    case 'text-or-null':
      return value === '' ? null : value
    default:
      return value === '' ? undefined : value
  }
}

function jsonIn(name: string, value: string): unknown {
  let read: unknown
  try {
    read = JSON.parse(value)
  } catch (error) {
    throw new FieldFault(name, `This is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
  const at = nonFiniteAt(read)
  if (at === undefined) return read
  throw new FieldFault(name, `The number${at === '' ? '' : ` at ${at}`} is too large.`)
}

/** JSON has no word for other numbers: they would be sent as null, which takes a limit away. */
function numberIn(name: string, value: string): number {
  const number = Number(value)
  if (Number.isFinite(number)) return number
  throw new FieldFault(name, 'expected a number')
}

/** `api.example.com` or `api.example.com:8443` on each line; without a port the one of https is meant. */
function hostsIn(value: string): { host: string; ports: number[] }[] | undefined {
  const lines = value.split(/[\s,]+/).filter(line => line !== '')
  if (lines.length === 0) return undefined
  return lines.map(line => {
    const [, host = line, port = '443'] = /^(\[.*\]|[^:]*):(\d+)$/.exec(line) ?? []
    return { host, ports: [Number(port)] }
  })
}

/** `team:north, ticket:42`; nothing where nothing was typed. */
function labelsIn(name: string, value: string): Record<string, string> | undefined {
  const parts = value
    .split(/[,\n]/)
    .map(part => part.trim())
    .filter(part => part !== '')
  if (parts.length === 0) return undefined
  return Object.fromEntries(
    parts.map(part => {
      const colon = part.indexOf(':')
      if (colon < 1) throw new FieldFault(name, `expected key:value, got ${part}`)
      return [part.slice(0, colon).trim(), part.slice(colon + 1).trim()]
    }),
  )
}

/** The fields of a form that are sent; a checkbox is its flag, or one of many. */
export function bodyOf(form: HTMLFormElement): Record<string, unknown> {
  const fields: Field[] = []
  for (const one of form.elements) {
    if (!(one instanceof HTMLInputElement || one instanceof HTMLSelectElement || one instanceof HTMLTextAreaElement))
      continue
    if (one.name === '' || one.disabled || one.dataset.path !== undefined) continue
    const { name, value, dataset } = one
    const { as = '' } = dataset
    if (one instanceof HTMLInputElement && one.type === 'checkbox') {
      if (!as.startsWith('many')) fields.push({ name, value: String(one.checked), as: 'flag' })
      else if (one.checked) fields.push({ name, value, as })
    } else if (!(one instanceof HTMLInputElement && one.type === 'radio') || one.checked)
      fields.push({ name, value, as })
  }
  return bodyFrom(fields)
}

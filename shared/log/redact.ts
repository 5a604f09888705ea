/** Field names whose values never reach a log line, whatever their spelling (`apiKey`, `api_key`, `x-api-key`). */
const SECRET_KEY =
  /(authorization|api[-_]?key|secret|password|passwd|token|cookie|credential|private[-_]?key|signing[-_]?key|master[-_]?key|router[-_]?key|salt)$/i

const REDACTED = '[redacted]'

/** Keys of known shapes, also when they were never registered: ours, the two vendors', and bearer headers. */
const SECRET_SHAPE =
  /\b(?:wb_(?:live|node)_[\w-]{8,}|sk-[\w-]{8,}|whsec_[\w+/=-]{8,})|\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/g

/** Shorter secrets would blank out ordinary words; a schema refuses them before they get here. */
const MIN_SECRET = 8

const MAX_DEPTH = 6

export type Redactor = ReturnType<typeof redactor>

/** Removes secrets from what is about to be logged: by field name, by known shape, and by registered value. */
export function redactor() {
  const secrets = new Set<string>()

  function text(value: string): string {
    let out = value.replace(SECRET_SHAPE, (_, scheme: string | undefined) => (scheme ? scheme + ' ' : '') + REDACTED)
    for (const secret of secrets) if (out.includes(secret)) out = out.replaceAll(secret, REDACTED)
    return out
  }

  function field(key: string, value: unknown, depth: number): unknown {
    if (SECRET_KEY.test(key) && value !== undefined && value !== null && typeof value !== 'number') return REDACTED
    return any(value, depth)
  }

  function any(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return text(value)
    if (typeof value === 'bigint') return String(value)
    if (typeof value !== 'object' || value === null) return value
    if (value instanceof Date) return value
    if (value instanceof Error) return error(value, depth)
    if (depth >= MAX_DEPTH) return '[deep]'
    if (Array.isArray(value)) return value.map(item => any(item, depth + 1))
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
    return members(value as Record<string, unknown>, depth + 1)
  }

  function members(value: Record<string, unknown>, depth: number): Record<string, unknown> {
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [text(key), field(key, member, depth)]))
  }

  function error(value: Error, depth: number): object {
    const own = { name: value.name, message: text(value.message), stack: value.stack && text(value.stack) }
    return value.cause === undefined || depth >= MAX_DEPTH ? own : { ...own, cause: any(value.cause, depth + 1) }
  }

  return {
    /** From now on this value is removed wherever it appears. */
    register(secret: string | undefined): void {
      if (secret !== undefined && secret.length >= MIN_SECRET) secrets.add(secret)
    },
    text,
    fields: (fields: Record<string, unknown>) => members(fields, 0),
  }
}

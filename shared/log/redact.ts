/** Field names whose values never reach a log line, whatever their spelling (`apiKey`, `api_key`, `x-api-key`). */
const SECRET_KEY =
  /(authorization|api[-_]?key|secret|password|passwd|token|cookie|credential|private[-_]?key|signing[-_]?key|master[-_]?key|router[-_]?key|salt)$/i

const REDACTED = '[redacted]'

/** Keys of known shapes, also when they were never registered: ours, the two vendors', and bearer headers. */
const SECRET_SHAPE =
  /\b(?:wb_(?:live|node)_[\w-]{8,}|sk-[\w-]{8,}|whsec_[\w+/=-]{8,})|\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/g

/** Shorter secrets would blank out ordinary words; a schema refuses them before they get here. */
const MIN_SECRET = 8

/**
 * Of the secrets that tenants own the ones that were opened last, by number and by characters: each is registered again when it is opened, and
 * a tenant may bring new ones for ever.
 */
const MOST_OPENED = 2000
const MOST_OPENED_CHARACTERS = 4 << 20

const MAX_DEPTH = 6

/** Of the names of fields, which are those in the source; more than this come from data. */
const MAX_NAMES = 1000

export type Redactor = ReturnType<typeof redactor>

/** Removes secrets from what is about to be logged: by field name, by known shape, and by registered value. */
export function redactor() {
  /** Each with the form that it has inside a JSON string. */
  const secrets = new Map<string, string>()
  /** The same, the one first that was opened longest ago. */
  const opened = new Map<string, string>()
  let openedCharacters = 0
  const secretNames = new Map<string, boolean>()

  function text(value: string): string {
    let out = value.replace(SECRET_SHAPE, (_, scheme: string | undefined) => (scheme ? scheme + ' ' : '') + REDACTED)
    for (const known of [secrets, opened])
      for (const secret of known.keys()) if (out.includes(secret)) out = out.replaceAll(secret, REDACTED)
    return out
  }

  function isSecretName(key: string): boolean {
    const known = secretNames.get(key)
    if (known !== undefined) return known
    const found = SECRET_KEY.test(key)
    if (secretNames.size < MAX_NAMES) secretNames.set(key, found)
    return found
  }

  /** What may be written of fields: values by the name of their field, and each text as `clean` leaves it. */
  function written(
    fields: Record<string, unknown>,
    clean: (value: string) => string,
    stacks: boolean,
  ): Record<string, unknown> {
    function field(key: string, value: unknown, depth: number): unknown {
      if (value !== undefined && value !== null && typeof value !== 'number' && isSecretName(key)) return REDACTED
      return any(value, depth)
    }

    function any(value: unknown, depth: number): unknown {
      if (typeof value === 'string') return clean(value)
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
      const out: Record<string, unknown> = {}
      for (const key in value) if (Object.hasOwn(value, key)) out[clean(key)] = field(key, value[key], depth)
      return out
    }

    function error(value: Error, depth: number): object {
      const stack = stacks ? value.stack : undefined
      const own = { name: value.name, message: clean(value.message), stack: stack && clean(stack) }
      return value.cause === undefined || depth >= MAX_DEPTH ? own : { ...own, cause: any(value.cause, depth + 1) }
    }

    return members(fields, 0)
  }

  /** Whether a line of JSON holds a secret; most do not, and one look at the line is cheaper than one at each text in it. */
  function isSecret(json: string): boolean {
    if (json.search(SECRET_SHAPE) >= 0) return true
    for (const known of [secrets, opened]) for (const escaped of known.values()) if (json.includes(escaped)) return true
    return false
  }

  return {
    /** From now on this value is removed wherever it appears. */
    register(secret: string | undefined): void {
      if (secret !== undefined && secret.length >= MIN_SECRET) secrets.set(secret, inJson(secret))
    },
    /** The same for a secret of a tenant, each time that it is opened. */
    opened(secret: string | undefined): void {
      if (secret === undefined || secret.length < MIN_SECRET || secrets.has(secret)) return
      const known = opened.get(secret)
      if (known === undefined) openedCharacters += secret.length
      else opened.delete(secret)
      opened.set(secret, known ?? inJson(secret))
      for (const oldest of opened.keys()) {
        if (opened.size <= MOST_OPENED && openedCharacters <= MOST_OPENED_CHARACTERS) break
        opened.delete(oldest)
        openedCharacters -= oldest.length
      }
    },
    text,
    /** An object as JSON, without what is secret in it; errors with their stacks, or without. */
    json(fields: Record<string, unknown>, stacks = true): string {
      const line = JSON.stringify(written(fields, value => value, stacks))
      return isSecret(line) ? JSON.stringify(written(fields, text, stacks)) : line
    },
  }
}

const inJson = (secret: string): string => JSON.stringify(secret).slice(1, -1)

import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { utf8 } from '../../shared/sign/bytes.ts'
import type { DataKey, DataKeys } from './data-keys.ts'
import { VaultError } from './vault.ts'

/** AES-256-GCM of the host, at once and not by a promise. Sealed: a random 96-bit nonce, the ciphertext and the tag. */
export interface RecordCipher {
  /** The sealed text in base64url. */
  seal(key: Uint8Array, text: string, additional: string): string
  /** Throws when the text was changed, cut, or sealed elsewhere. */
  open(key: Uint8Array, sealed: string, additional: string): string
  sealBytes(key: Uint8Array, bytes: Uint8Array, additional: string): Uint8Array
  openBytes(key: Uint8Array, sealed: Uint8Array, additional: string): Uint8Array
}

/** Whose text it is (a run, a session, a schedule), and which of its texts: authenticated, so that a moved one does not open. */
export interface RecordAad {
  record: string
  field: string
}

/** Run data on its way into the store and back. Rows from before there was a key stay readable. */
export interface Records {
  seal(text: string, aad: RecordAad): string
  open(stored: string, aad: RecordAad): string
  /** `sealed` stands beside the content; a copy in another run keeps it. */
  sealBytes(content: Uint8Array, aad: RecordAad): { content: Uint8Array; sealed: string | null }
  openBytes(content: Uint8Array, sealed: string | null, field: string): Uint8Array
}

const SEALED = 'wbd1.'
/** In front of a clear text that would otherwise look like a sealed one. */
const CLEAR = 'wbd0.'
const REMEMBERED = 512

/** A text that stands in the store in clear; undefined where it is sealed. */
export function clearText(stored: string): string | undefined {
  if (stored.startsWith(SEALED)) return undefined
  return stored.startsWith(CLEAR) ? stored.slice(CLEAR.length) : stored
}

/** Without a key: as it is. */
export const clearRecords: Records = {
  seal: text => (text.startsWith('wbd') ? CLEAR + text : text),
  open(stored) {
    if (stored.startsWith(SEALED)) throw unopened(stored.split('.')[1] ?? '')
    return stored.startsWith(CLEAR) ? stored.slice(CLEAR.length) : stored
  },
  sealBytes: content => ({ content, sealed: null }),
  openBytes(content, sealed) {
    if (sealed !== null) throw unopened(sealed.split('.')[0] ?? '')
    return content
  },
}

/**
 * Run data at rest: each run, session and schedule under a key of its own, which is derived from a data key of the store, which the
 * master key wraps. So no key is asked of WebCrypto on the path of a step, none is stored for each run, and another master key
 * takes over by wrapping one row. A derived key seals far fewer texts than the 2^32 that random nonces allow (NIST SP 800-38D §8.3).
 * A sealed text is `wbd1.<data key id>.<nonce, ciphertext, tag>`.
 */
export function sealedRecords(cipher: RecordCipher, { current, all }: DataKeys): Records {
  const derivedFrom = new Map<DataKey, Map<string, Uint8Array>>()

  function keyOf(from: DataKey, record: string): Uint8Array {
    const derived = derivedFrom.get(from) ?? new Map<string, Uint8Array>()
    if (derived.size === 0) derivedFrom.set(from, derived)
    const known = derived.get(record)
    if (known) return known
    const made = hmac(sha256, from.key, utf8(`waybill/run-data/v1\n${record}`))
    if (derived.size >= REMEMBERED) for (const [first] of derived) if (derived.delete(first)) break
    derived.set(record, made)
    return made
  }

  function find(id: string): DataKey {
    const found = all.get(id)
    if (!found) throw unopened(id)
    return found
  }

  const nowSealed = `${SEALED}${current.id}.`

  return {
    seal(text, aad) {
      return nowSealed + cipher.seal(keyOf(current, aad.record), text, additional(aad))
    },
    open(stored: string, aad: RecordAad): string {
      if (!stored.startsWith(SEALED)) return clearRecords.open(stored, aad)
      const end = stored.indexOf('.', SEALED.length)
      const key = find(stored.slice(SEALED.length, end))
      return opened(() => cipher.open(keyOf(key, aad.record), stored.slice(end + 1), additional(aad)))
    },
    sealBytes(content, aad) {
      const sealed = `${current.id}.${aad.record}`
      return { content: cipher.sealBytes(keyOf(current, aad.record), content, additional(aad)), sealed }
    },
    openBytes(content, sealed, field) {
      if (sealed === null) return content
      const at = sealed.indexOf('.')
      const record = sealed.slice(at + 1)
      const key = find(sealed.slice(0, at))
      return opened(() => cipher.openBytes(keyOf(key, record), content, additional({ record, field })))
    },
  }
}

/** Before the store is open its keys are unknown; a request before that is an internal fault. */
export function recordsLater(): { records: Records; use(records: Records): void } {
  let now: Records | undefined
  const ready = (): Records => {
    if (now) return now
    throw new Error('the store is not ready yet: await ready() first')
  }
  return {
    records: {
      seal: (text, aad) => ready().seal(text, aad),
      open: (stored, aad) => ready().open(stored, aad),
      sealBytes: (content, aad) => ready().sealBytes(content, aad),
      openBytes: (content, sealed, field) => ready().openBytes(content, sealed, field),
    },
    use(records) {
      now = records
    },
  }
}

/** What a column holds that may be null. */
export function sealMaybe(records: Records, text: string | null, aad: RecordAad): string | null {
  return text === null ? null : records.seal(text, aad)
}

export function openMaybe(records: Records, stored: unknown, aad: RecordAad): string | null {
  return stored === null || stored === undefined ? null : records.open(String(stored), aad)
}

/** The id of a record holds no line break, so two places never have the same text. */
function additional({ record, field }: RecordAad): string {
  return `waybill/record/v1\n${record}\n${field}`
}

function opened<T>(work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw new VaultError('broken', 'a sealed text does not open: it was changed, or moved from another record', {
      cause,
    })
  }
}

function unopened(keyId: string): VaultError {
  return new VaultError('other_key', `run data is sealed under the data key ${keyId}, which does not open here`)
}

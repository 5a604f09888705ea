/** What is checked: a receipt as somebody gives it, so nothing of it is taken for granted. */
export interface GivenReceipt {
  payload?: Record<string, unknown> & { runId?: string; keyId?: string; eventCount?: number; journalHash?: string }
  signature?: string
  algorithm?: string
  publicKey?: string
}

export interface GivenJournal {
  events: readonly (Record<string, unknown> & { runId: string; seq: number; hash: string })[]
}

const hashed = ['seq', 'kind', 'stepId', 'runId', 'attempt', 'at', 'payload', 'meta']
const utf8 = (text: string) => new TextEncoder().encode(text)
const hex = (bytes: ArrayBuffer) =>
  Array.from(new Uint8Array(bytes), byte => byte.toString(16).padStart(2, '0')).join('')
const unhex = (text: string) => Uint8Array.from(text.match(/../g) ?? [], pair => Number.parseInt(pair, 16))
const base64 = (text: string) => Uint8Array.from(atob(text), one => one.charCodeAt(0))
const sha256 = async (bytes: Uint8Array<ArrayBuffer>) => hex(await crypto.subtle.digest('SHA-256', bytes))

function canonical(value: unknown): string {
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']'
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return '{' + members.map(([key, member]) => JSON.stringify(key) + ':' + canonical(member)).join(',') + '}'
}

async function walk(runId: string, events: GivenJournal['events']): Promise<{ head: string; brokenAt?: number }> {
  let head = await sha256(utf8('waybill/journal/v1\n' + runId))
  for (const [at, event] of events.entries()) {
    const text = utf8(canonical(Object.fromEntries(hashed.map(name => [name, event[name]]))))
    const bytes = new Uint8Array(32 + text.length)
    bytes.set(unhex(head))
    bytes.set(text, 32)
    head = await sha256(bytes)
    if (event.runId !== runId || event.seq !== at + 1 || event.hash !== head) return { head, brokenAt: at + 1 }
  }
  return { head }
}

/**
 * Whether a receipt was signed by the key with this fingerprint, and whether a journal is the one it speaks of: the offline steps of
 * runtime contract §11, with what a browser has of its own and nothing from elsewhere.
 */
export async function verifyReceipt(
  { payload, signature, algorithm, publicKey }: GivenReceipt,
  journal: GivenJournal | undefined,
  fingerprint: string,
): Promise<[valid: boolean, words: string]> {
  if (algorithm !== 'Ed25519' || !payload || !signature || !publicKey) return [false, 'This is not a receipt of a run.']
  const raw = base64(publicKey)
  const found = await sha256(raw)
  if (found !== fingerprint.trim().toLowerCase()) {
    return [false, 'unknown_key: the key in the receipt has the fingerprint ' + found + '.']
  }
  if (payload.keyId !== found.slice(0, 16)) {
    return [false, 'unknown_key: the receipt names another key than the one it carries.']
  }
  const key = await crypto.subtle.importKey('raw', raw, { name: 'Ed25519' }, false, ['verify'])
  const signed = await crypto.subtle.verify({ name: 'Ed25519' }, key, base64(signature), utf8(canonical(payload)))
  if (!signed) return [false, 'signature_invalid: the receipt was changed after it was signed.']
  const { runId = '', agentName, status, costUsd, finishedAt, eventCount } = payload
  const what = `Run ${runId} of ${agentName}: ${status}, ${costUsd} USD, ended ${finishedAt}.`
  if (!journal) return [true, what + ' The journal was not given, so it was not checked.']
  const { head, brokenAt } = await walk(runId, journal.events)
  if (brokenAt !== undefined) {
    return [false, 'chain_broken: event ' + brokenAt + ' was edited, moved, left out or put in.']
  }
  if (journal.events.length !== eventCount) {
    return [false, `event_count_mismatch: ${journal.events.length} events, and ${eventCount} were signed.`]
  }
  if (head !== payload.journalHash) return [false, 'journal_hash_mismatch: the journal is another one than was signed.']
  return [true, what + ` All ${eventCount} events are the ones that were signed.`]
}

/** Why nothing could be said. */
export function whyNot(error: unknown): string {
  if (typeof crypto === 'undefined' || crypto.subtle === undefined) {
    return 'Browsers give a page no cryptography without HTTPS: use runtime verify, or open this page as https or on localhost.'
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  return name === 'NotSupportedError'
    ? 'This browser cannot check Ed25519 signatures: use a newer one, or runtime verify.'
    : 'This cannot be read: ' + message
}

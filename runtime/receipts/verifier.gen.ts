// Written by `npx node scripts/panel.ts` from browser/.
export const verifierFiles: Readonly<Record<string, string>> = {
  "verifier-form.js": `import { verifyReceipt, whyNot } from './verify-receipt.js'

const form = document.querySelector('form')
const said = document.querySelector('output')
for (const input of document.querySelectorAll                  ('input[type=file]')) {
  input.addEventListener('change', async () => {
    const field = document.getElementById(input.dataset.for )
    field.value = (await input.files?.[0]?.text()) ?? ''
  })
}
form.addEventListener('submit', async event => {
  event.preventDefault()
  const given = new FormData(form)
  const text = (name        ) => String(given.get(name) ?? '')
  let result
  try {
    const journal = text('journal').trim() === '' ? undefined : JSON.parse(text('journal'))
    result = await verifyReceipt(JSON.parse(text('receipt')), journal, text('fingerprint'))
  } catch (error) {
    result = [false, whyNot(error)]
  }
  said.className = result[0] ? 'valid' : 'invalid'
  said.textContent = (result[0] ? 'Valid. ' : 'Not valid. ') + result[1]
})
`,
  "verify-receipt.js": `/** What is checked: a receipt as somebody gives it, so nothing of it is taken for granted. */

const hashed = ['seq', 'kind', 'stepId', 'runId', 'attempt', 'at', 'payload', 'meta']
const utf8 = (text        ) => new TextEncoder().encode(text)
const hex = (bytes             ) =>
  Array.from(new Uint8Array(bytes), byte => byte.toString(16).padStart(2, '0')).join('')
const unhex = (text        ) => Uint8Array.from(text.match(/../g) ?? [], pair => Number.parseInt(pair, 16))
const base64 = (text        ) => Uint8Array.from(atob(text), one => one.charCodeAt(0))
const sha256 = async (bytes                         ) => hex(await crypto.subtle.digest('SHA-256', bytes))

function canonical(value         )         {
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']'
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return '{' + members.map(([key, member]) => JSON.stringify(key) + ':' + canonical(member)).join(',') + '}'
}

async function walk(runId        , events                        )                                               {
  let head = await sha256(utf8('waybill/journal/v1\\n' + runId))
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
  { payload, signature, algorithm, publicKey }              ,
  journal                          ,
  fingerprint        ,
)                                           {
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
  const what = \`Run \${runId} of \${agentName}: \${status}, \${costUsd} USD, ended \${finishedAt}.\`
  if (!journal) return [true, what + ' The journal was not given, so it was not checked.']
  const { head, brokenAt } = await walk(runId, journal.events)
  if (brokenAt !== undefined) {
    return [false, 'chain_broken: event ' + brokenAt + ' was edited, moved, left out or put in.']
  }
  if (journal.events.length !== eventCount) {
    return [false, \`event_count_mismatch: \${journal.events.length} events, and \${eventCount} were signed.\`]
  }
  if (head !== payload.journalHash) return [false, 'journal_hash_mismatch: the journal is another one than was signed.']
  return [true, what + \` All \${eventCount} events are the ones that were signed.\`]
}

/** Why nothing could be said. */
export function whyNot(error         )         {
  if (typeof crypto === 'undefined' || crypto.subtle === undefined) {
    return 'Browsers give a page no cryptography without HTTPS: use runtime verify, or open this page as https or on localhost.'
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  return name === 'NotSupportedError'
    ? 'This browser cannot check Ed25519 signatures: use a newer one, or runtime verify.'
    : 'This cannot be read: ' + message
}
`,
}

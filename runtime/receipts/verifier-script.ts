/**
 * What the verifier page runs, in the browser and with nothing from elsewhere: canonical JSON (RFC 8785), SHA-256 and Ed25519 of the
 * platform. It follows the offline steps of runtime contract §11, so it is the same check as `runtime verify`.
 */
export const VERIFIER_SCRIPT = `
const hashed = ['seq', 'kind', 'stepId', 'runId', 'attempt', 'at', 'payload', 'meta']
const utf8 = text => new TextEncoder().encode(text)
const hex = bytes => Array.from(new Uint8Array(bytes), byte => byte.toString(16).padStart(2, '0')).join('')
const unhex = text => Uint8Array.from(text.match(/../g) ?? [], pair => parseInt(pair, 16))
const base64 = text => Uint8Array.from(atob(text), one => one.charCodeAt(0))
const sha256 = async bytes => hex(await crypto.subtle.digest('SHA-256', bytes))

function canonical(value) {
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']'
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  return '{' + Object.keys(value).sort().map(key => JSON.stringify(key) + ':' + canonical(value[key])).join(',') + '}'
}

async function walk(runId, events) {
  let head = await sha256(utf8('waybill/journal/v1\\n' + runId))
  for (const [at, event] of events.entries()) {
    const text = utf8(canonical(Object.fromEntries(hashed.map(name => [name, event[name]]))))
    const bytes = new Uint8Array(32 + text.length)
    bytes.set(unhex(head))
    bytes.set(text, 32)
    head = await sha256(bytes)
    if (event.runId !== runId || event.seq !== at + 1 || event.hash !== head) return { brokenAt: at + 1 }
  }
  return { head }
}

async function verify(receipt, journal, fingerprint) {
  const { payload, signature, algorithm, publicKey } = receipt
  if (algorithm !== 'Ed25519' || !payload || !signature || !publicKey) return [false, 'This is not a receipt of a run.']
  const raw = base64(publicKey)
  const found = await sha256(raw)
  if (found !== fingerprint.trim().toLowerCase()) return [false, 'unknown_key: the key in the receipt has the fingerprint ' + found + '.']
  if (payload.keyId !== found.slice(0, 16)) return [false, 'unknown_key: the receipt names another key than the one it carries.']
  const key = await crypto.subtle.importKey('raw', raw, { name: 'Ed25519' }, false, ['verify'])
  const signed = await crypto.subtle.verify({ name: 'Ed25519' }, key, base64(signature), utf8(canonical(payload)))
  if (!signed) return [false, 'signature_invalid: the receipt was changed after it was signed.']
  const what = 'Run ' + payload.runId + ' of ' + payload.agentName + ': ' + payload.status + ', ' + payload.costUsd + ' USD, ended ' + payload.finishedAt + '.'
  if (!journal) return [true, what + ' The journal was not given, so it was not checked.']
  const { head, brokenAt } = await walk(payload.runId, journal.events)
  if (brokenAt) return [false, 'chain_broken: event ' + brokenAt + ' was edited, moved, left out or put in.']
  if (journal.events.length !== payload.eventCount) return [false, 'event_count_mismatch: ' + journal.events.length + ' events, and ' + payload.eventCount + ' were signed.']
  if (head !== payload.journalHash) return [false, 'journal_hash_mismatch: the journal is another one than was signed.']
  return [true, what + ' All ' + payload.eventCount + ' events are the ones that were signed.']
}

const form = document.querySelector('form'), said = document.querySelector('output')
for (const input of document.querySelectorAll('input[type=file]')) input.addEventListener('change', async () => {
  document.getElementById(input.dataset.for).value = await input.files[0].text()
})
form.addEventListener('submit', async event => {
  event.preventDefault()
  const { receipt, journal, fingerprint } = Object.fromEntries(new FormData(form))
  let result
  try {
    result = await verify(JSON.parse(receipt), journal.trim() === '' ? undefined : JSON.parse(journal), fingerprint)
  } catch (error) {
    const old = error.name === 'NotSupportedError'
    result = [false, old ? 'This browser cannot check Ed25519 signatures: use a newer one, or runtime verify.' : 'This cannot be read: ' + error.message]
  }
  said.className = result[0] ? 'valid' : 'invalid'
  said.textContent = (result[0] ? 'Valid. ' : 'Not valid. ') + result[1]
})
`

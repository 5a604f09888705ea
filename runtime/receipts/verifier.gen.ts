// Written by `npm run generate` from browser/.
export const verifierFiles: Readonly<Record<string, string>> = {
  "bytes.js": `const encoder = new TextEncoder()
const HEX = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))
export function utf8(text        )                          {
  return encoder.encode(text)
}
export function toHex(bytes            )         {
  let out = ''
  for (const byte of bytes) out += HEX[byte]
  return out
}
export function fromHex(text        )                          {
  const bytes = new Uint8Array(text.length >> 1)
  let bad = text.length & 1
  for (let at = 0; at < bytes.length; at++) {
    const value = (digit(text.charCodeAt(at * 2)) << 4) | digit(text.charCodeAt(at * 2 + 1))
    bad |= value & ~0xff
    bytes[at] = value
  }
  if (bad !== 0) throw new TypeError('expected lower-case hex digits in pairs')
  return bytes
}
function digit(code        )         {
  if (code >= 48 && code <= 57) return code - 48
  return code >= 97 && code <= 102 ? code - 87 : 0x100
}
export function toBase64(bytes            )         {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}
export function toBase64Url(bytes            )         {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
export function fromBase64(text        )                          {
  const plain = text.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '')
  if (!/^[A-Za-z0-9+/]*$/.test(plain) || plain.length % 4 === 1) throw new TypeError('expected base64 text')
  const bytes = Uint8Array.from(atob(plain), c => c.charCodeAt(0))
  if (toBase64(bytes).replace(/=+$/, '') !== plain) throw new TypeError('expected base64 text without stray bits')
  return bytes
}
export function concat(...parts                       )                          {
  return joined(parts)
}
export function joined(chunks                       )                          {
  const out = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}
`,
  "jcs.js": `export class CanonicalError extends TypeError {
           path
  constructor(path        , problem        ) {
    super(\`cannot canonicalise \${path === '' ? 'the value' : path}: \${problem}\`)
    this.name = 'CanonicalError'
    this.path = path
  }
}
export function canonicalize(value         )         {
  const text = inOrder(value) ? JSON.stringify(value) : write(value)
  if (text !== undefined) return text
  throw problemIn(value, '') ?? new CanonicalError('', 'it changes while it is read')
}
function inOrder(value         )          {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed()
    case 'number':
      return Number.isFinite(value)
    case 'boolean':
      return true
    case 'object':
      if (value === null) return true
      if ('toJSON' in value) return false
      return Array.isArray(value) ? allInOrder(value) : membersInOrder(value)
    default:
      return false
  }
}
function allInOrder(values                    )          {
  for (let at = 0; at < values.length; at++) if (!inOrder(values[at])) return false
  return true
}
function membersInOrder(value        )          {
  const shape = Object.getPrototypeOf(value)
  if (shape !== Object.prototype && shape !== null) return false
  let before
  for (const key in value) {
    if (before !== undefined && before > key) return false
    const member = (value                           )[key]
    if (member !== undefined && !(key.isWellFormed() && inOrder(member))) return false
    before = key
  }
  return true
}
function write(value         )                     {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? JSON.stringify(value) : undefined
    case 'number':
      return Number.isFinite(value) ? (Object.is(value, -0) ? '0' : String(value)) : undefined
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? list(value) : members(value                           )
    default:
      return undefined
  }
}
function list(values                    )                     {
  let out = '['
  for (let i = 0; i < values.length; i++) {
    const item = write(values[i])
    if (item === undefined) return undefined
    if (i > 0) out += ','
    out += item
  }
  return out + ']'
}
function members(value                         )                     {
  if (typeof value.toJSON === 'function') return undefined
  let out = '{'
  for (const key of sortedKeys(value)) {
    const member = value[key]
    if (member === undefined) continue
    const name = write(key)
    const text = write(member)
    if (name === undefined || text === undefined) return undefined
    if (out.length > 1) out += ','
    out += name + ':' + text
  }
  return out + '}'
}
function sortedKeys(value                         )           {
  const keys = Object.keys(value)
  for (let at = 1; at < keys.length; at++) {
    const key = keys[at]
    if (keys[at - 1]  <= key) continue
    if (keys.length > 24) return keys.sort()
    let to = at
    for (; to > 0 && keys[to - 1]  > key; to--) keys[to] = keys[to - 1]
    keys[to] = key
  }
  return keys
}
function problemIn(value         , path        )                             {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? undefined : new CanonicalError(path, 'the text holds half of a surrogate pair')
    case 'number':
      return Number.isFinite(value) ? undefined : new CanonicalError(path, \`\${value} is not a JSON number\`)
    case 'boolean':
      return undefined
    case 'object': {
      if (value === null) return undefined
      if (!Array.isArray(value) && typeof (value                        ).toJSON === 'function') {
        return new CanonicalError(path, 'convert objects with toJSON first')
      }
      for (const key of Array.isArray(value) ? value.keys() : Object.keys(value).sort()) {
        const member = (value                                    )[key]
        if (member === undefined && !Array.isArray(value)) continue
        const problem = problemIn(typeof key === 'string' ? key : 0, path) ?? problemIn(member, \`\${path}/\${key}\`)
        if (problem) return problem
      }
      return undefined
    }
    default:
      return new CanonicalError(path, \`a \${typeof value} has no JSON form\`)
  }
}
`,
  "journal-walk.js": `import { canonicalize } from './jcs.js'
export const genesisText = (runId        )         => 'waybill/journal/v1\\n' + runId
export function hashedText({ seq, kind, stepId, runId, attempt, at, payload, meta }             )         {
  return canonicalize({ seq, kind, stepId, runId, attempt, at, payload, meta })
}
export function* journalWalk(runId        , events                        )                                          {
  let head = yield { before: '', text: genesisText(runId) }
  let count = 0
  for (const event of events) {
    const brokenAt = count + 1
    if (event.runId !== runId) return { ok: false, brokenAt, reason: 'run' }
    if (event.seq !== brokenAt) return { ok: false, brokenAt, reason: 'seq' }
    let text
    try {
      text = hashedText(event)
    } catch {
      return { ok: false, brokenAt, reason: 'shape' }
    }
    const expected = yield { before: head, text }
    if (event.hash !== expected) return { ok: false, brokenAt, reason: 'hash' }
    head = expected
    count = brokenAt
  }
  return { ok: true, head, count }
}
`,
  "members.js": `function open(names        )          {
  return Object.fromEntries(names.split(' ').map(name => [name, true]))
}
const PAYLOAD          = {
  ...open(
    'version runId tenantId agentName agentVersionId manifestHash status inputHash outputHash tokensIn tokensOut',
  ),
  ...open('costUsd models isolation nodeId chain journalHash eventCount createdAt finishedAt issuedAt keyId'),
  node: open('publicKey signature'),
}
export const RECEIPT          = { ...open('signature algorithm publicKey'), payload: PAYLOAD }
const EVENT = open('seq kind stepId runId attempt at payload meta hash')
export const JOURNAL          = { ...open('runId chain genesis head eventCount sealed'), events: [EVENT] }
export const RUNTIME_KEYS          = {
  ...open('algorithm keyId publicKey keyFingerprint chain canonicalization docs'),
  keys: [open('keyId publicKey keyFingerprint status notBefore notAfter')],
}
const SEAL = open('seq prev_hash hash')
export const TRACE          = {
  ...SEAL,
  ...open('v trace_id tenant_id ts session_id mode route_ix'),
  request: {
    ...open('api method path prompt_hash body_sha256_in body_sha256_out'),
    features: {
      ...open('requested_model agent subagent task language tool_count image_count has_thinking_history stream'),
      ...open('background body_bytes size_bucket message_count max_tokens n'),
    },
  },
  policy: {
    ...open('id start_rung propensity mode_profile explore config_hash price_table_hash overrides'),
    dropped: [open('rung model reason because')],
    stay: open('from to stays cached_tokens cached_for_ms stay_usd go_usd without_usd balance_usd'),
  },
  attempts: [
    {
      ...open('rung provider model gate verdict cost score usage_source latency_ms ttfb_ms status finish cause'),
      ...open('error_class'),
      gates: [open('gate_id kind verdict score cost latency_ms reason evidence_ref')],
      adapted: [open('path from to why')],
      tokens: open('uncached cache_write_5m cache_write_1h cache_read output'),
    },
  ],
  final: {
    ...open('served_rung served_model served_from status total_cost_usd gate_cost_usd baseline_same_token_usd'),
    ...open('baseline_calibrated_usd savings_usd savings_calibrated_usd escalations failovers wall_ms overhead_ms'),
    ...open('response_id upstream_request_id client_request_id truncated'),
  },
}
export const FEEDBACK          = {
  ...SEAL,
  ...open('v tenant_id feedback_id trace_id gate_id reporter verdict score ts supersedes'),
}
export const CHECKPOINT = open('v kind tenant_id seq hash feedback_seq feedback_hash ts key_id prev_checkpoint sig')
export const ROUTER_KEYS          = {
  ...open('v heads_url'),
  keys: [open('key_id alg public_key created_at retired_at')],
}
export function unknownMember(value         , members         , path = '')                     {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    const place = path === '' ? name : \`\${path}/\${name}\`
    const known = Object.hasOwn(members, name) ? members[name] : undefined
    if (known === undefined) return place
    if (known === true) continue
    const [one] = Array.isArray(known) ? known : []
    const found =
      one === undefined
        ? unknownMember(member, known           , place)
        : Array.isArray(member)
          ? unknownInList(member, one, place)
          : undefined
    if (found !== undefined) return found
  }
  return undefined
}
function unknownInList(values                    , members         , path        )                     {
  for (const [at, value] of values.entries()) {
    const found = unknownMember(value, members, \`\${path}/\${at}\`)
    if (found !== undefined) return found
  }
  return undefined
}
`,
  "read-json.js": `export function readJson(text        )          {
  const value          = JSON.parse(text)
  return escapedName.test(text) ? rebuilt(text) : value
}
const escapedName = /\\\\.[^"\\\\]*"[ \\t\\r\\n]*:/
export function rebuilt(text        , passed         )          {
  let root
  let name
  const open                          = []
  const put = (value         ) => {
    const parent = open.at(-1)
    if (parent === undefined) root = value
    else if (Array.isArray(parent)) parent.push(value)
    else if (name === undefined) name = String(value)
    else {
      passed?.member?.(parent, name)
      setMember(parent, name, value)
      name = undefined
    }
  }
  for (let at = 0; at < text.length; ) {
    const first = text[at]
    if (first === '{' || first === '[') {
      const container = first === '{' ? {} : []
      put(container)
      open.push(container)
      at += 1
    } else if (first === '}' || first === ']') {
      open.pop()
      at += 1
    } else if (first === undefined || ' \\t\\r\\n,:'.includes(first)) at += 1
    else {
      const end = first === '"' ? endOfString(text, at) : endOfLiteral(text, at)
      const written = text.slice(at, end)
      const value          = JSON.parse(written)
      passed?.scalar?.(value, written)
      put(typeof value === 'number' && passed?.number ? passed.number(value, written) : value)
      at = end
    }
  }
  return root
}
function setMember(object         , name        , value         ) {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}
function endOfString(text        , start        ) {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\\\' ? 2 : 1
  return at + 1
}
function endOfLiteral(text        , start        ) {
  let at = start + 1
  while (at < text.length && !' \\t\\r\\n,:]}'.includes(text[at] ?? '')) at += 1
  return at
}
`,
  "read-proof.js": `import { readJson, rebuilt } from './read-json.js'
export class ProofTextError extends Error {
           name = 'ProofTextError'
           reason
  constructor(reason           , message        , options               ) {
    super(message, options)
    this.reason = reason
  }
}
export function readProof(text        )          {
  let value
  try {
    value = readJson(text)
  } catch (cause) {
    throw new ProofTextError('not_json', 'it is not JSON', { cause })
  }
  if (!saysItself(value, text)) rebuilt(text, { member: once, scalar: unambiguous })
  return value
}
export function readProofBytes(bytes            )          {
  return readProof(proofText(bytes))
}
export function proofText(bytes            )         {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new ProofTextError('not_json', 'it is not UTF-8', { cause })
  }
}
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const HALF = /\\\\u[dD][89a-fA-F]/
function saysItself(value         , text        )          {
  if (HALF.test(text) || !text.isWellFormed()) return false
  try {
    return JSON.stringify(value) === text.trim()
  } catch {
    return false
  }
}
function once(object        , name        )       {
  if (Object.hasOwn(object, name))
    throw new ProofTextError('duplicate_member', \`the member \${JSON.stringify(name)} stands twice in one object\`)
}
function unambiguous(value         , written        )       {
  if (typeof value === 'string' && !value.isWellFormed())
    throw new ProofTextError('lone_surrogate', \`the text \${written.slice(0, 40)} holds half of a surrogate pair\`)
  if (typeof value === 'number' && String(value) !== written)
    throw new ProofTextError('number_form', \`the number \${written.slice(0, 40)} is not written as RFC 8785 writes it\`)
}
`,
  "receipt-proof.js": `import { fromBase64, toBase64, toHex, utf8 } from './bytes.js'
import { canonicalize } from './jcs.js'
import {                                       journalWalk,             } from './journal-walk.js'
import { JOURNAL, RECEIPT, unknownMember } from './members.js'
export class NotAProof extends Error {
           name = 'NotAProof'
           what
  constructor(what                       ) {
    super(
      what === 'receipt'
        ? 'a receipt: it has no payload, no signature or another algorithm than Ed25519'
        : 'an exported journal: it has no runId, no chain sha256-v1 or no events',
    )
    this.what = what
  }
}
export async function verifyProof(
  { receipt, journal, fingerprint }            ,
  crypto             ,
)                       {
  const envelope = asEnvelope(receipt)
  if (envelope === undefined) throw new NotAProof('receipt')
  const extra = unknownMember(receipt, RECEIPT)
  if (extra !== undefined) return refused('unknown_member', \`a receipt has no member \${extra}\`)
  const key = plainBase64(envelope.publicKey ?? '')
  const found = await crypto.sha256({ before: toHex(key), text: '' })
  if (key.length !== 32 || found !== fingerprint.toLowerCase())
    return refused('unknown_key', 'the public key in the receipt is not the one with this fingerprint')
  if (envelope.payload.keyId !== found.slice(0, 16))
    return refused('unknown_key', 'the receipt names another key than the one it carries')
  const message = signedBytes(envelope.payload)
  const signed = message !== undefined && (await crypto.isSigned(key, plainBase64(envelope.signature), message))
  if (!signed || !isPayload(envelope.payload))
    return refused('signature_invalid', 'the receipt was changed after it was signed, or never signed with this key')
  const { payload } = envelope
  if (journal === undefined) return { valid: true, payload, journal: 'not_checked' }
  return (await journalFault(journal, payload, crypto)) ?? { valid: true, payload, journal: 'ok' }
}
export async function journalFault(
  given         ,
  { runId, eventCount, journalHash }                                                              ,
  crypto                             ,
)                               {
  const journal = asJournal(given)
  if (journal === undefined) throw new NotAProof('journal')
  const extra = unknownMember(given, JOURNAL)
  if (extra !== undefined) return refused('unknown_member', \`a journal has no member \${extra}\`)
  const walk = journalWalk(runId, journal.events)
  let genesis
  let checked
  for (let step = walk.next(); ; ) {
    if (step.done) {
      checked = step.value
      break
    }
    const hash = await crypto.sha256(step.value)
    genesis ??= hash
    step = walk.next(hash)
  }
  const fault = walkFault(checked, { eventCount, journalHash })
  if (fault !== undefined) return fault
  const said = Object.entries({ runId, genesis, head: journalHash, eventCount, sealed: true })
  const other = said.find(([name, value]) => Object.hasOwn(journal, name) && journal[name          ] !== value)
  return other && refused('journal_header_mismatch', \`its member \${other[0]} says something else than its events\`)
}
export function walkFault(
  walk      ,
  { eventCount, journalHash }                                                    ,
)                      {
  if (!walk.ok) {
    const { brokenAt } = walk
    return { ...refused('chain_broken', 'an event was edited, moved, left out or put in'), brokenAt }
  }
  if (walk.count !== eventCount)
    return refused('event_count_mismatch', 'events are missing at the end, or were added there')
  if (walk.head !== journalHash)
    return refused('journal_hash_mismatch', 'the journal holds together, and it is another one than was signed')
  return undefined
}
export function signedBytes(payload         )                                      {
  try {
    return utf8(canonicalize(payload))
  } catch {
    return undefined
  }
}
export function plainBase64(text        )                          {
  try {
    const bytes = fromBase64(text)
    if (toBase64(bytes) === text) return bytes
  } catch {
  }
  return new Uint8Array(0)
}
const TEXTS =
  'runId tenantId agentName agentVersionId manifestHash inputHash outputHash isolation nodeId journalHash createdAt finishedAt issuedAt keyId'.split(
    ' ',
  )
const ENDS                     = ['succeeded', 'failed', 'cancelled']
export function isPayload(payload         )                            {
  if (!isObject(payload)) return false
  const { version, chain, status, tokensIn, tokensOut, eventCount, costUsd, models, node } = payload
  return (
    version === 1 &&
    chain === 'sha256-v1' &&
    ENDS.includes(status) &&
    TEXTS.every(name => typeof payload[name] === 'string') &&
    [tokensIn, tokensOut, eventCount].every(count => Number.isSafeInteger(count) && Number(count) >= 0) &&
    typeof costUsd === 'number' &&
    Array.isArray(models) &&
    models.every(model => typeof model === 'string') &&
    (node === undefined || (isObject(node) && [node.publicKey, node.signature].every(one => typeof one === 'string')))
  )
}
function asEnvelope(value         )                       {
  if (!isObject(value)) return undefined
  const { payload, signature, algorithm, publicKey } = value
  const whole =
    isObject(payload) &&
    typeof signature === 'string' &&
    algorithm === 'Ed25519' &&
    (publicKey === undefined || typeof publicKey === 'string')
  return whole ? { payload, signature, algorithm, publicKey } : undefined
}
function asJournal(value         )                      {
  if (!isObject(value)) return undefined
  const { runId, chain, events } = value
  const whole =
    typeof runId === 'string' &&
    chain === 'sha256-v1' &&
    Array.isArray(events) &&
    events.every(event => isObject(event))
  return whole ? (value                      ) : undefined
}
function isObject(value         )                                   {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
function refused(reason              , explanation        )          {
  return { valid: false, reason, explanation }
}
`,
  "verifier-form.js": `import { proofText } from './read-proof.js'
import { verifyReceipt, whyNot } from './verify-receipt.js'
const form = document.querySelector('form')
const said = document.querySelector('output')
for (const input of document.querySelectorAll                  ('input[type=file]')) {
  input.addEventListener('change', async () => {
    const field = document.getElementById(input.dataset.for )
    const bytes = await input.files?.[0]?.arrayBuffer()
    try {
      field.value = bytes === undefined ? '' : proofText(new Uint8Array(bytes))
    } catch (error) {
      field.value = ''
      tell(false, whyNot(error))
    }
  })
}
function tell(valid         , words        )       {
  said.className = valid ? 'valid' : 'invalid'
  said.textContent = (valid ? 'Valid. ' : 'Not valid. ') + words
}
form.addEventListener('submit', async event => {
  event.preventDefault()
  const given = new FormData(form)
  const text = (name        ) => String(given.get(name) ?? '')
  try {
    const journal = text('journal').trim() === '' ? undefined : text('journal')
    tell(...(await verifyReceipt(text('receipt'), journal, text('fingerprint'))))
  } catch (error) {
    tell(false, whyNot(error))
  }
})
`,
  "verify-receipt.js": `import { readProof } from './read-proof.js'
import {                   verifyProof } from './receipt-proof.js'
import { fromHex, toHex, utf8 } from './bytes.js'
const webCrypto              = {
  async sha256({ before, text }) {
    const [head, rest] = [fromHex(before), utf8(text)]
    const bytes = new Uint8Array(head.length + rest.length)
    bytes.set(head)
    bytes.set(rest, head.length)
    return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
  },
  async isSigned(raw, signature, message) {
    const key = await crypto.subtle.importKey('raw', raw, { name: 'Ed25519' }, false, ['verify'])
    return crypto.subtle.verify({ name: 'Ed25519' }, key, signature, message)
  },
}
export async function verifyReceipt(
  receipt        ,
  journal                    ,
  fingerprint        ,
)                                           {
  const result = await verifyProof(
    {
      receipt: readProof(receipt),
      journal: journal === undefined ? undefined : readProof(journal),
      fingerprint: fingerprint.trim(),
    },
    webCrypto,
  )
  if (!result.valid) {
    const at = result.brokenAt === undefined ? '' : \` (event \${result.brokenAt})\`
    return [false, \`\${result.reason}\${at}: \${result.explanation}.\`]
  }
  const { runId, agentName, status, costUsd, finishedAt, eventCount } = result.payload
  const what = \`Run \${runId} of \${agentName}: \${status}, \${costUsd} USD, ended \${finishedAt}.\`
  return result.journal === 'ok'
    ? [true, \`\${what} All \${eventCount} events are the ones that were signed.\`]
    : [true, \`\${what} The journal was not given, so it was not checked.\`]
}
export function whyNot(error         )         {
  if (typeof crypto === 'undefined' || crypto.subtle === undefined) {
    return 'Browsers give a page no cryptography without HTTPS: use runtime verify, or open this page as https or on localhost.'
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  if (name === 'NotSupportedError')
    return 'This browser cannot check Ed25519 signatures: use a newer one, or runtime verify.'
  if (name === 'NotAProof') return \`This is not \${message}.\`
  const reason = error instanceof Error && 'reason' in error ? \`\${String(error.reason)}: \` : ''
  return \`\${reason}\${message}.\`
}
`,
}

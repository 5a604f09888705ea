// Written by `npm run generate` from browser/.
export const panelFiles: Readonly<Record<string, string>> = {
  "address.js": `const FILTERS = ['mode', 'served_from', 'route', 'session', 'since']
export function placeOf({ search, hash }                              )        {
  const asked = new URLSearchParams(search)
  const filters = FILTERS.flatMap(name => {
    const value = asked.get(name)?.trim()
    return value ? [[name, value]         ] : []
  })
  return {
    filters: Object.fromEntries(filters),
    days: asked.get('days') ?? undefined,
    trace: /^#trace=([\\w-]{1,128})$/.exec(hash)?.[1],
  }
}
export function addressOf({ filters, days, trace }       )         {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''))
  if (days !== undefined) query.set('days', days)
  const search = query.size === 0 ? '' : \`?\${query}\`
  return \`panel\${search}\${trace === undefined ? '' : \`#trace=\${encodeURIComponent(trace)}\`}\`
}
`,
  "api.js": `import { readProof } from './read-proof.js'
export class ApiFault extends Error {
           status
  constructor(status        , message        ) {
    super(message)
    this.name = 'ApiFault'
    this.status = status
  }
}
export function panelApi(key                          ) {
  async function call(path        , more             )                    {
    const secret = key()
    if (secret !== undefined && !/^[\\x21-\\x7e]+$/.test(secret)) {
      throw new ApiFault(401, 'A key has no spaces and no letters beyond ASCII: copy it again.')
    }
    const headers = { ...more.headers, ...(secret !== undefined && { 'x-router-key': secret }) }
    return fetch(path, { ...more, headers, cache: 'no-store' }).catch((cause         ) => {
      if (more.signal?.aborted) throw cause
      throw new ApiFault(0, 'The router does not answer. Is it running?')
    })
  }
  async function ask   (path        , query        = {}, more              = {})             {
    const given = Object.entries(query).filter((entry)                            => Boolean(entry[1]))
    const search = given.length === 0 ? '' : \`?\${new URLSearchParams(given)}\`
    const answer = await call(path + search, more)
    const body = await answer
      .text()
      .then(readProof)
      .catch(() => undefined)
    if (answer.ok && body !== undefined) return body
    throw new ApiFault(answer.status, messageOf(body) ?? \`The router answered \${answer.status} and no words.\`)
  }
  return {
    traces: (query       , signal              ) => ask           ('-/traces', query, signal && { signal }),
    async tail(signal             )                                      {
      const answer = await call('-/traces/tail', { signal })
      if (answer.ok && answer.body !== null) return answer.body
      throw new ApiFault(answer.status, \`The router answered \${answer.status}.\`)
    },
    trace: (id        ) => ask             (\`-/traces/\${encodeURIComponent(id)}\`),
    explain: (id        ) => ask             (\`-/traces/\${encodeURIComponent(id)}/explain\`),
    capabilities: () => ask              ('v1/capabilities'),
    savings: (query       ) => ask         ('-/savings', query),
    evals: (query       ) => ask       ('-/evals', query),
    checkpoints: (query       , signal              ) =>
      ask                ('-/checkpoints', query, signal && { signal }),
    feedbackRecords: (query       , signal              ) =>
      ask              ('-/feedback/records', query, signal && { signal }),
    keys: () => ask            ('.well-known/router-receipts'),
    feedback: (traceId        , outcome         ) =>
      ask                (
        'v1/feedback',
        {},
        {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ request_id: traceId, outcome, reporter: 'panel' }),
        },
      ),
  }
}
function messageOf(body         )                     {
  if (typeof body !== 'object' || body === null || !('error' in body)) return undefined
  const { error } = body
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined
  return typeof error.message === 'string' ? error.message : undefined
}
`,
  "base.css": `@font-face {
  font-family: "Geist";
  src: url("geist-5.3.0.woff2") format("woff2");
  font-weight: 100 900;
  font-style: normal;
  font-display: swap;
  unicode-range:
    U+0000-00FF, U+0131, U+0152-0153, U+02BB-02BC, U+02C6, U+02DA, U+02DC, U+0304, U+0308, U+0329, U+2000-206F, U+20AC, U+2122, U+2191,
    U+2193, U+2212, U+2215, U+FEFF, U+FFFD;
}
@font-face {
  font-family: "Geist Fallback";
  src: local("Arial"), local("ArialMT"), local("Liberation Sans"), local("Helvetica");
  ascent-override: 95.94%;
  descent-override: 28.16%;
  line-gap-override: 0%;
  size-adjust: 104.76%;
}
@font-face {
  font-family: "Geist Fallback Wide";
  src: local("DejaVu Sans");
  ascent-override: 111.67%;
  descent-override: 32.78%;
  line-gap-override: 0%;
  size-adjust: 90%;
}
:root {
  color-scheme: light dark;
  --page: light-dark(#f6f7f9, #14171b);
  --card: light-dark(#ffffff, #1d2126);
  --text: light-dark(#1b1f24, #e8ebee);
  --quiet: light-dark(#535b66, #a9b2bd);
  --line: light-dark(#d5dae0, #363d45);
  --edge: light-dark(#78828e, #7f8a96);
  --link: light-dark(#0b57b8, #8ab8f5);
  --good: light-dark(#12693b, #73cf9b);
  --bad: light-dark(#b3261e, #ff9a91);
  --warn: light-dark(#7a4d00, #f0c063);
  --font-1: 0.75rem;
  --font-2: 0.8125rem;
  --font-3: 0.875rem;
  --font-4: 0.9375rem;
  --font-5: 1rem;
  --font-6: 1.125rem;
  --font-7: 1.375rem;
  --font-8: 1.625rem;
  --font-less: 0.875em;
  --font-code: 0.9em;
  --space-1: 0.125rem;
  --space-2: 0.25rem;
  --space-3: 0.375rem;
  --space-4: 0.5rem;
  --space-5: 0.75rem;
  --space-6: 1rem;
  --space-7: 1.25rem;
  --space-8: 1.5rem;
  --space-9: 2rem;
  --space-10: 3rem;
  --radius-1: 4px;
  --radius-2: 6px;
  --radius-3: 10px;
  --round: 999px;
  --letters: "Geist", "Geist Fallback", "Geist Fallback Wide", system-ui, sans-serif;
}
:root[data-theme="light"] {
  color-scheme: light;
}
:root[data-theme="dark"] {
  color-scheme: dark;
}
* {
  box-sizing: border-box;
}
.notice.bad {
  border-left-color: var(--bad);
}
h2 {
  margin: 0 0 var(--space-5);
  font-size: var(--font-6);
}
p {
  margin: var(--space-3) 0;
}
.good {
  color: var(--good);
}
.bad {
  color: var(--bad);
}
.warn {
  color: var(--warn);
}
button:hover {
  border-color: var(--link);
}
button:disabled {
  opacity: 0.6;
  cursor: default;
}
::placeholder {
  color: var(--quiet);
  opacity: 1;
}
:focus-visible {
  outline: 3px solid var(--link);
  outline-offset: 2px;
}
.icon {
  flex: none;
  width: 1.15em;
  height: 1.15em;
  fill: none;
  stroke: currentcolor;
  stroke-width: 1.6;
  stroke-linecap: round;
  stroke-linejoin: round;
  vertical-align: -0.2em;
}
.skip {
  position: absolute;
  left: -100rem;
}
.unseen {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
}
table,
time,
dd,
input[type="number"],
.num,
.big,
.count {
  font-variant-numeric: tabular-nums;
}
.figures {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-4) var(--space-9);
  margin: 0 0 var(--space-5);
}
.facts dd {
  margin: 0;
  overflow-wrap: anywhere;
}
.scroll {
  overflow-x: auto;
}
table {
  width: 100%;
  border-collapse: collapse;
}
th {
  color: var(--quiet);
  font-weight: 600;
  white-space: nowrap;
}
figcaption {
  font-size: var(--font-2);
}
dialog::backdrop {
  background: rgb(0 0 0 / 50%);
}
`,
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
  "canonical-trace.js": `import { canonicalize } from './jcs.js'
import { GENESIS,             } from './record-chain.js'
import {              sha256Hex } from './sha256.js'
const MAX_TEXT = 512
export function sealableText(text        )         {
  return text.slice(0, MAX_TEXT).toWellFormed().replaceAll('\\0', '\\ufffd')
}
export function traceText(record               )            {
  const members = isSealable(record) ? record : sealableMembers(record)
  let [beforeHash, beforePrevHash, beforeSeq, rest] = ['', '', '', '']
  for (const name of Object.keys(members).sort()) {
    const value = (members                           )[name]
    if (value === undefined) continue
    const text = \`,\${JSON.stringify(name)}:\${canonicalize(value)}\`
    if (name < 'hash') beforeHash += text
    else if (name < 'prev_hash') beforePrevHash += text
    else if (name < 'seq') beforeSeq += text
    else rest += text
  }
  return { beforeHash: beforeHash.slice(1), beforePrevHash, beforeSeq, rest }
}
function isSealable(value         )          {
  if (typeof value === 'string') return value.length <= MAX_TEXT && value.isWellFormed() && !value.includes('\\0')
  if (typeof value !== 'object' || value === null) return true
  return Object.values(value).every(isSealable)
}
function sealable(value         )          {
  if (typeof value === 'string') return sealableText(value)
  if (Array.isArray(value)) return value.map(sealable)
  return typeof value === 'object' && value !== null ? sealableMembers(value) : value
}
function sealableMembers(object        )         {
  return Object.fromEntries(Object.entries(object).map(([name, member]) => [name, sealable(member)]))
}
const encoder = new TextEncoder()
let scratch = new Uint8Array(1 << 20)
function roomFor(units        , used        )                          {
  if (used + units * 3 > scratch.length) {
    const wider = new Uint8Array((used + units * 3) * 2)
    wider.set(scratch.subarray(0, used))
    scratch = wider
  }
  return scratch
}
export function sealedRun(sha256        ) {
  let used = 0
  return {
    add(text           , previous                       )                                            {
      const seq = previous === undefined ? 0 : previous.seq + 1
      const prev_hash = previous === undefined ? GENESIS : previous.hash
      const tail = \`\${text.beforePrevHash},"prev_hash":"\${prev_hash}"\${text.beforeSeq},"seq":\${seq}\${text.rest}}\`
      const buffer = roomFor(1 + text.beforeHash.length + HASH_MEMBER + tail.length, used)
      const head = encoder.encodeInto('{' + text.beforeHash, buffer.subarray(used)).written
      const rest = encoder.encodeInto(tail, buffer.subarray(used + head)).written
      const hash = sha256Hex(buffer.subarray(used, used + head + rest), sha256)
      buffer.copyWithin(used + head + HASH_MEMBER, used + head, used + head + rest)
      encoder.encodeInto(\`,"hash":"\${hash}"\`, buffer.subarray(used + head))
      const at = used
      const bytes = head + HASH_MEMBER + rest
      used += bytes
      return { seq, hash, at, bytes }
    },
    bytes: ()                          => scratch.slice(0, used),
  }
}
const HASH_MEMBER = 74
`,
  "check-stretch.js": `import { readJson } from './read-json.js'
import { recordHash } from './record-chain.js'
import { newTraceIdList, pushTraceId,                  } from './trace-ids.js'
import { rowOf } from './trace-row.js'
export function stretchCheck(tenantId        , wanted                               , sha256        ) {
  const stretch                 = {
    tenantId,
    records: 0,
    broken: undefined,
    first: undefined,
    head: undefined,
    traceIds: newTraceIdList(),
    hashes: [],
  }
  function fault(line            , { record, fault }          )                     {
    if (fault !== undefined) return fault
    if (record === undefined || typeof record.trace_id !== 'string') return 'parse'
    const { head } = stretch
    if (stretch.first === undefined) stretch.first = { seq: record.seq, prevHash: record.prev_hash }
    else if (head === undefined || record.seq !== head.seq + 1) return 'seq'
    else if (record.prev_hash !== head.hash) return 'prev_hash'
    if (!holdsOwnHash(record, sha256)) return 'hash'
    if (record.tenant_id !== tenantId) return 'tenant'
    pushTraceId(stretch.traceIds, record.trace_id)
    if (line.columns !== undefined && !matchesColumns(line.columns, record)) return 'columns'
    return undefined
  }
  return {
    stretch,
    push(line            , read          )       {
      const index = stretch.records++
      if (stretch.broken !== undefined) return
      const { record } = read
      const reason = fault(line, read)
      if (reason !== undefined || record === undefined) {
        stretch.broken = { index, reason: reason ?? 'parse' }
        return
      }
      stretch.head = { seq: record.seq, hash: record.hash }
      if (wanted.has(record.seq)) stretch.hashes.push([record.seq, record.hash])
    },
  }
}
function holdsOwnHash(record            , sha256        )          {
  try {
    return recordHash(record, sha256) === record.hash
  } catch {
    return false
  }
}
function matchesColumns(columns        , record            )          {
  try {
    const expected = JSON.stringify(rowOf(record, record.seq))
    return columns === expected || JSON.stringify(readJson(columns)) === expected
  } catch {
    return false
  }
}
`,
  "checkpoint.js": `import { fromBase64, toBase64Url, utf8 } from './bytes.js'
import {              verifySignature } from './ed25519.js'
import { canonicalize } from './jcs.js'
import {              sha256Hex } from './sha256.js'
const CHECKPOINT_DOMAIN = 'router-checkpoint-v1\\n'
function signedBytes(body                )                          {
  return utf8(CHECKPOINT_DOMAIN + canonicalize(body))
}
export async function signCheckpoint(
  body                                      ,
  signer        ,
  sha256        ,
)                            {
  const whole                 = { v: 1, ...body, key_id: signer.keyId }
  const bytes = signedBytes(whole)
  return {
    checkpoint: { ...whole, sig: toBase64Url(await signer.sign(bytes)) },
    digest: sha256Hex(bytes, sha256),
  }
}
export function checkpointDigest({ sig: _sig, ...body }            , sha256        )         {
  return sha256Hex(signedBytes(body), sha256)
}
export async function checkSignature({ sig, ...body }            , keys             )                   {
  const key = keys.get(body.key_id)
  if (key === undefined) return false
  try {
    const signature = fromBase64(sig)
    return toBase64Url(signature) === sig && (await verifySignature(key, signature, signedBytes(body)))
  } catch {
    return false
  }
}
`,
  "db-fault.js": `const busyCodes = new Set(['SQLITE_BUSY', 'SQLITE_LOCKED', 'TRANSACTION_ACTIVE'])
const statementCodes = new Set([
  'SQLITE_CONSTRAINT',
  'SQLITE_ERROR',
  'SQLITE_MISMATCH',
  'SQLITE_TOOBIG',
  'SQLITE_RANGE',
  'SQLITE_READONLY',
  'SQLITE_UNKNOWN',
  'SQL_PARSE_ERROR',
  'SQL_NO_STATEMENT',
  'SQL_MANY_STATEMENTS',
  'ARGS_INVALID',
  'RESPONSE_TOO_LARGE',
])
export function dbFault(error         )          {
  const code = errorCode(error)
  if (code !== undefined) {
    if (busyCodes.has(code)) return 'busy'
    return statementCodes.has(code) ? 'statement' : 'unknown'
  }
  const message = error instanceof Error ? error.message : String(error)
  if (/database (table )?is locked|SQLITE_BUSY/i.test(message)) return 'busy'
  if (/fetch|network|socket|connection|timed? ?out|aborted|closed/i.test(message)) return 'unknown'
  return 'statement'
}
function errorCode(error         )                     {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' && error.code !== '' ? error.code : undefined
}
export class StoreLockedError extends Error {
           name = 'StoreLockedError'
           code = 'SQLITE_BUSY'
  constructor(cause          ) {
    super('The store is locked by another process: end what holds its file, or try again later.', { cause })
  }
}
export async function retryBusy   (
  act                  ,
  { retries = 6, afterWaiting = false, wait = pause }            = {},
)             {
  for (let tried = 0; ; tried++) {
    try {
      return await act()
    } catch (error) {
      if (tried >= retries || dbFault(error) !== 'busy') throw error
      if (error instanceof StoreLockedError && !afterWaiting) throw error
      const ceiling = Math.min(500, 20 * 2 ** tried)
      await wait(ceiling / 2 + (Math.random() * ceiling) / 2)
    }
  }
}
export function pause(ms        )                {
  return new Promise(resolve => setTimeout(resolve, ms))
}
`,
  "db-open-error.js": `export class DbOpenError extends Error {
           name = 'DbOpenError'
           problem
  constructor(problem               , message        , options                      ) {
    super(message, options)
    this.problem = problem
  }
}
`,
  "db.js": `import { retryBusy, StoreLockedError } from './db-fault.js'
import { DbOpenError } from './db-open-error.js'
import { guardedClient, reads } from './guarded-client.js'
import { lockWaits } from './lock-waits.js'
import { storeFault, storeFaults } from './store-faults.js'
import { markUnavailable } from './store-unavailable.js'
import { writeQueue } from './write-queue.js'
export const COMMIT_MS = 20
const ASKED_MS = 1000
export const STUCK =
  'the database server answers reads and takes no writes (store_stuck): restart it, and let at most four processes write to it'
function connectionSettings(options                )           {
  const { kind, synchronous = 'full', readOnly = false, checkpointPages = 4000 } = options
  if (kind === 'remote' || kind === 'replica') return []
  return [
    \`pragma busy_timeout = \${kind === 'file' ? COMMIT_MS : 5000}\`,
    'pragma foreign_keys = on',
    \`pragma synchronous = \${synchronous}\`,
    'pragma temp_store = memory',
    'pragma trusted_schema = off',
    ...(kind === 'file' && !readOnly
      ? // After a burst, cut the -wal file back to 64 MiB at the next checkpoint instead of keeping its largest size for ever.
        ['pragma journal_size_limit = 67108864', \`pragma wal_autocheckpoint = \${checkpointPages}\`]
      : []),
    ...(readOnly ? ['pragma query_only = on'] : []),
  ]
}
export async function prepareDb(client        , options                )              {
  const { kind, readOnly = false } = options
  if (kind === 'replica' && !readOnly) {
    throw new DbOpenError(
      'bad_url',
      'A replica is read-only: write through its server, or open the replica with readOnly.',
    )
  }
  const settings = connectionSettings(options)
  if (kind === 'file' && !readOnly) await useWal(client, options.name ?? 'the database')
  for (const sql of settings) await retryBusy(() => client.execute(sql))
  await retryBusy(() => client.execute('select count(*) from sqlite_master'))
  const refuseWrites = readOnly && (kind === 'remote' || kind === 'replica')
  const faults = storeFaults()
  const waits = kind === 'file' ? lockWaits() : undefined
  const guarded =
    settings.length > 0 || refuseWrites
      ? guardedClient(client, { settings, refuseWrites, waits, failed: faults.note })
      : client
  const reached = kind === 'remote' ? markUnavailable :    (act                  ) => act()
  const turns = options.writeTurns ? writeQueue() : undefined
  const written =    (act                  ) => reached(() => (turns ? turns(act) : act()))
  let taken
  return {
    kind,
    readOnly,
    client: guarded,
    writes: options.writes,
    execute(statement) {
      const sql = typeof statement === 'string' ? statement : statement.sql
      return (turns && !reads(sql) ? written : reached)(() => guarded.execute(statement))
    },
    write: async statements => (statements.length === 0 ? [] : written(() => guarded.batch(statements, 'write'))),
    read: async statements => (statements.length === 0 ? [] : reached(() => guarded.batch(statements, 'read'))),
    fault: () => faults.current,
    async writable() {
      if (faults.current !== undefined) throw new Error(faults.current)
      if (options.writes?.stuck) throw new Error(STUCK)
      if (!waits || readOnly) return
      taken ??= guarded.batch([], 'write').finally(() => {
        taken = undefined
      })
      let late
      const tooLong = new Promise       ((_, reject) => {
        late = setTimeout(() => reject(new StoreLockedError()), ASKED_MS)
      })
      try {
        await Promise.race([taken, tooLong])
      } catch (error) {
        const sentence = storeFault(error)
        throw sentence === undefined ? error : new Error(sentence, { cause: error })
      } finally {
        clearTimeout(late)
      }
    },
    async sync() {
      if (kind === 'replica') await guarded.sync()
    },
    close: () => guarded.close(),
  }
}
async function useWal(client        , name        ) {
  await client.execute('pragma busy_timeout = 5000')
  await client.execute('pragma page_size = 8192')
  await client.execute('pragma auto_vacuum = incremental')
  const result = await retryBusy(() => client.execute('pragma journal_mode = wal'))
  const mode = rowsOf                          (result)[0]?.journal_mode
  if (mode !== 'wal') {
    throw new DbOpenError(
      'not_a_file',
      \`\${name} cannot use write-ahead logging (it stays in "\${mode}" mode): put it on a local disk, not on a network share.\`,
    )
  }
}
export function rowsOf                  ({ rows }                         )               {
  return rows
}
`,
  "dom.js": `const SVG = 'http://www.w3.org/2000/svg'
export function el                                       (
  tag   ,
  attributes             = {},
  ...children
)                           {
  return fill(withAttributes(document.createElement(tag), attributes), children)
}
export function svg                                      (
  tag   ,
  attributes             = {},
  ...children
)                          {
  return fill(withAttributes(document.createElementNS(SVG, tag), attributes), children)
}
export function icon(name          )             {
  return svg('svg', { class: 'icon', 'aria-hidden': 'true' }, svg('use', { href: \`#i-\${name}\` }))
}
export function part                                 (selector        , within             = document)    {
  const found = within.querySelector   (selector)
  if (found === null) throw new Error(\`the page has no \${selector}\`)
  return found
}
export function table(caption        , columns                   , rows                               )              {
  const names = columns.map(one => (typeof one === 'string' ? one : one.num))
  const look = columns.map(one => (typeof one === 'string' ? undefined : 'num'))
  return el(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': \`Table: \${caption}\` },
    el(
      'table',
      {},
      el('caption', { class: 'unseen' }, caption),
      el('thead', {}, el('tr', {}, ...names.map((name, i) => el('th', { scope: 'col', class: look[i] }, name)))),
      el(
        'tbody',
        {},
        ...rows.map(cells =>
          el('tr', {}, ...cells.map((cell, i) => el('td', { 'data-label': names[i], class: look[i] }, cell))),
        ),
      ),
    ),
  )
}
function withAttributes                   (element   , attributes            )    {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    element.setAttribute(name, value === true ? '' : String(value))
  }
  return element
}
function fill                   (element   , children                  )    {
  for (const child of children) {
    if (child === undefined || child === false) continue
    if (typeof child === 'string' || typeof child === 'number') element.append(String(child))
    else if (child instanceof Node) element.append(child)
    else fill(element, child)
  }
  return element
}
`,
  "ed25519.js": `import { getPublicKeyAsync, signAsync, verifyAsync } from './noble-ed25519-index.js'
import { concat, fromBase64, fromHex } from './bytes.js'
import { sha256Hex } from './sha256.js'
const PKCS8_PREFIX = fromHex('302e020100300506032b657004220420')
const ALGORITHM = { name: 'Ed25519' }
export function publicKey(raw                         )            {
  if (raw.length !== 32) throw new TypeError(\`expected a public key of 32 bytes, got \${raw.length}\`)
  const fingerprint = sha256Hex(raw)
  return { keyId: fingerprint.slice(0, 16), fingerprint, publicKey: raw }
}
export async function signer(seed                         )                  {
  if (seed.length !== 32) throw new TypeError(\`expected a signing seed of 32 bytes, got \${seed.length}\`)
  const native = await importNative('pkcs8', concat(PKCS8_PREFIX, seed), 'sign')
  const raw = (native && (await nativePublicKey(seed))) ?? Uint8Array.from(await getPublicKeyAsync(seed))
  return {
    ...publicKey(raw),
    async sign(message) {
      if (native) return new Uint8Array(await crypto.subtle.sign(ALGORITHM, native, message))
      return Uint8Array.from(await signAsync(message, seed))
    },
  }
}
export async function verifySignature(
  raw                         ,
  signature                         ,
  message                         ,
)                   {
  if (raw.length !== 32 || signature.length !== 64) return false
  const native = await importNative('raw', raw, 'verify')
  if (native) return crypto.subtle.verify(ALGORITHM, native, signature, message)
  return verifyPortable(raw, signature, message)
}
export async function verifyPortable(raw            , signature            , message            )                   {
  try {
    return await verifyAsync(signature, message, raw, { zip215: false })
  } catch {
    return false
  }
}
async function importNative(format                 , key                         , use                   ) {
  try {
    return await crypto.subtle.importKey(format, key, ALGORITHM, false, [use])
  } catch {
    return undefined
  }
}
async function nativePublicKey(seed                         )                                               {
  try {
    const key = await crypto.subtle.importKey('pkcs8', concat(PKCS8_PREFIX, seed), ALGORITHM, true, ['sign'])
    const { x } = await crypto.subtle.exportKey('jwk', key)
    return x === undefined ? undefined : fromBase64(x)
  } catch {
    return undefined
  }
}
`,
  "export-line.js": `import { readJson } from './read-json.js'
import { CHECKPOINT,               ROUTER_KEYS, unknownMember } from './members.js'
import { ProofTextError,                 readProof } from './read-proof.js'
import { fromBase64, toBase64 } from './bytes.js'
import { publicKey } from './ed25519.js'
export class ExportLineError extends Error {
           name = 'ExportLineError'
           reason
  constructor(what        , reason                           , why        ) {
    super(\`a line is no \${what}: \${why}\`)
    this.reason = reason
  }
}
function kindOfLine(line        )           {
  if (line.includes('"attempts":')) return 'record'
  const found = membersOf(line)
  const has = (name        ) => (found === undefined ? line.includes(\`"\${name}":\`) : Object.hasOwn(found, name))
  return KINDS.find(([name]) => has(name))?.[1] ?? 'record'
}
const KINDS                                              = [
  ['attempts', 'record'],
  ['prev_checkpoint', 'checkpoint'],
  ['heads_url', 'keys'],
  ['feedback_id', 'feedback'],
]
function membersOf(line        )                     {
  try {
    const value = readJson(line)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return undefined
  }
}
export async function exportExtras(lots      )                  {
  const extras         = { checkpoints: [], keys: [], feedback: false }
  for await (const lines of lots) {
    for (const line of lines) {
      const kind = kindOfLine(line)
      if (kind === 'checkpoint') extras.checkpoints.push(toCheckpoint(line))
      if (kind === 'keys') extras.keys.push(toKeys(line))
      if (kind === 'feedback') extras.feedback = true
    }
  }
  return extras
}
export async function* exportRecords(lots      , kind                       )                               {
  for await (const lines of lots) yield lines.filter(line => kindOfLine(line) === kind).map(text => ({ text }))
}
export function toCheckpoint(line        )             {
  const value = strictly(line, 'checkpoint', CHECKPOINT)
  const { tenant_id, kind, seq, sig } = value
  const whole =
    typeof tenant_id === 'string' &&
    (kind === 'head' || kind === 'prune') &&
    Number.isSafeInteger(seq) &&
    typeof sig === 'string'
  if (whole) return value
  throw new ExportLineError('checkpoint', 'shape', line.slice(0, 60))
}
export function toKeys(line        )             {
  const value = strictly(line, 'list of keys', ROUTER_KEYS)
  const keys = Array.isArray(value.keys) ? value.keys : []
  for (const { key_id, public_key, alg } of keys) {
    if (alg !== 'Ed25519' || !isKey(public_key, key_id)) {
      throw new ExportLineError('list of keys', 'shape', \`\${String(key_id)} is not the id of the key beside it\`)
    }
  }
  if (keys.length > 0) return value
  throw new ExportLineError('list of keys', 'shape', line.slice(0, 60))
}
function isKey(text         , id         )          {
  try {
    const raw = fromBase64(String(text))
    return toBase64(raw) === text && publicKey(raw).keyId === id
  } catch {
    return false
  }
}
function strictly(line        , what        , members         )         {
  let value
  try {
    value = readProof(line)
  } catch (error) {
    throw error instanceof ProofTextError ? new ExportLineError(what, error.reason, error.message) : error
  }
  const extra = unknownMember(value, members)
  if (extra !== undefined) throw new ExportLineError(what, 'unknown_member', \`none has a member \${extra}\`)
  if (typeof value === 'object' && value !== null) return value
  throw new ExportLineError(what, 'shape', line.slice(0, 60))
}
`,
  "export-view.js": `import { el, part } from './dom.js'
import { many } from './figures.js'
import { verifyExport } from './verify-export.js'
export function exportView()       {
  const shown = part('#export-verified')
  part                 ('#export-form').addEventListener('submit', event => {
    event.preventDefault()
    void verify()
  })
  async function verify()                {
    const file = part                  ('#export-file').files?.[0]
    if (file === undefined) return
    shown.replaceChildren('Reading and hashing …')
    try {
      const bytes = new Uint8Array(await file.arrayBuffer())
      shown.replaceChildren(...inWords(await verifyExport(bytes, part                  ('#export-key').value)))
    } catch (error) {
      shown.replaceChildren(el('p', { class: 'bad' }, error instanceof Error ? error.message : String(error)))
    }
  }
}
function inWords({ valid, reason, records, tenants }              )                {
  const verdict = valid ? '✓ valid' : \`✗ not valid\${reason === undefined ? '' : \`: \${reason}\`}\`
  return [
    el('p', {}, el('strong', { class: valid ? 'good' : 'bad' }, verdict), \` \${many(records, 'record')}.\`),
    ...tenants.map(({ tenant_id, broken_at, reason, unanchored_tail, unanchored_feedback }) => {
      const open = unanchored_tail + unanchored_feedback
      const state = broken_at === null ? 'whole' : \`broken at index \${broken_at}: \${reason}\`
      return el(
        'p',
        {},
        \`\${tenant_id || 'a line without a tenant'}: \${state}\${open === 0 ? '' : \`, \${open} under no signed checkpoint\`}.\`,
      )
    }),
  ]
}
`,
  "feedback-columns.js": `import { readJson } from './read-json.js'
export const feedbackColumns =
  'json_array(tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, ts_ms, hash)'
export function matchesFeedback(columns        , report        )          {
  const { tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, ts, hash } = report
  const cells = [tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, Date.parse(String(ts)), hash]
  const expected = JSON.stringify(cells)
  try {
    return columns === expected || JSON.stringify(readJson(columns)) === expected
  } catch {
    return false
  }
}
`,
  "feedback.js": `import { el } from './dom.js'
const WORDS                                                        = { correct: '✓ Right', incorrect: '✗ Wrong' }
export function feedbackButtons({ api, traceId, said, failed, reported }                 )              {
  const buttons = Object.entries(WORDS).map(([outcome, words]) => {
    const label = \`\${words.slice(2)}: report the answer of trace \${traceId} as \${outcome}\`
    const button = el('button', { type: 'button', class: 'small', 'aria-pressed': 'false', 'aria-label': label }, words)
    button.addEventListener('click', () => void report(outcome           , button))
    return button
  })
  async function report(outcome         , pressed                   )                {
    try {
      const result = await api.feedback(traceId, outcome)
      for (const button of buttons) button.setAttribute('aria-pressed', String(button === pressed))
      const status = { recorded: 'Recorded', updated: 'Changed', duplicate: 'Recorded before' }[result.status]
      said(\`\${status}: the answer of trace \${traceId} was \${outcome}.\`)
      reported?.(result)
    } catch (error) {
      failed(error)
    }
  }
  return el('span', { class: 'feedback' }, ...buttons)
}
export function reportsOf(feedback                           )              {
  if (feedback.length === 0) return el('p', { class: 'hint' }, 'Nothing has been reported about this answer.')
  const lines = feedback.map(({ ts, reporter, gate_id, verdict }) =>
    el('li', {}, \`\${verdict} (\${gate_id}) by \${reporter}, \${ts}\`),
  )
  return el('ul', {}, ...lines)
}
`,
  "figures.js": `export function usd(value                           )         {
  if (value === null || value === undefined) return 'unknown'
  const size = Math.abs(value)
  const digits = size >= 100 ? 2 : size >= 1 ? 4 : 9
  const [whole = '0', rest = ''] = size.toFixed(digits).split('.')
  const cents = rest.replace(/0+$/, '').padEnd(2, '0')
  return \`\${value < 0 ? '−' : ''}$\${grouped(whole)}.\${cents}\`
}
export function money(value        )         {
  const size = Math.abs(value)
  const sign = value < 0 ? '−' : ''
  if (size === 0) return '$0.00'
  if (size < 0.00005) return \`\${sign}<$0.0001\`
  if (size < 0.99995) return \`\${sign}$\${size.toFixed(4)}\`
  const [whole = '0', cents = '00'] = size.toFixed(2).split('.')
  return \`\${sign}$\${grouped(whole)}.\${cents}\`
}
export function count(value        )         {
  return grouped(String(value))
}
export function many(value        , one        , more = \`\${one}s\`)         {
  return \`\${count(value)} \${value === 1 ? one : more}\`
}
export function percent(part        )         {
  return \`\${(part * 100).toFixed(part !== 0 && Math.abs(part) < 0.1 ? 1 : 0)}\\u00a0%\`
}
export function milliseconds(value               )         {
  if (value === null) return '–'
  if (value >= 10_000) return \`\${(value / 1000).toFixed(1)}\\u00a0s\`
  return \`\${value >= 10 ? value.toFixed(0) : value.toFixed(2)}\\u00a0ms\`
}
export function duration(ms        )         {
  if (ms < 999.5) return \`\${Math.round(ms)}\\u00a0ms\`
  if (ms < 9_995) return \`\${(ms / 1000).toFixed(2)}\\u00a0s\`
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return \`\${(ms / 1000).toFixed(1)}\\u00a0s\`
  const minutes = Math.floor(seconds / 60)
  return minutes < 120
    ? \`\${minutes}\\u00a0min \${seconds % 60}\\u00a0s\`
    : \`\${Math.floor(minutes / 60)}\\u00a0h \${minutes % 60}\\u00a0min\`
}
export function moment(iso        )         {
  return iso.replace('T', ' ').replace(/\\.\\d+Z$/, ' UTC')
}
function grouped(digits        )         {
  return digits.replace(/\\B(?=(\\d{3})+$)/g, ',')
}
`,
  "flow.js": `import { el, svg, table } from './dom.js'
import { count, many } from './figures.js'
const WIDTH = 340
const ROW = 84
const BOX = { x: 120, width: 84, height: 34 }
const WIDEST = 22
export function flowOf(moves                     , servedByRung                         )       {
  const served = new Map(Object.entries(servedByRung).map(([rung, n]) => [Number(rung), n]))
  const all = [...new Set([...served.keys(), ...moves.flatMap(({ from, to }) => (from === null ? [to] : [from, to]))])]
  const rungs = all.sort((a, b) => b - a).map((rung, i) => ({ rung, y: ROW * (i + 0.5) }))
  const middle = new Map(rungs.map(({ rung, y }) => [rung, y]))
  const most = Math.max(1, ...moves.map(({ requests }) => requests), ...served.values())
  const wide = (n        ) => Math.max(1, (n / most) * WIDEST)
  const lines             = []
  let climbs = 0
  for (const { from, to, requests } of moves) {
    const y = middle.get(to)
    const width = wide(requests)
    if (from === null) {
      const words = \`\${many(requests, 'call')} began on rung \${to}\`
      const label = { x: 4, y: y - width / 2 - 5, text: \`\${count(requests)} began\`, end: 'start'          }
      lines.push({ path: \`M0 \${y}H\${BOX.x}\`, width, kind: 'in', words, label })
      continue
    }
    if (from === to) continue
    const start = middle.get(from)
    const up = y < start
    const words = \`\${many(requests, 'answer')} went on from rung \${from} to rung \${to}\`
    const [a, b] = [start + (up ? -1 : 1) * (BOX.height / 2), y + (up ? 1 : -1) * (BOX.height / 2)]
    const near = Math.abs(y - start) <= ROW
    const x = near ? BOX.x + BOX.width / 2 + (up ? -18 : 18) : BOX.x + 8 + (climbs++ % 3) * 5
    const bend = near ? x : x - 34
    const text = count(requests)
    const label = {
      x: near ? x + width / 2 + 4 : bend - 2,
      y: (a + b) / 2 + 4,
      text,
      end: near ? 'start' : 'end',
    }
    lines.push({
      path: \`M\${x} \${a}C\${bend} \${(a + b) / 2} \${bend} \${(a + b) / 2} \${x} \${b}\`,
      width,
      kind: 'move',
      words,
      label,
    })
  }
  for (const [rung, n] of served) {
    const y = middle.get(rung)
    const width = wide(n)
    const words = \`\${many(n, 'call')} served from rung \${rung}\`
    const label = { x: WIDTH - 4, y: y - width / 2 - 5, text: \`\${count(n)} served\`, end: 'end'          }
    lines.push({ path: \`M\${BOX.x + BOX.width} \${y}H\${WIDTH}\`, width, kind: 'out', words, label })
  }
  return { width: WIDTH, height: Math.max(1, rungs.length) * ROW, rungs, lines }
}
export function flowView({ moves, served_by_rung }                                         )                {
  const flow = flowOf(moves, served_by_rung)
  if (flow.rungs.length === 0) return []
  const summary = flow.lines.map(({ words }) => words).join('; ')
  const picture = svg(
    'svg',
    { viewBox: \`0 0 \${flow.width} \${flow.height}\`, class: 'flow', role: 'img', 'aria-label': summary },
    ...flow.lines.map(({ path, width, kind, words }) =>
      svg('path', { d: path, 'stroke-width': width, class: kind }, svg('title', {}, words)),
    ),
    ...flow.rungs.flatMap(({ rung, y }) => [
      svg('rect', { x: BOX.x, y: y - BOX.height / 2, width: BOX.width, height: BOX.height, rx: 5 }),
      svg('text', { x: BOX.x + BOX.width / 2, y: y + 4, 'text-anchor': 'middle' }, \`Rung \${rung}\`),
    ]),
    ...flow.lines.map(({ label: { x, y, text, end } }) => svg('text', { x, y, 'text-anchor': end }, text)),
  )
  const rows = [
    ...moves.map(({ from, to, requests }) => [
      from === null ? 'came in' : \`rung \${from}\`,
      from === to ? \`rung \${to} again\` : \`rung \${to}\`,
      count(requests),
    ]),
    ...Object.entries(served_by_rung).map(([rung, n]) => [\`rung \${rung}\`, 'served', count(n)]),
  ]
  return [
    el('figure', {}, picture),
    el(
      'details',
      {},
      el('summary', {}, 'As a table'),
      table('From rung to rung', ['From', 'To', { num: 'Answers' }], rows),
    ),
  ]
}
`,
  "guarded-client.js": `export class ReadOnlyDbError extends Error {
           name = 'ReadOnlyDbError'
           code = 'SQLITE_READONLY'
}
export function guardedClient(inner        , { settings, refuseWrites, waits, failed }             )         {
  let doubtful = false
  let restoring
  async function restore() {
    try {
      for (const sql of settings) await inner.execute(sql)
      doubtful = false
    } finally {
      restoring = undefined
    }
  }
  const run =    (act                  , onlyReads                = () => false)             =>
    waits ? waits.run(() => once(act), onlyReads) : once(act)
  async function once   (act                  )             {
    try {
      if (doubtful) {
        restoring ??= restore()
        await restoring
      }
      return await act()
    } catch (error) {
      doubtful = settings.length > 0
      failed?.(error)
      throw error
    }
  }
  function check(statements                                              ) {
    if (!refuseWrites) return
    for (const statement of statements) {
      const sql = textOf(statement)
      if (!reads(sql)) throw new ReadOnlyDbError(\`This database was opened read-only and cannot run: \${brief(sql)}\`)
    }
  }
  return {
    async execute(statement             , args         ) {
      check([statement])
      return run(
        () => (typeof statement === 'string' ? inner.execute(statement, args) : inner.execute(statement)),
        () => reads(textOf(statement)),
      )
    },
    async batch(statements                                     , mode                  ) {
      check(statements)
      return run(
        () => inner.batch(statements, mode),
        () => mode === 'read',
      )
    },
    async migrate(statements               ) {
      check(statements)
      return run(() => inner.migrate(statements))
    },
    async transaction(mode                  = 'write') {
      if (refuseWrites) {
        throw new ReadOnlyDbError(
          'A read-only server or replica takes no interactive transactions: use batch() instead.',
        )
      }
      return run(() => inner.transaction(mode))
    },
    async executeMultiple(sql        ) {
      if (refuseWrites) throw new ReadOnlyDbError('This database was opened read-only and runs no scripts.')
      return run(() => inner.executeMultiple(sql))
    },
    sync: () => inner.sync(),
    reconnect() {
      doubtful = settings.length > 0
      return inner.reconnect()
    },
    close: () => inner.close(),
    get closed() {
      return inner.closed
    },
    protocol: inner.protocol,
  }
}
function textOf(statement                                 )         {
  if (typeof statement === 'string') return statement
  return Array.isArray(statement) ? statement[0] : statement.sql
}
function brief(sql        )         {
  const line = sql.replace(/\\s+/g, ' ').trim()
  return line.length > 80 ? \`\${line.slice(0, 80)}…\` : line
}
const quietParts = /--[^\\n]*|\\/\\*[\\s\\S]*?\\*\\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\`[^\`]*\`|\\[[^\\]]*\\]/g
export function reads(sql        )          {
  const words = sql.replace(quietParts, ' ').trim().replace(/;$/, '').toLowerCase()
  if (words.includes(';')) return false
  const verb = /^[a-z]+/.exec(words)?.[0]
  if (verb === 'select' || verb === 'values' || verb === 'explain') return true
  if (verb === 'with') return !/\\b(insert|update|delete|replace\\s+into)\\b/.test(words)
  return verb === 'pragma' && !words.includes('=') && !words.includes('(')
}
`,
  "icon.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><title>Waybill</title><rect width="32" height="32" rx="6" fill="#1f5fbf"/><path d="M8 23h4v-6h4v-5h4V7h4" fill="none" stroke="#fff" stroke-width="3"/></svg>
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
  "keys.js": `import { fromBase64, toBase64 } from './bytes.js'
import {                      rowsOf } from './db.js'
export async function publishKey(db    , { keyId, publicKey }           , now      )                {
  const at = now.toISOString()
  await db.write([
    {
      sql: 'insert into signing_keys (key_id, public_key, created_at) values (?1, ?2, ?3) on conflict (key_id) do update set retired_at = null where retired_at is not null',
      args: [keyId, toBase64(publicKey), at],
    },
    { sql: 'update signing_keys set retired_at = ? where key_id <> ? and retired_at is null', args: [at, keyId] },
  ])
}
export function mergedKeys(lists                       )             {
  const [first] = lists
  if (first === undefined || lists.length === 1) return first ?? { v: 1, keys: [], heads_url: '/-/checkpoints' }
  const byId = Map.groupBy(
    lists.flatMap(({ keys }) => keys),
    ({ key_id }) => key_id,
  )
  const keys = [...byId.values()].map(
    same => same.find(({ retired_at }) => retired_at === undefined) ?? same.toSorted(laterRetired)[0] ,
  )
  return { ...first, keys: keys.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1)) }
}
const laterRetired = (a           , b           ) => ((a.retired_at ?? '') < (b.retired_at ?? '') ? 1 : -1)
export async function publishedKeys(db    )                      {
  const found = await db.execute('select * from signing_keys order by created_at, key_id')
  return {
    v: 1,
    keys: rowsOf                           (found).map(row => ({
      key_id: row.key_id,
      alg: 'Ed25519',
      public_key: row.public_key,
      created_at: row.created_at,
      ...(row.retired_at !== null && { retired_at: row.retired_at }),
    })),
    heads_url: '/-/checkpoints',
  }
}
export function trustedKeys({ keys }                          )              {
  return new Map(keys.map(({ key_id, public_key }) => [key_id, fromBase64(public_key)]))
}
`,
  "lock-waits.js": `import { dbFault, pause, StoreLockedError } from './db-fault.js'
import { markUnavailable } from './store-unavailable.js'
import { writeQueue } from './write-queue.js'
export function lockWaits({
  longestWaitMs = 10_000,
  wait = pause,
  monotonic = () => performance.now(),
}                   = {}) {
  const inTurn = writeQueue({ longestWaitMs })
  let waiting = 0
  async function untilFree   (act                  , untilMs        , met         )             {
    for (let tried = met ? 1 : 0; ; tried++) {
      const ceiling = Math.min(250, 10 * 2 ** tried)
      if (tried > 0) await wait(ceiling / 2 + (Math.random() * ceiling) / 2)
      try {
        return await act()
      } catch (error) {
        if (!isLocked(error) || monotonic() >= untilMs) throw error
      }
    }
  }
  return {
    async run   (act                  , onlyReads               )             {
      const met = waiting === 0 || onlyReads()
      if (met) {
        try {
          return await act()
        } catch (error) {
          if (!isLocked(error)) throw error
        }
      }
      const untilMs = monotonic() + longestWaitMs
      waiting++
      try {
        return await inTurn(() => untilFree(act, untilMs, met))
      } catch (error) {
        if (dbFault(error) !== 'busy') throw error
        return markUnavailable(() => Promise.reject(new StoreLockedError(error)))
      } finally {
        waiting--
      }
    },
  }
}
function isLocked(error         )          {
  return (
    dbFault(error) === 'busy' && !(error instanceof Error && 'code' in error && error.code === 'TRANSACTION_ACTIVE')
  )
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
  "money.js": `const NANO_PER_USD = 1_000_000_000
const PICO_PER_NANO = 1000n
export class MoneyRangeError extends RangeError {
  constructor(what        ) {
    super(\`\${what} is more money than one amount can hold (\${Number.MAX_SAFE_INTEGER} nano-USD)\`)
    this.name = 'MoneyRangeError'
  }
}
export function fromUsd(usd        )          {
  const nano = Math.round(usd * NANO_PER_USD)
  if (!Number.isSafeInteger(nano)) throw new MoneyRangeError(\`\${usd} USD\`)
  return nano === 0 ? 0 : nano
}
export function toUsd(nano         )         {
  return nano / NANO_PER_USD
}
export function sumNano(amounts                   )          {
  let sum = 0
  for (const amount of amounts) {
    sum += amount
    if (!Number.isSafeInteger(sum)) throw new MoneyRangeError('the sum')
  }
  return sum
}
export function nanoFromPico(pico        )          {
  const nano = Number((pico + PICO_PER_NANO / 2n) / PICO_PER_NANO)
  if (!Number.isSafeInteger(nano)) throw new MoneyRangeError('the cost')
  return nano
}
export function formatUsd(nano         )         {
  const sign = nano < 0 ? '-' : ''
  const digits = String(Math.abs(nano)).padStart(10, '0')
  const decimals = digits.slice(-9).replace(/0+$/, '')
  return sign + digits.slice(0, -9) + (decimals === '' ? '' : '.' + decimals)
}
`,
  "noble-ed25519-index.js": `/*! noble-ed25519 - MIT License (c) 2019 Paul Miller (paulmillr.com) */
const freeze = Object.freeze;
const P = 0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffedn;
const N = 0x1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3edn;
const _d = 0x52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3n;
const Gx = 0x216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2c9562d608f25d51an;
const Gy = 0x6666666666666666666666666666666666666666666666666666666666666658n;
const _a = P - 1n; // field-element encoding of RFC \`a = -1\`
const ed25519_CURVE = freeze({
    p: P,
    n: N,
    h: 8n,
    a: _a,
    d: _d,
    Gx,
    Gy,
});
const LEN = 32;
const isBytes = (a) => {
    return (a instanceof Uint8Array ||
        (ArrayBuffer.isView(a) &&
            a.constructor.name === 'Uint8Array' &&
            a.BYTES_PER_ELEMENT === 1));
};
const abytes = (value, length, title = '') => {
    if (isBytes(value) && (length === undefined || value.length === length))
        return value;
    const bytes = isBytes(value);
    const ofLen = length !== undefined ? \` of length \${length}\` : '';
    const got = bytes ? \`length=\${value.length}\` : \`type=\${typeof value}\`;
    const message = (title ? \`"\${title}" \` : '') + 'expected Uint8Array' + ofLen + ', got ' + got;
    if (!bytes)
        throw new TypeError(message);
    throw new RangeError(message);
};
const snapshotBytes = (value, title = '', length) => Uint8Array.from(abytes(value, length, title));
const padh = (n, pad) => n.toString(16).padStart(pad, '0');
const bytesToHex = (bytes) => {
    let hex = '';
    for (const byte of abytes(bytes))
        hex += padh(byte, 2);
    return hex;
};
const hexToBytes = (hex) => {
    const e = 'hex invalid'; // Strict ASCII hex only, with one generic error for parse failures.
    if (typeof hex !== 'string')
        throw new TypeError(e);
    if (hex.length % 2 || !/^[\\da-f]*$/i.test(hex))
        throw new RangeError(e);
    const array = new Uint8Array(hex.length / 2);
    for (let ai = 0, hi = 0; ai < array.length; ai++, hi += 2) {
        const n1 = hex.charCodeAt(hi);
        const n2 = hex.charCodeAt(hi + 1);
        array[ai] = ((n1 & 15) + (n1 >> 6) * 9) * 16 + (n2 & 15) + (n2 >> 6) * 9;
    }
    return array;
};
const concatBytes = (...arrays) => {
    let sum = 0;
    for (const a of arrays)
        sum += abytes(a).length;
    const res = new Uint8Array(sum);
    let pad = 0;
    for (const a of arrays) {
        res.set(a, pad);
        pad += a.length;
    }
    return res;
};
const randomBytes = (len = LEN) => {
    const c = globalThis?.crypto;
    if (typeof c?.getRandomValues !== 'function')
        throw new Error('crypto.getRandomValues must be defined, consider polyfill');
    return c.getRandomValues(new Uint8Array(len));
};
const arange = (n, min, max, msg = 'bad number: out of range') => {
    if (typeof n !== 'bigint')
        throw new TypeError(msg);
    if (min <= n && n < max)
        return n;
    throw new RangeError(msg);
};
const mod = (a, b = P) => ((a %= b) >= 0n ? a : b + a);
const P_MASK = (1n << 255n) - 1n;
const modP = (num) => {
    if (num < 0n)
        throw new RangeError('negative coordinate');
    let r = (num >> 255n) * 19n + (num & P_MASK);
    r = (r >> 255n) * 19n + (r & P_MASK);
    return r % P;
};
const modN = (a) => mod(a, N);
const invert = (number, modulo) => {
    if (number === 0n)
        throw new Error('invert: expected non-zero number');
    if (modulo <= 1n)
        throw new Error('invert: expected modulus > 1, got ' + modulo);
    let a = mod(number, modulo);
    let b = modulo;
    let x = 0n, u = 1n;
    while (a !== 0n) {
        const q = b / a;
        const r = b - a * q;
        const m = x - u * q;
        b = a, a = r, x = u, u = m;
    }
    const gcd = b;
    if (gcd !== 1n)
        throw new Error('invert: does not exist');
    return mod(x, modulo);
};
const _hash = (name) => {
    const fn = hashes[name];
    if (typeof fn !== 'function')
        throw new Error('hashes.' + name + ' not set');
    return fn;
};
const callHash = (name, ...m) => abytes(_hash(name)(concatBytes(...m)), 64, 'digest');
const callHashAsync = async (name, ...m) => abytes(await _hash(name)(concatBytes(...m)), 64, 'digest');
const hash = (msg) => callHash('sha512', abytes(msg, undefined, 'message'));
const apoint = (p) => {
    if (p instanceof Point)
        return p;
    throw new TypeError('Point expected');
};
const B256 = 2n ** 256n;
class Point {
    static BASE;
    static ZERO;
    X;
    Y;
    Z;
    T;
    constructor(X, Y, Z, T) {
        const max = B256;
        this.X = arange(X, 0n, max);
        this.Y = arange(Y, 0n, max);
        this.Z = arange(Z, 1n, max);
        this.T = arange(T, 0n, max);
        freeze(this);
    }
    static CURVE() {
        return ed25519_CURVE;
    }
    static fromAffine(p) {
        return new Point(p.x, p.y, 1n, modP(p.x * p.y));
    }
    static fromBytes(bytes, zip215 = false) {
        const normed = snapshotBytes(bytes, 'point', LEN); // owned copy: sign-bit mask below mutates it
        const lastByte = normed[31];
        normed[31] = lastByte & ~0x80;
        const y = bytesToNumberLE(normed);
        if (!zip215)
            arange(y, 0n, P);
        const y2 = modP(y * y); // y²
        const u = mod(y2 - 1n); // u=y²-1
        const v = modP(_d * y2 + 1n); // v=dy²+1
        let { isValid, value: x } = uvRatio(u, v); // (uv³)(uv⁷)^(p-5)/8; square root
        if (!isValid)
            throw new Error('bad point: y not sqrt'); // not square root: bad point
        const isLastByteOdd = !!(lastByte & 0x80); // x_0, last bit
        if (!zip215 && x === 0n && isLastByteOdd)
            throw new Error('bad point: x==0, isLastByteOdd'); // x=0, x_0=1
        if (isLastByteOdd !== !!(x & 1n))
            x = mod(-x); // adjust sign of x coordinate
        return new Point(x, y, 1n, modP(x * y)); // Z=1, T=xy
    }
    static fromHex(hex, zip215) {
        return Point.fromBytes(hexToBytes(hex), zip215);
    }
    get x() {
        return this.toAffine().x;
    }
    get y() {
        return this.toAffine().y;
    }
    assertValidity() {
        const a = _a;
        const d = _d;
        const p = this;
        if (p.is0())
            throw new Error('bad point: ZERO');
        const { X, Y, Z, T } = p;
        const X2 = modP(X * X); // X²
        const Y2 = modP(Y * Y); // Y²
        const Z2 = modP(Z * Z); // Z²
        const Z4 = modP(Z2 * Z2); // Z⁴
        const aX2 = modP(X2 * a); // aX²
        const left = modP(Z2 * (aX2 + Y2)); // (aX² + Y²)Z²
        const right = mod(Z4 + modP(d * modP(X2 * Y2))); // Z⁴ + dX²Y²
        if (left !== right)
            throw new Error('bad point: equation left != right (1)');
        const XY = modP(X * Y);
        const ZT = modP(Z * T);
        if (XY !== ZT)
            throw new Error('bad point: equation left != right (2)');
        return this;
    }
    equals(other) {
        const { X: X1, Y: Y1, Z: Z1 } = this;
        const { X: X2, Y: Y2, Z: Z2 } = apoint(other); // checks class equality
        return modP(X1 * Z2) === modP(X2 * Z1) && modP(Y1 * Z2) === modP(Y2 * Z1);
    }
    is0() {
        return this.equals(I);
    }
    negate() {
        return new Point(mod(-this.X), this.Y, this.Z, mod(-this.T));
    }
    double() {
        const { X: X1, Y: Y1, Z: Z1 } = this;
        const a = _a;
        const A = modP(X1 * X1);
        const B = modP(Y1 * Y1);
        const C = modP(2n * Z1 * Z1);
        const D = modP(a * A);
        const x1y1 = mod(X1 + Y1);
        const E = mod(modP(x1y1 * x1y1) - A - B);
        const G = mod(D + B);
        const F = mod(G - C);
        const H = mod(D - B);
        const X3 = modP(E * F);
        const Y3 = modP(G * H);
        const T3 = modP(E * H);
        const Z3 = modP(F * G);
        return new Point(X3, Y3, Z3, T3);
    }
    add(other) {
        const { X: X1, Y: Y1, Z: Z1, T: T1 } = this;
        const { X: X2, Y: Y2, Z: Z2, T: T2 } = apoint(other); // doesn't check if other on-curve
        const a = _a;
        const d = _d;
        const A = modP(X1 * X2);
        const B = modP(Y1 * Y2);
        const C = modP(modP(T1 * d) * T2);
        const D = modP(Z1 * Z2);
        const E = mod(modP(mod(X1 + Y1) * mod(X2 + Y2)) - A - B);
        const F = mod(D - C);
        const G = mod(D + C);
        const H = mod(B - modP(a * A));
        const X3 = modP(E * F);
        const Y3 = modP(G * H);
        const T3 = modP(E * H);
        const Z3 = modP(F * G);
        return new Point(X3, Y3, Z3, T3);
    }
    subtract(other) {
        return this.add(apoint(other).negate());
    }
    multiply(n, safe = true) {
        if (!safe && n === 0n)
            return I;
        arange(n, 1n, N);
        if (!safe && this.is0())
            return I;
        if (n === 1n)
            return this;
        if (this.equals(G))
            return wNAF(n).p;
        let p = I;
        let f = G;
        let d = this;
        for (let i = 0; safe ? i < 256 : n > 0n; i++) {
            if (n & 1n)
                p = p.add(d);
            else if (safe)
                f = f.add(d);
            d = d.double();
            n >>= 1n;
        }
        return p;
    }
    multiplyUnsafe(scalar) {
        return this.multiply(scalar, false);
    }
    toAffine() {
        const { X, Y, Z } = this;
        if (this.equals(I))
            return { x: 0n, y: 1n };
        const iz = invert(Z, P);
        if (modP(Z * iz) !== 1n)
            throw new Error('invalid inverse');
        return { x: modP(X * iz), y: modP(Y * iz) };
    }
    toBytes() {
        const { x, y } = this.toAffine();
        const b = numTo32bLE(y);
        b[31] |= x & 1n ? 0x80 : 0;
        return b;
    }
    toHex() {
        return bytesToHex(this.toBytes());
    }
    clearCofactor() {
        return this.multiply(8n, false); // h = 8
    }
    isSmallOrder() {
        return this.clearCofactor().is0();
    }
    isTorsionFree() {
        return this.multiply(N / 2n, false)
            .double()
            .add(this)
            .is0();
    }
}
const G = new Point(Gx, Gy, 1n, mod(Gx * Gy));
const I = new Point(0n, 1n, 1n, 0n);
Point.BASE = G;
Point.ZERO = I;
const numTo32bLE = (num) => hexToBytes(padh(arange(num, 0n, B256), 64)).reverse();
const bytesToNumberLE = (b) => BigInt('0x' + bytesToHex(Uint8Array.from(abytes(b)).reverse()));
const pow2 = (x, power) => {
    let r = x;
    while (power-- > 0) {
        r = modP(r * r);
    }
    return r;
};
const pow_2_252_3 = (x) => {
    const x2 = modP(x * x); // x^2,       bits 1
    const b2 = modP(x2 * x); // x^3,       bits 11
    const b4 = modP(pow2(b2, 2) * b2); // x^(2^4-1), bits 1111
    const b5 = modP(pow2(b4, 1) * x); // x^(2^5-1), bits 11111
    const b10 = modP(pow2(b5, 5) * b5); // x^(2^10-1)
    const b20 = modP(pow2(b10, 10) * b10); // x^(2^20-1)
    const b40 = modP(pow2(b20, 20) * b20); // x^(2^40-1)
    const b80 = modP(pow2(b40, 40) * b40); // x^(2^80-1)
    const b160 = modP(pow2(b80, 80) * b80); // x^(2^160-1)
    const b240 = modP(pow2(b160, 80) * b80); // x^(2^240-1)
    const b250 = modP(pow2(b240, 10) * b10); // x^(2^250-1)
    return modP(pow2(b250, 2) * x); // x^((p-5)/8), used by RFC8032 point decode
};
const RM1 = 0x2b8324804fc1df0b2b4d00993dfbd7a72f431806ad2fe478c4ee1b274a0ea0b0n; // 2^((p-1)/4) = sqrt(-1)
const uvRatio = (u, v) => {
    const v3 = modP(v * modP(v * v)); // v³
    const v7 = modP(modP(v3 * v3) * v); // v⁷
    const pow = pow_2_252_3(modP(u * v7)); // (uv⁷)^(p-5)/8
    let x = modP(u * modP(v3 * pow)); // (uv³)(uv⁷)^(p-5)/8
    const vx2 = modP(v * modP(x * x)); // vx²
    const root1 = x; // First root candidate
    const root2 = modP(x * RM1); // Second root candidate; RM1 is √-1
    const useRoot1 = vx2 === u; // If vx² = u (mod p), x is a square root
    const useRoot2 = vx2 === mod(-u); // If vx² = -u, set x <-- x * 2^((p-1)/4)
    const noRoot = vx2 === mod(-u * RM1); // There is no valid root, vx² = -u√-1
    if (useRoot1)
        x = root1;
    if (useRoot2 || noRoot)
        x = root2; // We return root2 anyway, for const-time
    if ((mod(x) & 1n) === 1n)
        x = mod(-x); // edIsNegative
    return { isValid: useRoot1 || useRoot2, value: x };
};
const modL_LE = (hash) => modN(bytesToNumberLE(hash));
const hashedToExtK = (hashed) => {
    const copy = snapshotBytes(hashed);
    const head = copy.slice(0, 32);
    head[0] &= 248; // Clamp bits: 0b1111_1000
    head[31] &= 127; // 0b0111_1111
    head[31] |= 64; // 0b0100_0000
    const prefix = copy.slice(32); // secret key "prefix"
    const scalar = modL_LE(head);
    const point = G.multiply(scalar); // public key point
    const pointBytes = point.toBytes(); // point serialized to Uint8Array
    return { head, prefix, scalar, point, pointBytes };
};
const getExtendedPublicKeyAsync = (secretKey) => callHashAsync('sha512Async', abytes(secretKey, LEN, 'secretKey')).then(hashedToExtK);
const getExtendedPublicKey = (secretKey) => hashedToExtK(callHash('sha512', abytes(secretKey, LEN, 'secretKey')));
const getPublicKeyAsync = (secretKey) => getExtendedPublicKeyAsync(secretKey).then((p) => p.pointBytes);
const getPublicKey = (secretKey) => getExtendedPublicKey(secretKey).pointBytes;
const hashFinishAsync = async (res) => res[1](await callHashAsync('sha512Async', res[0]));
const hashFinishSync = (res) => res[1](callHash('sha512', res[0]));
const _sign = (e, rBytes, msg) => {
    const { pointBytes: A, scalar: s } = e;
    const r = modL_LE(rBytes); // r was created outside, reduce it modulo L
    const R = G.multiply(r).toBytes(); // R = [r]B
    const hashable = concatBytes(R, A, msg); // dom2(F, C) || R || A || PH(M)
    const finish = (hashed) => {
        const S = modN(r + modL_LE(hashed) * s); // S = (r + k * s) mod L; 0 <= s < l
        return abytes(concatBytes(R, numTo32bLE(S)), 64); // 64-byte sig: 32-byte encoded R point || 32-byte LE(S)
    };
    return [hashable, finish];
};
const signAsync = async (message, secretKey) => {
    const m = snapshotBytes(message, 'message');
    const e = await getExtendedPublicKeyAsync(secretKey);
    return hashFinishAsync(_sign(e, await callHashAsync('sha512Async', e.prefix, m), m));
};
const sign = (message, secretKey) => {
    const m = snapshotBytes(message, 'message');
    const e = getExtendedPublicKey(secretKey);
    return hashFinishSync(_sign(e, callHash('sha512', e.prefix, m), m));
};
const getZip215 = (options) => {
    if (options === null || typeof options !== 'object')
        throw new TypeError('expected valid options object');
    return options.zip215 ?? true;
};
const _verify = (sig, msg, publicKey, options) => {
    sig = abytes(sig, 64, 'signature'); // Signature hex str/Bytes, must be 64 bytes
    msg = abytes(msg, undefined, 'message'); // Message hex str/Bytes
    publicKey = abytes(publicKey, LEN, 'publicKey');
    const zip215 = getZip215(options);
    const r = sig.subarray(0, LEN);
    const s = bytesToNumberLE(sig.subarray(LEN, 64)); // Decode second half as an integer S;
    let A, R, SB;
    let hashable = Uint8Array.of();
    let finished = false;
    try {
        A = Point.fromBytes(publicKey, zip215);
        R = Point.fromBytes(r, zip215);
        SB = G.multiply(s, false); // 0 <= s < l is done inside
        hashable = concatBytes(r, publicKey, msg); // dom2(F, C) || R || A || PH(M)
        finished = true;
    }
    catch (error) { }
    const finish = (hashed) => {
        if (!finished)
            return false;
        if (!zip215 && A.isSmallOrder())
            return false;
        const k = modL_LE(hashed);
        const RkA = R.add(A.multiply(k, false));
        return RkA.subtract(SB).clearCofactor().is0();
    };
    return [hashable, finish];
};
const verifyAsync = async (signature, message, publicKey, opts = {}) => hashFinishAsync(_verify(signature, message, publicKey, opts));
const verify = (signature, message, publicKey, opts = {}) => hashFinishSync(_verify(signature, message, publicKey, opts));
const etc = /* @__PURE__ */ freeze({
    bytesToHex,
    hexToBytes,
    concatBytes,
    mod,
    invert,
    randomBytes,
});
const hashes = {
    sha512Async: async (message) => {
        const s = globalThis?.crypto?.subtle;
        if (!s)
            throw new Error('crypto.subtle must be defined, consider polyfill');
        return new Uint8Array(await s.digest('SHA-512', concatBytes(message)));
    },
    sha512: undefined,
};
const randomSecretKey = (seed) => {
    return abytes(seed === undefined ? randomBytes() : seed, LEN, 'seed');
};
const keygen = (seed) => {
    const secretKey = randomSecretKey(seed);
    const publicKey = getPublicKey(secretKey);
    return { secretKey, publicKey };
};
const keygenAsync = async (seed) => {
    const secretKey = randomSecretKey(seed);
    const publicKey = await getPublicKeyAsync(secretKey);
    return { secretKey, publicKey };
};
const utils = /* @__PURE__ */ freeze({
    getExtendedPublicKeyAsync,
    getExtendedPublicKey,
    randomSecretKey,
});
const precompute = () => {
    const points = [];
    let p = G;
    let b;
    for (let w = 0; w < 33; w++) {
        b = p;
        points.push(b);
        for (let i = 1; i < 128; i++) {
            b = b.add(p);
            points.push(b);
        } // i=1, bc we skip 0
        p = b.double();
    }
    return points;
};
let Gpows = undefined; // shared process-wide cache of base-point precomputes
const ctneg = (cnd, p) => {
    const n = p.negate();
    return cnd ? n : p;
};
const wNAF = (n) => {
    const comp = Gpows || (Gpows = precompute());
    let p = I;
    let f = G; // f must be G, or could become I in the end
    for (let w = 0; w < 33; w++) {
        let wbits = Number(n & 255n); // extract W=8 bits.
        n >>= 8n; // shift number by W=8 bits.
        if (wbits > 128) {
            wbits -= 256;
            n += 1n;
        }
        const off = w * 128; // offset of this window's block; also the fake-add index
        const offP = off + Math.abs(wbits) - 1; // real-add index; both offsets always evaluated
        const isOddW = w % 2 !== 0; // conditions, evaluate both; alternates fake-add sign per window
        const isNeg = wbits < 0;
        if (wbits === 0) {
            f = f.add(ctneg(isOddW, comp[off])); // bits are 0: add garbage to fake point
        }
        else {
            p = p.add(ctneg(isNeg, comp[offP])); // bits are 1: add to result point
        }
    }
    if (n !== 0n)
        throw new Error('invalid wnaf');
    return { p, f }; // return both real and fake points for JIT/leakage-shape symmetry
};
export { etc, getPublicKey, getPublicKeyAsync, hash, hashes, keygen, keygenAsync, Point, sign, signAsync, utils, verify, verifyAsync, };
`,
  "noble-hashes-_md.js": `import { setU64FromNum } from './noble-hashes-_u64.js';
import { abytes, aexists, aoutput, createView } from './noble-hashes-utils.js';
export function Chi(a, b, c) {
    return (a & b) ^ (~a & c);
}
export function Maj(a, b, c) {
    return (a & b) ^ (a & c) ^ (b & c);
}
export class HashMD {
    blockLen;
    outputLen;
    canXOF = false;
    padOffset;
    isLE;
    buffer;
    view;
    finished = false;
    length = 0;
    pos = 0;
    destroyed = false;
    constructor(blockLen, outputLen, padOffset, isLE) {
        this.blockLen = blockLen;
        this.outputLen = outputLen;
        this.padOffset = padOffset;
        this.isLE = isLE;
        this.buffer = new Uint8Array(blockLen);
        this.view = createView(this.buffer);
    }
    update(data) {
        aexists(this);
        abytes(data);
        const { view, buffer, blockLen } = this;
        const len = data.length;
        let processed = false;
        for (let pos = 0; pos < len;) {
            const take = Math.min(blockLen - this.pos, len - pos);
            if (take === blockLen) {
                const dataView = createView(data);
                for (; blockLen <= len - pos; pos += blockLen)
                    this.process(dataView, pos);
                processed = true;
                continue;
            }
            buffer.set(pos === 0 && take === len ? data : data.subarray(pos, pos + take), this.pos);
            this.pos += take;
            pos += take;
            if (this.pos === blockLen) {
                this.process(view, 0);
                this.pos = 0;
                processed = true;
            }
        }
        this.length += data.length;
        if (processed)
            this.roundClean();
        return this;
    }
    digestInto(out) {
        aexists(this);
        aoutput(out, this);
        this.finished = true;
        const { buffer, view, blockLen, isLE } = this;
        let { pos } = this;
        buffer[pos++] = 0b10000000;
        buffer.fill(0, pos);
        if (this.padOffset > blockLen - pos) {
            this.process(view, 0);
            buffer.fill(0);
        }
        setU64FromNum(view, blockLen - 8, this.length * 8, isLE);
        this.process(view, 0);
        this.roundClean();
        const oview = out === buffer ? view : createView(out);
        const len = this.outputLen;
        const outLen = len / 4;
        const state = this.get();
        if (len % 4 || outLen > state.length)
            throw new Error('invalid outputLen');
        for (let i = 0; i < outLen; i++)
            oview.setUint32(4 * i, state[i], isLE);
    }
    digest() {
        const { buffer, outputLen } = this;
        this.digestInto(buffer);
        const res = buffer.slice(0, outputLen);
        this.destroy();
        return res;
    }
    _cloneIntoMeta(to) {
        const { buffer, length, finished, destroyed, pos } = this;
        to.destroyed = destroyed;
        to.finished = finished;
        to.length = length;
        to.pos = pos;
        if (pos)
            to.buffer.set(buffer); // Avoid a hot modulo guard.
        return to;
    }
    clone() {
        return this._cloneInto();
    }
}
export const SHA256_IV = /* @__PURE__ */ Uint32Array.from([
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
]);
export const SHA224_IV = /* @__PURE__ */ Uint32Array.from([
    0xc1059ed8, 0x367cd507, 0x3070dd17, 0xf70e5939, 0xffc00b31, 0x68581511, 0x64f98fa7, 0xbefa4fa4,
]);
export const SHA384_IV = /* @__PURE__ */ Uint32Array.from([
    0xcbbb9d5d, 0xc1059ed8, 0x629a292a, 0x367cd507, 0x9159015a, 0x3070dd17, 0x152fecd8, 0xf70e5939,
    0x67332667, 0xffc00b31, 0x8eb44a87, 0x68581511, 0xdb0c2e0d, 0x64f98fa7, 0x47b5481d, 0xbefa4fa4,
]);
export const SHA512_IV = /* @__PURE__ */ Uint32Array.from([
    0x6a09e667, 0xf3bcc908, 0xbb67ae85, 0x84caa73b, 0x3c6ef372, 0xfe94f82b, 0xa54ff53a, 0x5f1d36f1,
    0x510e527f, 0xade682d1, 0x9b05688c, 0x2b3e6c1f, 0x1f83d9ab, 0xfb41bd6b, 0x5be0cd19, 0x137e2179,
]);
`,
  "noble-hashes-_u64.js": `const U32_MASK64 = /* @__PURE__ */ (() => BigInt(2 ** 32 - 1))();
const _32n = /* @__PURE__ */ BigInt(32);
function fromBig(n, le = false) {
    if (le)
        return { h: Number(n & U32_MASK64), l: Number((n >> _32n) & U32_MASK64) };
    return { h: Number((n >> _32n) & U32_MASK64) | 0, l: Number(n & U32_MASK64) | 0 };
}
function split(lst, le = false) {
    const len = lst.length;
    let Ah = new Uint32Array(len);
    let Al = new Uint32Array(len);
    for (let i = 0; i < len; i++) {
        const { h, l } = fromBig(lst[i], le);
        [Ah[i], Al[i]] = [h, l];
    }
    return [Ah, Al];
}
const toBig = (h, l) => (BigInt(h >>> 0) << _32n) | BigInt(l >>> 0);
const fromNumH = (n) => (n / 2 ** 32) | 0;
const fromNumL = (n) => n >>> 0;
function setU64FromNum(view, byteOffset, n, isLE) {
    const h = fromNumH(n);
    const l = fromNumL(n);
    view.setUint32(byteOffset, isLE ? l : h, isLE);
    view.setUint32(byteOffset + 4, isLE ? h : l, isLE);
}
const shrSH = (h, _l, s) => h >>> s;
const shrSL = (h, l, s) => (h << (32 - s)) | (l >>> s);
const rotrSH = (h, l, s) => (h >>> s) | (l << (32 - s));
const rotrSL = (h, l, s) => (h << (32 - s)) | (l >>> s);
const rotrBH = (h, l, s) => (h << (64 - s)) | (l >>> (s - 32));
const rotrBL = (h, l, s) => (h >>> (s - 32)) | (l << (64 - s));
const rotr32H = (_h, l) => l;
const rotr32L = (h, _l) => h;
function add(Ah, Al, Bh, Bl) {
    const l = (Al >>> 0) + (Bl >>> 0);
    return { h: (Ah + Bh + ((l / 2 ** 32) | 0)) | 0, l: l | 0 };
}
const add3L = (Al, Bl, Cl) => (Al >>> 0) + (Bl >>> 0) + (Cl >>> 0);
const add3H = (low, Ah, Bh, Ch) => (Ah + Bh + Ch + ((low / 2 ** 32) | 0)) | 0;
const add4L = (Al, Bl, Cl, Dl) => (Al >>> 0) + (Bl >>> 0) + (Cl >>> 0) + (Dl >>> 0);
const add4H = (low, Ah, Bh, Ch, Dh) => (Ah + Bh + Ch + Dh + ((low / 2 ** 32) | 0)) | 0;
const add5L = (Al, Bl, Cl, Dl, El) => (Al >>> 0) + (Bl >>> 0) + (Cl >>> 0) + (Dl >>> 0) + (El >>> 0);
const add5H = (low, Ah, Bh, Ch, Dh, Eh) => (Ah + Bh + Ch + Dh + Eh + ((low / 2 ** 32) | 0)) | 0;
export { add, add3H, add3L, add4H, add4L, add5H, add5L, fromBig, fromNumH, fromNumL, rotr32H, rotr32L, rotrBH, rotrBL, rotrSH, rotrSL, setU64FromNum, shrSH, shrSL, split, toBig };
`,
  "noble-hashes-sha2.js": `import { Chi, HashMD, Maj, SHA224_IV, SHA256_IV, SHA384_IV, SHA512_IV } from './noble-hashes-_md.js';
import * as u64 from './noble-hashes-_u64.js';
import { clean, createHasher, oidNist, rotr } from './noble-hashes-utils.js';
const SHA256_K = /* @__PURE__ */ Uint32Array.from([
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
]);
const SHA256_W = /* @__PURE__ */ new Uint32Array(64);
class SHA2_32B extends HashMD {
    A = 0;
    B = 0;
    C = 0;
    D = 0;
    E = 0;
    F = 0;
    G = 0;
    H = 0;
    constructor(outputLen, IV) {
        super(64, outputLen, 8, false);
        this.A = IV[0] | 0;
        this.B = IV[1] | 0;
        this.C = IV[2] | 0;
        this.D = IV[3] | 0;
        this.E = IV[4] | 0;
        this.F = IV[5] | 0;
        this.G = IV[6] | 0;
        this.H = IV[7] | 0;
    }
    get() {
        const { A, B, C, D, E, F, G, H } = this;
        return [A, B, C, D, E, F, G, H];
    }
    set(A, B, C, D, E, F, G, H) {
        this.A = A | 0;
        this.B = B | 0;
        this.C = C | 0;
        this.D = D | 0;
        this.E = E | 0;
        this.F = F | 0;
        this.G = G | 0;
        this.H = H | 0;
    }
    _cloneInto(to) {
        (to ||= new this.constructor()).set(...this.get());
        return this._cloneIntoMeta(to);
    }
    process(view, offset) {
        for (let i = 0; i < 16; i++, offset += 4)
            SHA256_W[i] = view.getUint32(offset, false);
        for (let i = 16; i < 64; i++) {
            const W15 = SHA256_W[i - 15];
            const W2 = SHA256_W[i - 2];
            const s0 = rotr(W15, 7) ^ rotr(W15, 18) ^ (W15 >>> 3);
            const s1 = rotr(W2, 17) ^ rotr(W2, 19) ^ (W2 >>> 10);
            SHA256_W[i] = (s1 + SHA256_W[i - 7] + s0 + SHA256_W[i - 16]) | 0;
        }
        let { A, B, C, D, E, F, G, H } = this;
        for (let i = 0; i < 64; i++) {
            const sigma1 = rotr(E, 6) ^ rotr(E, 11) ^ rotr(E, 25);
            const T1 = (H + sigma1 + Chi(E, F, G) + SHA256_K[i] + SHA256_W[i]) | 0;
            const sigma0 = rotr(A, 2) ^ rotr(A, 13) ^ rotr(A, 22);
            const T2 = (sigma0 + Maj(A, B, C)) | 0;
            H = G;
            G = F;
            F = E;
            E = (D + T1) | 0;
            D = C;
            C = B;
            B = A;
            A = (T1 + T2) | 0;
        }
        A = (A + this.A) | 0;
        B = (B + this.B) | 0;
        C = (C + this.C) | 0;
        D = (D + this.D) | 0;
        E = (E + this.E) | 0;
        F = (F + this.F) | 0;
        G = (G + this.G) | 0;
        H = (H + this.H) | 0;
        this.set(A, B, C, D, E, F, G, H);
    }
    roundClean() {
        clean(SHA256_W);
    }
    destroy() {
        this.destroyed = true;
        this.set(0, 0, 0, 0, 0, 0, 0, 0);
        clean(this.buffer);
    }
}
export class _SHA256 extends SHA2_32B {
    constructor() {
        super(32, SHA256_IV);
    }
}
export class _SHA224 extends SHA2_32B {
    constructor() {
        super(28, SHA224_IV);
    }
}
const K512 = /* @__PURE__ */ (() => u64.split([
    '0x428a2f98d728ae22', '0x7137449123ef65cd', '0xb5c0fbcfec4d3b2f', '0xe9b5dba58189dbbc',
    '0x3956c25bf348b538', '0x59f111f1b605d019', '0x923f82a4af194f9b', '0xab1c5ed5da6d8118',
    '0xd807aa98a3030242', '0x12835b0145706fbe', '0x243185be4ee4b28c', '0x550c7dc3d5ffb4e2',
    '0x72be5d74f27b896f', '0x80deb1fe3b1696b1', '0x9bdc06a725c71235', '0xc19bf174cf692694',
    '0xe49b69c19ef14ad2', '0xefbe4786384f25e3', '0x0fc19dc68b8cd5b5', '0x240ca1cc77ac9c65',
    '0x2de92c6f592b0275', '0x4a7484aa6ea6e483', '0x5cb0a9dcbd41fbd4', '0x76f988da831153b5',
    '0x983e5152ee66dfab', '0xa831c66d2db43210', '0xb00327c898fb213f', '0xbf597fc7beef0ee4',
    '0xc6e00bf33da88fc2', '0xd5a79147930aa725', '0x06ca6351e003826f', '0x142929670a0e6e70',
    '0x27b70a8546d22ffc', '0x2e1b21385c26c926', '0x4d2c6dfc5ac42aed', '0x53380d139d95b3df',
    '0x650a73548baf63de', '0x766a0abb3c77b2a8', '0x81c2c92e47edaee6', '0x92722c851482353b',
    '0xa2bfe8a14cf10364', '0xa81a664bbc423001', '0xc24b8b70d0f89791', '0xc76c51a30654be30',
    '0xd192e819d6ef5218', '0xd69906245565a910', '0xf40e35855771202a', '0x106aa07032bbd1b8',
    '0x19a4c116b8d2d0c8', '0x1e376c085141ab53', '0x2748774cdf8eeb99', '0x34b0bcb5e19b48a8',
    '0x391c0cb3c5c95a63', '0x4ed8aa4ae3418acb', '0x5b9cca4f7763e373', '0x682e6ff3d6b2b8a3',
    '0x748f82ee5defb2fc', '0x78a5636f43172f60', '0x84c87814a1f0ab72', '0x8cc702081a6439ec',
    '0x90befffa23631e28', '0xa4506cebde82bde9', '0xbef9a3f7b2c67915', '0xc67178f2e372532b',
    '0xca273eceea26619c', '0xd186b8c721c0c207', '0xeada7dd6cde0eb1e', '0xf57d4f7fee6ed178',
    '0x06f067aa72176fba', '0x0a637dc5a2c898a6', '0x113f9804bef90dae', '0x1b710b35131c471b',
    '0x28db77f523047d84', '0x32caab7b40c72493', '0x3c9ebe0a15c9bebc', '0x431d67c49c100d4c',
    '0x4cc5d4becb3e42b6', '0x597f299cfc657e2a', '0x5fcb6fab3ad6faec', '0x6c44198c4a475817'
].map(n => BigInt(n))))();
const SHA512_Kh = /* @__PURE__ */ (() => K512[0])();
const SHA512_Kl = /* @__PURE__ */ (() => K512[1])();
const SHA512_W_H = /* @__PURE__ */ new Uint32Array(80);
const SHA512_W_L = /* @__PURE__ */ new Uint32Array(80);
class SHA2_64B extends HashMD {
    Ah = 0;
    Al = 0;
    Bh = 0;
    Bl = 0;
    Ch = 0;
    Cl = 0;
    Dh = 0;
    Dl = 0;
    Eh = 0;
    El = 0;
    Fh = 0;
    Fl = 0;
    Gh = 0;
    Gl = 0;
    Hh = 0;
    Hl = 0;
    constructor(outputLen, IV) {
        super(128, outputLen, 16, false);
        this.Ah = IV[0] | 0;
        this.Al = IV[1] | 0;
        this.Bh = IV[2] | 0;
        this.Bl = IV[3] | 0;
        this.Ch = IV[4] | 0;
        this.Cl = IV[5] | 0;
        this.Dh = IV[6] | 0;
        this.Dl = IV[7] | 0;
        this.Eh = IV[8] | 0;
        this.El = IV[9] | 0;
        this.Fh = IV[10] | 0;
        this.Fl = IV[11] | 0;
        this.Gh = IV[12] | 0;
        this.Gl = IV[13] | 0;
        this.Hh = IV[14] | 0;
        this.Hl = IV[15] | 0;
    }
    get() {
        const { Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl } = this;
        return [Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl];
    }
    set(Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl) {
        this.Ah = Ah | 0;
        this.Al = Al | 0;
        this.Bh = Bh | 0;
        this.Bl = Bl | 0;
        this.Ch = Ch | 0;
        this.Cl = Cl | 0;
        this.Dh = Dh | 0;
        this.Dl = Dl | 0;
        this.Eh = Eh | 0;
        this.El = El | 0;
        this.Fh = Fh | 0;
        this.Fl = Fl | 0;
        this.Gh = Gh | 0;
        this.Gl = Gl | 0;
        this.Hh = Hh | 0;
        this.Hl = Hl | 0;
    }
    _cloneInto(to) {
        (to ||= new this.constructor()).set(...this.get());
        return this._cloneIntoMeta(to);
    }
    process(view, offset) {
        for (let i = 0; i < 16; i++, offset += 4) {
            SHA512_W_H[i] = view.getUint32(offset);
            SHA512_W_L[i] = view.getUint32((offset += 4));
        }
        for (let i = 16; i < 80; i++) {
            const W15h = SHA512_W_H[i - 15] | 0;
            const W15l = SHA512_W_L[i - 15] | 0;
            const s0h = u64.rotrSH(W15h, W15l, 1) ^ u64.rotrSH(W15h, W15l, 8) ^ u64.shrSH(W15h, W15l, 7);
            const s0l = u64.rotrSL(W15h, W15l, 1) ^ u64.rotrSL(W15h, W15l, 8) ^ u64.shrSL(W15h, W15l, 7);
            const W2h = SHA512_W_H[i - 2] | 0;
            const W2l = SHA512_W_L[i - 2] | 0;
            const s1h = u64.rotrSH(W2h, W2l, 19) ^ u64.rotrBH(W2h, W2l, 61) ^ u64.shrSH(W2h, W2l, 6);
            const s1l = u64.rotrSL(W2h, W2l, 19) ^ u64.rotrBL(W2h, W2l, 61) ^ u64.shrSL(W2h, W2l, 6);
            const SUMl = u64.add4L(s0l, s1l, SHA512_W_L[i - 7], SHA512_W_L[i - 16]);
            const SUMh = u64.add4H(SUMl, s0h, s1h, SHA512_W_H[i - 7], SHA512_W_H[i - 16]);
            SHA512_W_H[i] = SUMh | 0;
            SHA512_W_L[i] = SUMl | 0;
        }
        let { Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl } = this;
        for (let i = 0; i < 80; i++) {
            const sigma1h = u64.rotrSH(Eh, El, 14) ^ u64.rotrSH(Eh, El, 18) ^ u64.rotrBH(Eh, El, 41);
            const sigma1l = u64.rotrSL(Eh, El, 14) ^ u64.rotrSL(Eh, El, 18) ^ u64.rotrBL(Eh, El, 41);
            const CHIh = (Eh & Fh) ^ (~Eh & Gh);
            const CHIl = (El & Fl) ^ (~El & Gl);
            const T1ll = u64.add5L(Hl, sigma1l, CHIl, SHA512_Kl[i], SHA512_W_L[i]);
            const T1h = u64.add5H(T1ll, Hh, sigma1h, CHIh, SHA512_Kh[i], SHA512_W_H[i]);
            const T1l = T1ll | 0;
            const sigma0h = u64.rotrSH(Ah, Al, 28) ^ u64.rotrBH(Ah, Al, 34) ^ u64.rotrBH(Ah, Al, 39);
            const sigma0l = u64.rotrSL(Ah, Al, 28) ^ u64.rotrBL(Ah, Al, 34) ^ u64.rotrBL(Ah, Al, 39);
            const MAJh = (Ah & Bh) ^ (Ah & Ch) ^ (Bh & Ch);
            const MAJl = (Al & Bl) ^ (Al & Cl) ^ (Bl & Cl);
            Hh = Gh | 0;
            Hl = Gl | 0;
            Gh = Fh | 0;
            Gl = Fl | 0;
            Fh = Eh | 0;
            Fl = El | 0;
            ({ h: Eh, l: El } = u64.add(Dh | 0, Dl | 0, T1h | 0, T1l | 0));
            Dh = Ch | 0;
            Dl = Cl | 0;
            Ch = Bh | 0;
            Cl = Bl | 0;
            Bh = Ah | 0;
            Bl = Al | 0;
            const All = u64.add3L(T1l, sigma0l, MAJl);
            Ah = u64.add3H(All, T1h, sigma0h, MAJh);
            Al = All | 0;
        }
        ({ h: Ah, l: Al } = u64.add(this.Ah | 0, this.Al | 0, Ah | 0, Al | 0));
        ({ h: Bh, l: Bl } = u64.add(this.Bh | 0, this.Bl | 0, Bh | 0, Bl | 0));
        ({ h: Ch, l: Cl } = u64.add(this.Ch | 0, this.Cl | 0, Ch | 0, Cl | 0));
        ({ h: Dh, l: Dl } = u64.add(this.Dh | 0, this.Dl | 0, Dh | 0, Dl | 0));
        ({ h: Eh, l: El } = u64.add(this.Eh | 0, this.El | 0, Eh | 0, El | 0));
        ({ h: Fh, l: Fl } = u64.add(this.Fh | 0, this.Fl | 0, Fh | 0, Fl | 0));
        ({ h: Gh, l: Gl } = u64.add(this.Gh | 0, this.Gl | 0, Gh | 0, Gl | 0));
        ({ h: Hh, l: Hl } = u64.add(this.Hh | 0, this.Hl | 0, Hh | 0, Hl | 0));
        this.set(Ah, Al, Bh, Bl, Ch, Cl, Dh, Dl, Eh, El, Fh, Fl, Gh, Gl, Hh, Hl);
    }
    roundClean() {
        clean(SHA512_W_H, SHA512_W_L);
    }
    destroy() {
        this.destroyed = true;
        clean(this.buffer);
        this.set(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
}
export class _SHA512 extends SHA2_64B {
    constructor() {
        super(64, SHA512_IV);
    }
}
export class _SHA384 extends SHA2_64B {
    constructor() {
        super(48, SHA384_IV);
    }
}
const T224_IV = /* @__PURE__ */ Uint32Array.from([
    0x8c3d37c8, 0x19544da2, 0x73e19966, 0x89dcd4d6, 0x1dfab7ae, 0x32ff9c82, 0x679dd514, 0x582f9fcf,
    0x0f6d2b69, 0x7bd44da8, 0x77e36f73, 0x04c48942, 0x3f9d85a8, 0x6a1d36c8, 0x1112e6ad, 0x91d692a1,
]);
const T256_IV = /* @__PURE__ */ Uint32Array.from([
    0x22312194, 0xfc2bf72c, 0x9f555fa3, 0xc84c64c2, 0x2393b86b, 0x6f53b151, 0x96387719, 0x5940eabd,
    0x96283ee2, 0xa88effe3, 0xbe5e1e25, 0x53863992, 0x2b0199fc, 0x2c85b8aa, 0x0eb72ddc, 0x81c52ca2,
]);
export class _SHA512_224 extends SHA2_64B {
    constructor() {
        super(28, T224_IV);
    }
}
export class _SHA512_256 extends SHA2_64B {
    constructor() {
        super(32, T256_IV);
    }
}
export const sha256 = /* @__PURE__ */ createHasher(() => new _SHA256(),
/* @__PURE__ */ oidNist(0x01));
export const sha224 = /* @__PURE__ */ createHasher(() => new _SHA224(),
/* @__PURE__ */ oidNist(0x04));
export const sha512 = /* @__PURE__ */ createHasher(() => new _SHA512(),
/* @__PURE__ */ oidNist(0x03));
export const sha384 = /* @__PURE__ */ createHasher(() => new _SHA384(),
/* @__PURE__ */ oidNist(0x02));
export const sha512_256 = /* @__PURE__ */ createHasher(() => new _SHA512_256(),
/* @__PURE__ */ oidNist(0x06));
export const sha512_224 = /* @__PURE__ */ createHasher(() => new _SHA512_224(),
/* @__PURE__ */ oidNist(0x05));
`,
  "noble-hashes-utils.js": `export function isBytes(a) {
    return (a instanceof Uint8Array ||
        (ArrayBuffer.isView(a) &&
            a.constructor.name === 'Uint8Array' &&
            'BYTES_PER_ELEMENT' in a &&
            a.BYTES_PER_ELEMENT === 1));
}
const atitle = (title) => (title ? \`"\${title}" \` : '');
export function anumber(n, title = '') {
    if (typeof n !== 'number')
        throw new TypeError(atitle(title) + 'expected number, got ' + typeof n);
    if (!Number.isSafeInteger(n) || n < 0)
        throw new RangeError(atitle(title) + 'expected integer >= 0, got ' + n);
    return n;
}
export function abool(value, title = '') {
    if (typeof value !== 'boolean')
        throw new TypeError(atitle(title) + 'expected boolean, got type=' + typeof value);
    return value;
}
export function abytes(value, length, title = '') {
    if (isBytes(value) && (length === undefined || value.length === length))
        return value;
    if (length !== undefined)
        anumber(length, 'length');
    const bytes = isBytes(value);
    const ofLen = length !== undefined ? \` of length \${length}\` : '';
    const got = bytes ? \`length=\${value.length}\` : \`type=\${typeof value}\`;
    const message = atitle(title) + 'expected Uint8Array' + ofLen + ', got ' + got;
    if (!bytes)
        throw new TypeError(message);
    throw new RangeError(message);
}
export function copyBytes(bytes) {
    return Uint8Array.from(abytes(bytes));
}
export function ahash(h) {
    if (typeof h !== 'function' || typeof h.create !== 'function')
        throw new TypeError('expected hash wrapped by utils.createHasher');
    anumber(h.outputLen);
    anumber(h.blockLen);
    if (h.outputLen < 1 || h.blockLen < 1)
        throw new Error('hash blockLen / outputLen must be >= 1');
}
const aobject = (value, label) => {
    if (value === null || typeof value !== 'object' || Array.isArray(value))
        throw new TypeError((label === 'object' ? '' : \`"\${label}" \`) + 'expected object, got type=' + typeof value);
};
const aopts = (value, label) => {
    aobject(value, label);
    const proto = Object.getPrototypeOf(value);
    if (proto !== Object.prototype && proto !== null)
        throw new TypeError(\`"\${label}" expected plain object\`);
    if (Object.hasOwn(value, '__proto__'))
        throw new TypeError(\`"\${label}.__proto__" is not allowed\`);
};
export function aexists(instance, checkFinished = true) {
    if (instance.destroyed)
        throw new Error('hash was destroyed');
    if (checkFinished && instance.finished)
        throw new Error('digest() was already called');
}
export function aoutput(out, instance) {
    abytes(out, undefined, 'output');
    const min = instance.outputLen;
    if (!(out.length >= min)) {
        throw new RangeError('"output" expected length >= ' + min);
    }
}
export function u8(arr) {
    return new Uint8Array(arr.buffer, arr.byteOffset, arr.byteLength);
}
export function u32(arr) {
    return new Uint32Array(arr.buffer, arr.byteOffset, Math.floor(arr.byteLength / 4));
}
export function clean(...arrays) {
    for (let i = 0; i < arrays.length; i++) {
        arrays[i].fill(0);
    }
}
export function createView(arr) {
    return new DataView(arr.buffer, arr.byteOffset, arr.byteLength);
}
export function rotr(word, shift) {
    return (word << (32 - shift)) | (word >>> shift);
}
export function rotl(word, shift) {
    return (word << shift) | ((word >>> (32 - shift)) >>> 0);
}
export const isLE = /* @__PURE__ */ (() => new Uint8Array(new Uint32Array([0x11223344]).buffer)[0] === 0x44)();
export function byteSwap(word) {
    return (((word << 24) & 0xff000000) |
        ((word << 8) & 0xff0000) |
        ((word >>> 8) & 0xff00) |
        ((word >>> 24) & 0xff));
}
export const swap8IfBE = isLE
    ? (n) => n
    : (n) => byteSwap(n) >>> 0;
export function byteSwap32(arr) {
    for (let i = 0; i < arr.length; i++) {
        arr[i] = byteSwap(arr[i]);
    }
    return arr;
}
export const swap32IfBE = isLE
    ? (u) => u
    : byteSwap32;
const hasHexBuiltin = /* @__PURE__ */ (() =>
typeof Uint8Array.from([]).toHex === 'function' && typeof Uint8Array.fromHex === 'function')();
const hexes = /* @__PURE__ */ Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'));
export function bytesToHex(bytes) {
    abytes(bytes);
    if (hasHexBuiltin)
        return bytes.toHex();
    let hex = '';
    for (let i = 0; i < bytes.length; i++) {
        hex += hexes[bytes[i]];
    }
    return hex;
}
function asciiToBase16(ch) {
    return ch >= 48 && ch <= 57 ? ch - 48 // '2' => 50-48
        : ch >= 65 && ch <= 70 ? ch - (65 - 10) // 'B' => 66-(65-10)
            : ch >= 97 && ch <= 102 ? ch - (97 - 10) // 'b' => 98-(97-10)
                : undefined;
}
export function hexToBytes(hex) {
    if (typeof hex !== 'string')
        throw new TypeError('hex string expected, got ' + typeof hex);
    if (hasHexBuiltin) {
        try {
            return Uint8Array.fromHex(hex);
        }
        catch (error) {
            if (error instanceof SyntaxError)
                throw new RangeError(error.message);
            throw error;
        }
    }
    const hl = hex.length;
    const al = hl / 2;
    if (hl % 2)
        throw new RangeError('hex string expected, got unpadded hex of length ' + hl);
    const array = new Uint8Array(al);
    for (let ai = 0, hi = 0; ai < al; ai++, hi += 2) {
        const n1 = asciiToBase16(hex.charCodeAt(hi)); // parse first char, multiply it by 16
        const n2 = asciiToBase16(hex.charCodeAt(hi + 1)); // parse second char
        if (n1 === undefined || n2 === undefined) {
            const char = hex[hi] + hex[hi + 1];
            throw new RangeError('hex string expected, got non-hex character "' + char + '" at index ' + hi);
        }
        array[ai] = n1 * 16 + n2; // example: 'A9' => 10*16 + 9
    }
    return array;
}
export function nextTick(onReject) {
    const host = globalThis;
    if (typeof host.scheduler?.yield === 'function') {
        const promise = host.scheduler.yield();
        if (onReject)
            promise.catch(onReject);
        return promise;
    }
    return new Promise((resolve) => host.setTimeout(resolve, 0));
}
export async function asyncLoop(iters, tick, cb, onReject) {
    anumber(iters, 'iters');
    anumber(tick, 'tick');
    if (typeof cb !== 'function')
        throw new TypeError('callback must be a function');
    let ts = Date.now();
    for (let i = 0; i < iters; i++) {
        cb(i);
        const diff = Date.now() - ts;
        if (diff >= 0 && diff < tick)
            continue;
        await nextTick(onReject);
        ts = Date.now();
    }
}
export function utf8ToBytes(str) {
    if (typeof str !== 'string')
        throw new TypeError('string expected');
    const encoded = new TextEncoder().encode(str);
    try {
        return new Uint8Array(encoded); // https://bugzil.la/1681809
    }
    finally {
        clean(encoded);
    }
}
export function kdfInputToBytes(data, errorTitle = '') {
    if (typeof data === 'string')
        return utf8ToBytes(data);
    return abytes(data, undefined, errorTitle);
}
export function concatBytes(...arrays) {
    let sum = 0;
    for (let i = 0; i < arrays.length; i++) {
        const a = arrays[i];
        abytes(a);
        sum += a.length;
    }
    const res = new Uint8Array(sum);
    for (let i = 0, pad = 0; i < arrays.length; i++) {
        const a = arrays[i];
        res.set(a, pad);
        pad += a.length;
    }
    return res;
}
export const validateObject = (object, fields = {}, optFields = {}, title = 'object') => {
    aobject(object, title);
    aobject(fields, 'fields');
    aobject(optFields, 'optFields');
    function checkField(fieldName, expectedType, isOpt) {
        const label = title === 'object' ? \`param "\${String(fieldName)}"\` : \`"\${title}.\${String(fieldName)}"\`;
        const val = object[fieldName];
        if (!Object.hasOwn(object, fieldName) &&
            (isOpt ? val !== undefined : expectedType !== 'function')) {
            throw new TypeError(\`\${label} is invalid: expected own property\`);
        }
        if (isOpt && val === undefined)
            return;
        const current = typeof val;
        if (current !== expectedType || val === null)
            throw new TypeError(\`\${label} is invalid: expected \${expectedType}, got \${current}\`);
    }
    const iter = (f, isOpt) => Object.entries(f).forEach(([k, v]) => checkField(k, v, isOpt));
    iter(fields, false);
    iter(optFields, true);
};
export function checkOpts(defaults, opts, title = 'opts') {
    aopts(defaults, 'defaults');
    if (opts !== undefined)
        aopts(opts, title);
    const merged = Object.assign(Object.create(null), defaults, opts);
    return merged;
}
export function createHasher(hashCons, info = {}) {
    if (typeof hashCons !== 'function')
        throw new TypeError('"hashCons" expected function, got type=' + typeof hashCons);
    info = checkOpts({}, info, 'info');
    const hashC = (msg, opts) => hashCons(opts)
        .update(msg)
        .digest();
    const tmp = hashCons(undefined);
    hashC.outputLen = tmp.outputLen;
    hashC.blockLen = tmp.blockLen;
    hashC.canXOF = tmp.canXOF;
    hashC.create = (opts) => hashCons(opts);
    Object.assign(hashC, info);
    return Object.freeze(hashC);
}
export function randomBytes(bytesLength = 32) {
    anumber(bytesLength, 'bytesLength');
    const cr = typeof globalThis === 'object' ? globalThis.crypto : null;
    if (typeof cr?.getRandomValues !== 'function')
        throw new Error('crypto.getRandomValues must be defined');
    if (bytesLength > 65536)
        throw new RangeError(\`"bytesLength" expected <= 65536, got \${bytesLength}\`);
    return cr.getRandomValues(new Uint8Array(bytesLength));
}
export const oidNist = (suffix) => ({
    oid: Uint8Array.from([0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, suffix]),
});
`,
  "overview.js": `import { el, svg, table } from './dom.js'
import { count, many, milliseconds, money, percent, usd } from './figures.js'
const MOST_FAILED = 0.05
export function healthView(
  { requests, served_by_rung, latency, escalations, failovers }       ,
  { savings_usd, savings_pct, spent_usd }                                                            ,
)                {
  if (requests === 0) return [hint('There is no call in this time.')]
  const served = Object.values(served_by_rung).reduce((sum, n) => sum + n, 0)
  const failed = Math.max(0, requests - served)
  const part = failed / requests
  const tile = (name        , value        , note        , look         ) =>
    el('div', {}, el('dt', {}, name), el('dd', { class: look }, value), el('dd', { class: 'hint' }, note))
  return [
    el(
      'dl',
      { class: 'figures' },
      tile(
        'Failure rate',
        percent(part),
        failed === 0 ? 'every call was served' : \`\${many(failed, 'call')} served nothing\`,
        part > MOST_FAILED ? 'bad' : undefined,
      ),
      tile(
        'Saved',
        money(savings_usd),
        savings_pct === null ? \`\${money(spent_usd)} spent\` : \`\${percent(savings_pct / 100)}, \${money(spent_usd)} spent\`,
        savings_usd < 0 ? 'bad' : undefined,
      ),
      tile('Median latency', milliseconds(latency.p50_ms), newest(latency.calls)),
      tile('95 % within', milliseconds(latency.p95_ms), newest(latency.calls)),
      tile('Calls', count(requests), \`\${count(served)} served\`),
      tile('Escalations', count(escalations), 'to a higher rung'),
      tile('Failovers', count(failovers), 'to another provider'),
    ),
    el(
      'div',
      {},
      share([
        [served / requests, 'saved'],
        [part, 'lost'],
      ]),
    ),
  ]
}
const newest = (calls        )         => (calls === 1 ? 'of the newest call' : \`of the newest \${count(calls)} calls\`)
const BREAKERS = {
  closed: ['good', 'takes calls'],
  half_open: ['warn', 'is tried again after failures'],
  open: ['bad', 'is passed over after failures'],
}
const CREDENTIALS = {
  passthrough: "the client's own",
  env: 'from the environment',
  signed: 'signed here',
  missing: 'missing',
}
export function providersView(providers                           )                {
  if (providers.length === 0) return [hint('No provider is configured.')]
  const rows = providers.map(({ id, base_host, credential, breaker }) => {
    const [look, words] = BREAKERS[breaker]
    return [
      id,
      el('span', { class: look }, words),
      el('span', { class: credential === 'missing' ? 'bad' : undefined }, CREDENTIALS[credential]),
      base_host,
    ]
  })
  return [table('Providers', ['Provider', 'State', 'Credential', 'Host'], rows)]
}
export function routesView({ routes }       )                {
  if (routes.length === 0) return [hint('There is no call in this time.')]
  const rows = routes
    .map(one => ({ ...one, failed: one.requests - Object.values(one.served_by_rung).reduce((sum, n) => sum + n, 0) }))
    .toSorted((a, b) => b.failed / b.requests - a.failed / a.requests)
    .map(({ route_ix, requests, served_by_rung, failed }) => {
      const rungs = Object.entries(served_by_rung)
      const parts = rungs.map(([rung, n])                   => [n / requests, \`rung-\${Math.min(Number(rung), 3)}\`])
      const name = route_ix === null ? 'No route' : \`Route \${route_ix}\`
      return [
        route_ix === null ? name : el('a', { href: \`panel?route=\${route_ix}#traces\` }, name),
        el('span', { class: failed / requests > MOST_FAILED ? 'bad' : undefined }, percent(failed / requests)),
        count(requests),
        share([...parts, [failed / requests, 'lost']]),
        rungs.map(([rung, n]) => \`rung \${rung}: \${percent(n / requests)}\`).join(', ') || 'nothing',
      ]
    })
  return [table('Rungs by route', ['Route', { num: 'Failed' }, { num: 'Calls' }, 'Rungs', 'Served by'], rows)]
}
export function ladderView({ requests, served_by_rung, escalations, failovers, outcomes }       )                {
  if (requests === 0) return [hint('There is no call in this time.')]
  const rungs = Object.entries(served_by_rung).map(([rung, n]) => ({ rung: Number(rung), n }))
  const served = rungs.reduce((sum, { n }) => sum + n, 0)
  const steps = rungs
    .sort((a, b) => b.rung - a.rung)
    .map(({ rung, n }) =>
      el(
        'li',
        {},
        el('span', {}, \`Rung \${rung}\`),
        share([[n / requests, 'saved']]),
        el('span', {}, \`\${count(n)} (\${percent(n / requests)})\`),
      ),
    )
  const nothing = requests - served
  const { reported, failed, served_failure, ucb95 } = outcomes
  return [
    el('ol', { class: 'bars' }, ...steps),
    el(
      'p',
      {},
      \`\${many(escalations, 'escalation')} to a higher rung, \${many(failovers, 'failover')} to another provider.\`,
    ),
    nothing > 0 ? hint(\`\${many(nothing, 'call')} served nothing.\`) : hint('Every call was served.'),
    reported === 0 || served_failure === null
      ? hint(
          'No outcome has been reported. Say whether an answer was right beside its trace, or send it to v1/feedback.',
        )
      : el(
          'p',
          {},
          \`Of \${many(reported, 'reported outcome')} \${count(failed)} failed: \${percent(served_failure)}\${ucb95 === null ? '' : \`, at most \${percent(ucb95)} with 95 % confidence\`}.\`,
        ),
  ]
}
export function gatesView(gates                      )                {
  if (gates.length === 0) {
    return [hint('No gate has run in this time. A [[route]] that enforces names its gates: gates = ["non-empty"].')]
  }
  const rows = gates.map(({ gate_id, pass, fail, abstain, disabled, cost_usd, p50_ms, p95_ms }) => {
    const all = pass + fail + abstain || 1
    const name = el('span', {}, gate_id, disabled && el('span', { class: 'bad' }, ' (disabled)'))
    const parts                     = [
      [pass / all, 'saved'],
      [fail / all, 'lost'],
      [abstain / all, 'none'],
    ]
    return [
      name,
      share(parts),
      count(pass),
      count(fail),
      count(abstain),
      milliseconds(p50_ms),
      milliseconds(p95_ms),
      usd(cost_usd),
    ]
  })
  const numbers = ['Pass', 'Fail', 'Abstain', 'p50', 'p95', 'Cost'].map(num => ({ num }))
  return [table('Gate outcomes', ['Gate', 'Outcomes', ...numbers], rows)]
}
export function calibrationView(states                             )                {
  if (states.length === 0) {
    return [
      hint('No route has a ladder with reported outcomes. Thresholds are learned from what is reported about answers.'),
    ]
  }
  const rows = states.map(state => [
    \`Route \${state.route_ix}\`,
    state.tenant_id,
    certificate(state),
    count(state.n),
    state.threshold === null ? 'none' : String(Number(state.threshold.toFixed(4))),
    \`\${state.method}, α \${state.alpha}, δ \${state.delta}\`,
  ])
  return [
    table('Calibration by route', ['Route', 'Tenant', 'State', { num: 'n' }, { num: 'Threshold' }, 'Method'], rows),
    hint('n of m: the reported outcomes, and the fewest that can certify a route if none of them failed.'),
    ...notes(states),
  ]
}
function notes(states                             )                {
  const claims = new Set(states.map(({ claim }) => \`Certified: \${claim}.\`))
  const noted = states.flatMap(({ route_ix, note }) => (note === undefined ? [] : [\`Route \${route_ix}: \${note}.\`]))
  return [...claims, ...new Set(noted)].map(hint)
}
function certificate({ state, reported, fewest }                  )              {
  if (state === 'certified') return el('strong', { class: 'good' }, 'certified')
  if (state === 'off') return el('span', {}, \`off (\${many(reported, 'outcome')})\`)
  const words =
    reported < fewest
      ? \`not certified (\${count(reported)} of \${count(fewest)})\`
      : \`not certified (\${count(reported)} of more than \${count(fewest)})\`
  return el('strong', { class: 'warn' }, words)
}
function share(parts                                                    )             {
  let x = 0
  const pieces = parts.map(([part, kind]) => {
    const piece = svg('rect', { x, y: 0, width: part * 100, height: 10, class: kind })
    x += part * 100
    return piece
  })
  return svg(
    'svg',
    { viewBox: '0 0 100 10', preserveAspectRatio: 'none', class: 'share', 'aria-hidden': 'true' },
    ...pieces,
  )
}
function hint(words        )              {
  return el('p', { class: 'hint' }, words)
}
`,
  "panel.css": `:root {
  --saved: light-dark(#2a8f5b, #4cb47d);
  --lost: light-dark(#cf4238, #e66a60);
  --none: light-dark(#a7afb9, #6b7580);
  --plain-soft: light-dark(#e9ecf0, #2c323a);
}
.row,
.tools,
.title,
#filter {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-4) var(--space-5);
  align-items: center;
}
a {
  color: var(--link);
}
.between {
  justify-content: space-between;
}
main {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
  gap: var(--space-6);
  padding-bottom: var(--space-10);
}
noscript,
.wide,
.notice {
  grid-column: 1 / -1;
}
.card,
.notice {
  min-width: 0;
  padding: var(--space-6);
  border: 1px solid var(--line);
  border-radius: var(--radius-3);
  background: var(--card);
}
.notice {
  margin: 0;
  border-left: 4px solid var(--link);
}
h1 {
  margin: 0;
  font-size: var(--font-7);
}
h1 small,
.hint,
dt,
figcaption {
  color: var(--quiet);
}
h1 small {
  font-weight: normal;
  font-size: var(--font-3);
}
h3 {
  margin: var(--space-7) 0 var(--space-4);
  font-size: var(--font-5);
}
h4 {
  margin: 0 0 var(--space-4);
  font-size: var(--font-4);
  overflow-wrap: anywhere;
}
.mono,
pre,
code {
  font-family: ui-monospace, monospace;
  font-size: var(--font-code);
  overflow-wrap: anywhere;
  white-space: pre-wrap;
}
button,
input,
select {
  padding: var(--space-3) var(--space-4);
  border: 1px solid var(--edge);
  border-radius: var(--radius-2);
  background: var(--card);
  color: var(--text);
  font: inherit;
}
input {
  max-width: 100%;
  box-sizing: border-box;
}
#export-form label {
  display: block;
  margin: var(--space-4) 0 var(--space-2);
}
button {
  min-height: 2rem;
  cursor: pointer;
}
button.link {
  padding: 0;
  border: 0;
  background: none;
  color: var(--link);
  text-align: left;
  text-decoration: underline;
  overflow-wrap: anywhere;
}
button.small {
  padding: var(--space-1) var(--space-4);
  white-space: nowrap;
}
button[aria-pressed="true"] {
  border-color: var(--link);
  background: var(--link);
  color: var(--card);
}
.skip:focus {
  left: 1rem;
  top: 0.5rem;
  padding: var(--space-4);
  background: var(--card);
  color: var(--link);
}
.figures .hint {
  margin: 0;
  font-weight: normal;
  font-size: var(--font-2);
}
.figures dd:not(.hint) {
  margin: 0;
  font-size: var(--font-7);
  font-weight: 600;
}
.facts {
  display: grid;
  grid-template-columns: minmax(8rem, max-content) 1fr;
  gap: var(--space-1) var(--space-6);
  margin: var(--space-4) 0;
}
.chart {
  display: block;
  width: 100%;
  height: 9rem;
}
figure {
  margin: var(--space-5) 0;
}
.axis {
  stroke: var(--edge);
}
.saved {
  fill: var(--saved);
}
.lost {
  fill: var(--lost);
}
.none {
  fill: var(--none);
}
.share {
  width: 100%;
  min-width: 4rem;
  height: 0.8rem;
  border-radius: var(--radius-1);
  background: var(--line);
}
.rung-0 {
  fill: var(--saved);
}
.rung-1 {
  fill: var(--link);
}
.rung-2 {
  fill: var(--warn);
}
.rung-3 {
  fill: var(--quiet);
}
.flow {
  display: block;
  width: 100%;
  max-width: 26rem;
  font-size: var(--font-1);
}
.flow path {
  fill: none;
  stroke: var(--none);
}
.flow .out {
  stroke: var(--saved);
}
.flow .move {
  stroke: var(--link);
}
.flow rect {
  fill: var(--card);
  stroke: var(--edge);
}
.flow text {
  fill: var(--text);
}
.bars {
  margin: 0 0 var(--space-4);
  padding: 0;
  list-style: none;
}
.bars li {
  display: grid;
  grid-template-columns: 4.5rem 1fr minmax(7rem, max-content);
  gap: var(--space-5);
  align-items: center;
}
th,
td {
  padding: var(--space-3) var(--space-4) var(--space-3) 0;
  border-bottom: 1px solid var(--line);
  text-align: left;
  vertical-align: middle;
}
.num {
  text-align: right;
}
@media (min-width: 48.01rem) {
  :is(td, th).num + :is(td, th):not(.num) {
    padding-left: var(--space-6);
  }
}
td {
  overflow-wrap: break-word;
}
#key:not([hidden]) ~ .card:has(> .body:empty) {
  display: none;
}
@media (min-width: 44.01rem) {
  #traces td:is(:nth-child(2), :nth-child(4)) {
    white-space: nowrap;
  }
}
tr.fresh > td {
  background: color-mix(in srgb, var(--saved) 10%, var(--card));
}
#traces td:first-child > .link {
  white-space: nowrap;
}
.feedback {
  display: inline-flex;
  gap: var(--space-3);
}
.attempt {
  margin-bottom: var(--space-5);
  padding: var(--space-5);
  border: 1px solid var(--line);
  border-radius: var(--radius-2);
}
#filter,
#find {
  margin-bottom: var(--space-5);
}
#find-id {
  flex: 1 1 12rem;
  max-width: 30rem;
  min-width: 0;
}
.said:not(:empty) {
  position: sticky;
  top: 0.5rem;
  bottom: 0.5rem;
  z-index: 1;
  padding: var(--space-4) var(--space-5);
  border: 1px solid var(--edge);
  border-radius: var(--radius-2);
  background: var(--card);
}
#problem {
  position: sticky;
  top: 0.5rem;
  z-index: 2;
}
.pages {
  margin-top: var(--space-5);
}
.verdict {
  margin-top: var(--space-5);
}
dialog {
  width: min(60rem, calc(100vw - 1.5rem));
  max-height: calc(100vh - 2rem);
  padding: var(--space-6);
  border: 1px solid var(--edge);
  border-radius: var(--radius-3);
  background: var(--card);
  color: var(--text);
}
dialog h2 {
  margin: 0;
}
@media (max-width: 44rem) {
  thead {
    display: none;
  }
  tr {
    display: block;
    padding: var(--space-4) 0;
    border-bottom: 1px solid var(--line);
  }
  td {
    display: grid;
    grid-template-columns: 7rem 1fr;
    gap: var(--space-4);
    padding: var(--space-1) 0;
    border: 0;
    text-align: left;
    overflow-wrap: anywhere;
  }
  td::before {
    content: attr(data-label);
    color: var(--quiet);
  }
  .facts {
    grid-template-columns: 1fr;
    gap: 0;
  }
  .facts dd {
    margin-bottom: var(--space-3);
  }
}
@media (prefers-reduced-motion: no-preference) {
  main[aria-busy="true"] .body {
    opacity: 0.7;
    transition: opacity 0.2s;
  }
}
`,
  "panel.js": `import { el, part } from './dom.js'
import { themeSwitch } from './theme.js'
import { addressOf,             placeOf } from './address.js'
import { ApiFault, panelApi } from './api.js'
import { exportView } from './export-view.js'
import { flowView } from './flow.js'
import { calibrationView, gatesView, healthView, ladderView, providersView, routesView } from './overview.js'
import { savingsView } from './savings-chart.js'
import { sessionKey } from './session-key.js'
import { followTail } from './tail.js'
import { traceDetail } from './trace-detail.js'
import { traceList } from './trace-list.js'
import { verifyView } from './verify-view.js'
const DAY_MS = 86_400_000
const key = sessionKey(() => sessionStorage)
const api = panelApi(key.get)
const keyForm = part                 ('#key')
const keyText = part                  ('#key-text')
const problem = part('#problem')
const period = part                   ('#window')
const said = (words        ) => part('#said').replaceChildren(words)
const bodyOf = (id        ) => part(\`#\${id} > .body\`)
function failed(error         )       {
  if (error instanceof ApiFault && error.status === 401) {
    askForKey(error.message)
    return
  }
  problem.hidden = false
  problem.replaceChildren(error instanceof Error ? error.message : String(error))
}
function askForKey(reason        )       {
  part('#key-reason').replaceChildren(reason)
  keyForm.hidden = false
  keyText.focus()
}
let place = placeOf(location)
function goTo(change                )       {
  place = { ...place, ...change }
  const to = addressOf(place)
  if (new URL(to, document.baseURI).href !== location.href) history.pushState(null, '', to)
}
const detail = traceDetail({ api, failed, closed: () => goTo({ trace: undefined }) })
function open(id        )       {
  goTo({ trace: id })
  void detail.open(id)
}
const list = traceList({ api, open, said, failed, filtered: filters => goTo({ filters }) })
const tail = followTail({
  api,
  said: words => part('#live').replaceChildren(words),
  changed: () => list.showNewer().catch(failed),
})
verifyView({ api, open, failed })
exportView()
function since()                     {
  if (period.value === '') return undefined
  return new Date(Date.now() - (Number(period.value) - 1) * DAY_MS).toISOString().slice(0, 10)
}
async function showFigures()                {
  const window = { since: since() }
  const [evals, savings, { providers }] = await Promise.all([
    api.evals(window),
    api.savings({ ...window, group: 'day' }),
    api.capabilities(),
  ])
  bodyOf('health').replaceChildren(...healthView(evals, savings))
  bodyOf('providers').replaceChildren(...providersView(providers))
  bodyOf('savings').replaceChildren(...savingsView(savings))
  bodyOf('routes').replaceChildren(...routesView(evals))
  bodyOf('ladder').replaceChildren(...ladderView(evals), ...flowView(evals))
  bodyOf('gates').replaceChildren(...gatesView(evals.gates))
  bodyOf('calibration').replaceChildren(...calibrationView(evals.calibration))
}
function firstSteps()                {
  const here = new URL('.', document.baseURI).href.replace(/\\/$/, '')
  const line = (words        ) => el('code', {}, words)
  return [
    el('h2', {}, 'No call has come through this router yet'),
    el('p', {}, 'Point a client at it and use it as before, then reload:'),
    el('pre', {}, line(\`ANTHROPIC_BASE_URL=\${here} your-agent\\n\`), line(\`OPENAI_BASE_URL=\${here}/v1 your-agent\`)),
    el(
      'p',
      {},
      'Nothing is changed on the way. To save money, give the router a ladder of models: ',
      line('router serve --config routing.toml'),
      '.',
    ),
  ]
}
async function load()                {
  problem.hidden = true
  const main = part('main')
  main.setAttribute('aria-busy', 'true')
  try {
    const any = await list.show()
    keyForm.hidden = true
    part('#empty').hidden = any
    part('#empty').replaceChildren(...(any ? [] : firstSteps()))
    performance.mark('traces-shown')
    tail.start()
    await showFigures()
    performance.mark('figures-shown')
  } catch (error) {
    failed(error)
  } finally {
    main.removeAttribute('aria-busy')
  }
}
function useKey(value                    )       {
  tail.stop()
  key.set(value)
  keyText.value = ''
  said('')
  part('#older').hidden = true
  for (const body of document.querySelectorAll('section.card > .body')) body.replaceChildren()
  void load()
}
keyForm.addEventListener('submit', event => {
  event.preventDefault()
  useKey(keyText.value.trim() || undefined)
})
part('#forget-key').addEventListener('click', () => useKey(undefined))
part('#change-key').addEventListener('click', () =>
  askForKey(key.get() === undefined ? 'No key is in use.' : 'A key is in use.'),
)
part('#reload').addEventListener('click', () => void load())
period.addEventListener('change', () => {
  goTo({ days: period.value })
  void showFigures().catch(failed)
})
part('#find').addEventListener('submit', event => {
  event.preventDefault()
  open(part                  ('#find-id').value.trim())
})
function arrive()       {
  place = placeOf(location)
  list.fill(place.filters)
  if (place.days !== undefined) period.value = place.days
  if (place.trace === undefined) detail.close()
  else void detail.open(place.trace)
}
window.addEventListener('popstate', () => {
  const before = JSON.stringify([place.filters, place.days])
  arrive()
  if (JSON.stringify([place.filters, place.days]) !== before) void load()
})
themeSwitch()
arrive()
void load()
`,
  "read-chain.js": `import { recordHash } from './record-chain.js'
export function toLink(record         )       {
  return {
    record,
    tenant: memberOf(record, 'tenant_id'),
    traceId: memberOf(record, 'trace_id') ?? '',
    seq: seqOf(record),
    holds: holdsOwnHash(record),
  }
}
export function seqOf(record         )         {
  const seq = typeof record === 'object' && record !== null && 'seq' in record ? record.seq : undefined
  return typeof seq === 'number' && Number.isSafeInteger(seq) ? seq : Number.NaN
}
export function chainOf(read                 , start        , settled        )            {
  const links = inOrder(read, start)
  const at = links.findIndex(({ seq, holds }, at) => {
    const before = at === 0 ? start : links[at - 1] .seq
    return seq > before + 1 && before >= settled && holds
  })
  return at === -1 ? { links, late: 0 } : { links: links.slice(0, at), late: links.length - at }
}
function inOrder(links                 , start        )         {
  const sound = new Set(links.filter(({ holds }) => holds).map(({ seq }) => seq))
  const isLost = ({ seq, holds }      ) => Number.isNaN(seq) || (!holds && (seq <= start || sound.has(seq)))
  const place = (link      ) => (isLost(link) ? Number.MAX_VALUE : link.seq)
  return links.filter(({ seq, holds }) => !(seq <= start && holds)).sort((a, b) => place(a) - place(b))
}
function holdsOwnHash(record         )          {
  if (typeof record !== 'object' || record === null) return false
  try {
    return recordHash(record) === memberOf(record, 'hash')
  } catch {
    return false
  }
}
function memberOf(record         , name        )                     {
  if (typeof record !== 'object' || record === null) return undefined
  const value          = (record                           )[name]
  return typeof value === 'string' ? value : undefined
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
  "record-chain.js": `import { canonicalize } from './jcs.js'
import {              sha256, sha256Hex } from './sha256.js'
export const GENESIS = '0'.repeat(64)
export function recordHash(record        , hash         = sha256)         {
  const { hash: _own, ...body } = record
  return sha256Hex(canonicalize(body), hash)
}
export function seal                  (
  record   ,
  previous                    ,
  hash         = sha256,
)                                 {
  const placed = {
    ...record,
    seq: previous === undefined ? 0 : previous.seq + 1,
    prev_hash: previous === undefined ? GENESIS : previous.hash,
  }
  return { ...placed, hash: recordHash(placed, hash) }
}
export function recordChainChecker(after         , hash         = sha256) {
  let previous = after
  let index = -1
  let broken
  const fail = (reason                       ) => {
    broken = { index, reason }
    return broken
  }
  return {
    push(record        )                          {
      if (broken) return broken
      index++
      if (record.seq !== (previous === undefined ? 0 : previous.seq + 1)) return fail('seq')
      if (record.prev_hash !== (previous === undefined ? GENESIS : previous.hash)) return fail('prev_hash')
      let own
      try {
        own = recordHash(record, hash)
      } catch {
        return fail('shape')
      }
      if (record.hash !== own) return fail('hash')
      previous = { seq: record.seq, prev_hash: record.prev_hash, hash: record.hash }
      return undefined
    },
    get head()                     {
      return previous
    },
    get count()         {
      return index + 1
    },
  }
}
`,
  "record-reader.js": `import { readJson } from './read-json.js'
import {               unknownMember } from './members.js'
import { ProofTextError, readProof } from './read-proof.js'
export function readLine(text        , members         )           {
  try {
    const value = readProof(text)
    if (!isObject(value)) return { record: undefined, fault: 'parse' }
    const fault = unknownMember(value, members) === undefined ? undefined : 'unknown_member'
    return { record: value                         , fault }
  } catch (error) {
    if (!(error instanceof ProofTextError)) throw error
    const fault = error.reason === 'not_json' ? 'parse' : error.reason
    return { record: parseRecord(text), fault }
  }
}
function parseRecord(text        )                         {
  try {
    const value          = readJson(text)
    return isObject(value) ? (value                         ) : undefined
  } catch {
    return undefined
  }
}
function isObject(value         )                                   {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
`,
  "savings-chart.js": `import { el, svg, table } from './dom.js'
import { many, percent, usd } from './figures.js'
const [WIDTH, HEIGHT] = [800, 160]
const DAY_MS = 86_400_000
const MOST_BARS = 366
export function savingsView(savings         )                {
  const { requests, savings_usd, savings_pct, spent_usd, baseline_same_token_usd, unpriced } = savings
  if (requests === 0) return [el('p', { class: 'hint' }, 'There is no call in this time.')]
  const share = savings_pct === null ? '' : \` (\${percent(savings_pct / 100)})\`
  const calibrated = savings.savings_calibrated_usd
  const figures                     = [
    ['Saved', usd(savings_usd) + share],
    ['Spent', usd(spent_usd)],
    ['The same tokens on the top rung', usd(baseline_same_token_usd)],
    ...(calibrated === undefined ? [] : [['Saved, by measured ratio', usd(calibrated)]                    ]),
    ['Calls', many(requests, 'call')],
  ]
  const list = el(
    'dl',
    { class: 'figures' },
    ...figures.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
  )
  const missing =
    unpriced > 0 &&
    el(
      'p',
      { class: 'hint' },
      \`\${many(unpriced, 'call')} without a known price \${unpriced === 1 ? 'is' : 'are'} in none of the sums.\`,
    )
  const rows = savings.groups.map(day => [
    day.key,
    many(day.requests, 'call'),
    usd(day.spent_usd),
    usd(day.savings_usd),
  ])
  return [
    list,
    el('div', {}, missing, bars(everyDay(savings.groups))),
    el(
      'details',
      {},
      el('summary', {}, 'As a table'),
      table('Savings by day', ['Day (UTC)', { num: 'Calls' }, { num: 'Spent' }, { num: 'Saved' }], rows),
    ),
  ]
}
export function everyDay(groups                )        {
  const days = new Map(groups.map(day => [day.key, day]))
  const [first, last] = [groups[0], groups.at(-1)]
  if (first === undefined || last === undefined) return []
  const end = Date.parse(last.key)
  const all        = []
  for (let at = Math.max(Date.parse(first.key), end - (MOST_BARS - 1) * DAY_MS); at <= end; at += DAY_MS) {
    const key = new Date(at).toISOString().slice(0, 10)
    all.push(days.get(key) ?? { key, requests: 0, savings_usd: 0, spent_usd: 0 })
  }
  return all
}
function bars(days                )              {
  const values = days.map(({ savings_usd }) => savings_usd)
  const [top, low] = [Math.max(0, ...values), Math.min(0, ...values)]
  const span = top - low || 1
  const y = (value        ) => ((top - value) / span) * HEIGHT
  const step = WIDTH / days.length
  const width = Math.max(1, Math.min(40, step * 0.8))
  const columns = days.map(({ key, requests, savings_usd, spent_usd }, i) => {
    const [from, to] = [y(Math.max(0, savings_usd)), y(Math.min(0, savings_usd))]
    const place = {
      x: (i + 0.5) * step - width / 2,
      y: from,
      width,
      height: Math.max(requests > 0 ? 1.5 : 0, to - from),
    }
    const words = \`\${key}: \${usd(savings_usd)} saved, \${usd(spent_usd)} spent, \${many(requests, 'call')}\`
    return svg('rect', { ...place, class: savings_usd < 0 ? 'lost' : 'saved' }, svg('title', {}, words))
  })
  const label = \`Savings of each day from \${days[0]?.key} to \${days.at(-1)?.key}, at most \${usd(top)}\`
  const chart = svg(
    'svg',
    {
      viewBox: \`0 0 \${WIDTH} \${HEIGHT}\`,
      preserveAspectRatio: 'none',
      class: 'chart',
      role: 'img',
      'aria-label': label,
    },
    ...columns,
    svg('line', { x1: 0, x2: WIDTH, y1: y(0), y2: y(0), class: 'axis' }),
  )
  const ends = [days[0]?.key, days.length > 1 && days.at(-1)?.key].map(key => el('span', {}, key))
  return el(
    'figure',
    {},
    el('figcaption', {}, top > 0 && \`Up to \${usd(top)} a day\`),
    chart,
    el('figcaption', { class: 'row between' }, ...ends),
  )
}
`,
  "session-key.js": `const NAME = 'waybill-router-key'
export function sessionKey(storage               ) {
  let key = tried(() => storage().getItem(NAME) ?? undefined)
  return {
    get: () => key,
    set(value                    )       {
      key = value
      tried(() => (value === undefined ? storage().removeItem(NAME) : storage().setItem(NAME, value)))
    },
  }
}
function tried   (what         )                {
  try {
    return what()
  } catch {
    return undefined
  }
}
`,
  "sha256.js": `import { sha256 as portable } from './noble-hashes-sha2.js'
import { concat, toHex, utf8 } from './bytes.js'
export const sha256         = portable
export const runningSha256 = (hash        )                => (hash.create ?? portable.create)()
const encoder = new TextEncoder()
const nothing = new Uint8Array(0)
const room = new Uint8Array(64 * 1024)
const MOST_BYTES = 3
export function sha256Hex(data                     , hash         = sha256, before             = nothing)         {
  if (typeof data !== 'string') return hex(before.length === 0 ? data : concat(before, data), hash)
  if (before.length + data.length * MOST_BYTES > room.length) return hex(concat(before, utf8(data)), hash)
  room.set(before)
  const { written } = encoder.encodeInto(data, before.length === 0 ? room : room.subarray(before.length))
  return hex(room.subarray(0, before.length + written), hash)
}
function hex(bytes            , hash        )         {
  return hash.hex === undefined ? toHex(hash(bytes)) : hash.hex(bytes)
}
`,
  "shell.css": `body {
  display: grid;
  grid-template: auto 1fr / 12rem minmax(0, 1fr);
  min-height: 100vh;
  margin: 0;
  background: var(--page);
  color: var(--text);
  overflow-wrap: anywhere;
  font: var(--font-4) / 1.5 var(--letters);
}
.top {
  position: sticky;
  top: 0;
  z-index: 4;
  grid-column: 1 / -1;
  min-height: 3.2rem;
  padding: var(--space-4) var(--space-6);
  border-bottom: 1px solid var(--line);
  background: var(--card);
}
.brand {
  display: inline-flex;
  gap: var(--space-4);
  align-items: center;
  color: var(--text);
  font-weight: 650;
  font-size: var(--font-6);
  text-decoration: none;
}
.live {
  flex: 1;
  color: var(--quiet);
  font-size: var(--font-2);
}
nav {
  position: sticky;
  top: 3.2rem;
  align-self: start;
  max-height: calc(100vh - 3.2rem);
  overflow: auto;
  padding: var(--space-5) var(--space-4);
}
.count {
  min-width: 1.4rem;
  padding: 0 var(--space-3);
  border-radius: var(--round);
  background: var(--plain-soft);
  font-weight: 600;
  font-size: var(--font-1);
  text-align: center;
  font-variant-numeric: tabular-nums;
}
.count.warn {
  background: var(--warn-soft);
}
.count.bad {
  background: var(--bad-soft);
}
.count.warn,
.count.bad {
  color: var(--text);
}
nav a > .count + .count {
  margin-left: calc(-1 * var(--space-2));
}
nav ul {
  margin: 0;
  padding: 0;
  list-style: none;
}
nav a {
  display: flex;
  gap: var(--space-4);
  align-items: center;
  justify-content: space-between;
  padding: var(--space-3) var(--space-5);
  border-radius: var(--radius-2);
  color: var(--text);
  text-decoration: none;
}
nav a > .icon {
  color: var(--quiet);
}
nav a > .icon + span {
  flex: 1;
}
nav a:hover {
  background: var(--plain-soft);
}
nav a[aria-current] {
  background: var(--plain-soft);
  font-weight: 600;
  box-shadow: inset 3px 0 var(--link);
}
nav a[aria-current] > .icon {
  color: var(--link);
}
main {
  min-width: 0;
  width: 100%;
  max-width: 120rem;
  padding: var(--space-7) var(--space-8);
}
main:focus {
  outline: none;
}
.top,
.who {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-4) var(--space-5);
  align-items: center;
}
.brand small,
.apart {
  color: var(--quiet);
  font-weight: normal;
  font-size: var(--font-2);
}
.apart {
  padding: var(--space-3) var(--space-5);
}
nav .within {
  padding-left: var(--space-9);
  font-size: var(--font-3);
}
.unpadded {
  margin: 0;
}
.unpadded > select {
  margin: 0;
}
@media (max-width: 48rem) {
  body {
    grid-template: auto auto 1fr / minmax(0, 1fr);
  }
  main {
    padding: var(--space-6);
  }
  nav {
    top: 3.2rem;
    z-index: 4;
    padding: var(--space-2) var(--space-4);
    border-bottom: 1px solid var(--line);
    background: var(--card);
    overflow-x: auto;
  }
  nav ul {
    display: flex;
    width: max-content;
  }
  nav a {
    padding: var(--space-2) var(--space-4);
    white-space: nowrap;
  }
  nav a[aria-current] {
    box-shadow: inset 0 -3px var(--link);
  }
  .live,
  .brand small {
    display: none;
  }
  .who {
    margin-left: auto;
  }
  #theme {
    max-width: calc(100vw - 14rem);
  }
  .top {
    flex-wrap: nowrap;
    gap: var(--space-3);
    padding: var(--space-4);
  }
  .who {
    flex-wrap: nowrap;
  }
  .brand {
    gap: 0;
    font-size: 0;
  }
  .top > .unpadded {
    margin-left: auto;
  }
  .within,
  .apart {
    display: none;
  }
}
`,
  "signed-report.js": `export function signedReport(report              , areKeysKnown         )               {
  if (!report.valid) return report
  const reason = unsigned(report) === undefined ? (areKeysKnown ? undefined : 'no_key') : 'unsigned'
  return reason === undefined ? report : { ...report, valid: false, reason }
}
export function unsigned({ tenants }              )                     {
  if (tenants.length === 0) return 'nothing at all is in it'
  const open = tenants.flatMap(({ tenant_id, unanchored_tail, unanchored_feedback }) => [
    ...(unanchored_tail > 0 ? [\`\${unanchored_tail} records of \${tenant_id}\`] : []),
    ...(unanchored_feedback > 0 ? [\`\${unanchored_feedback} reports of feedback of \${tenant_id}\`] : []),
  ])
  return open.length === 0 ? undefined : open.join(', ')
}
`,
  "store-faults.js": `const DAMAGED = 'the store is damaged: stop the service and restore a backup'
const UNREADABLE =
  'the disk of the store fails, or its file system has become read-only: look at the log of the machine that it belongs to'
export const STORE_MOVED = 'STORE_MOVED'
const SENTENCES = new Map([
  ['SQLITE_FULL', 'the disk of the store is full: make room on it, then try again'],
  ['SQLITE_CORRUPT', DAMAGED],
  ['SQLITE_NOTADB', DAMAGED],
  ['SQLITE_IOERR', UNREADABLE],
  ['SQLITE_READONLY', UNREADABLE],
  [
    STORE_MOVED,
    'the file of the store was moved, removed or replaced while it was open: stop the service, put the right file in its place, and start it again',
  ],
])
export function storeFault(error         )                     {
  for (let one = error; one instanceof Error; one = one.cause) {
    const sentence = 'code' in one ? SENTENCES.get(String(one.code)) : undefined
    if (sentence !== undefined) return sentence
  }
  return undefined
}
const FULL_MS = 30_000
export function storeFaults(monotonic               = () => performance.now()) {
  let said
  let untilMs = 0
  return {
    note(error         )       {
      const sentence = storeFault(error)
      if (sentence === undefined || (said === DAMAGED && sentence !== DAMAGED)) return
      said = sentence
      untilMs = sentence === DAMAGED ? Number.POSITIVE_INFINITY : monotonic() + FULL_MS
    },
    get current()                     {
      return said !== undefined && monotonic() < untilMs ? said : undefined
    },
  }
}
`,
  "store-unavailable.js": `import { dbFault } from './db-fault.js'
const away = new WeakSet       ()
export const MOVING = 'the tenant is being moved to another database: try again in a moment'
export const isMoving = (error         )          => error instanceof Error && error.message.includes(MOVING)
export async function markUnavailable   (act                  )             {
  try {
    return await act()
  } catch (error) {
    if (error instanceof Error && dbFault(error) !== 'statement') away.add(error)
    throw error
  }
}
export function isStoreUnavailable(error         )          {
  for (let one = error; one instanceof Error; one = one.cause) if (away.has(one)) return true
  return false
}
`,
  "tail.js": `import { ApiFault,               } from './api.js'
const AGAIN_MS = 3000
export function followTail({ api, changed, said }      ) {
  let wanted = true
  let line
  async function listen(signal             )                {
    const reader = (await api.tail(signal)).getReader()
    said('● live')
    for (;;) {
      const { done } = await reader.read()
      if (done) return
      await changed()
    }
  }
  async function keep()                {
    if (!wanted || document.hidden || line !== undefined) return
    const own = new AbortController()
    line = own
    try {
      await listen(own.signal)
    } catch (error) {
      if (error instanceof ApiFault && error.status === 401) wanted = false
    }
    if (line === own) line = undefined
    if (own.signal.aborted || !wanted) return
    said('○ the line is broken; connecting again …')
    setTimeout(() => void keep(), AGAIN_MS)
  }
  function stop()       {
    line?.abort()
    line = undefined
    said('')
  }
  document.addEventListener('visibilitychange', () => (document.hidden ? stop() : void keep()))
  return {
    start()       {
      stop()
      wanted = true
      void keep()
    },
    stop()       {
      wanted = false
      stop()
    },
  }
}
`,
  "theme.js": `const YEAR_S = 31_536_000
export function themeSwitch()       {
  const choice = document.querySelector                   ('#theme')
  if (choice === null) return
  const page = document.documentElement
  choice.value = page.dataset.theme ?? ''
  choice.addEventListener('change', () => {
    const { value } = choice
    if (value === '') delete page.dataset.theme
    else page.dataset.theme = value
    document.cookie = \`wb_theme=\${value}; path=/; max-age=\${value === '' ? 0 : YEAR_S}; samesite=strict\`
  })
}
`,
  "trace-detail.js": `import { el, part, table } from './dom.js'
import { count, milliseconds, usd } from './figures.js'
import { feedbackButtons, reportsOf } from './feedback.js'
export function traceDetail({ api, failed, closed }            ) {
  const dialog = part                   ('#detail')
  let wanted = ''
  async function open(id        )                {
    wanted = id
    try {
      const [detail, why] = await Promise.all([api.trace(id), api.explain(id)])
      if (wanted !== id) return
      dialog.replaceChildren(...content(detail, why))
      if (!dialog.open) dialog.showModal()
    } catch (error) {
      if (dialog.open) dialog.close()
      else closed()
      failed(error)
    }
  }
  function content({ trace, feedback, pending }             , why             )         {
    const close = el('button', { type: 'button' }, 'Close')
    close.addEventListener('click', () => dialog.close())
    const said = el('p', { class: 'hint', role: 'status' })
    const reports = el('div', {}, reportsOf(feedback))
    const buttons = feedbackButtons({
      api,
      traceId: trace.trace_id,
      said: words => said.replaceChildren(words),
      failed: error => said.replaceChildren(error instanceof Error ? error.message : String(error)),
      reported: () =>
        void api.trace(trace.trace_id).then(now => reports.replaceChildren(reportsOf(now.feedback)), failed),
    })
    return [
      el('div', { class: 'row between' }, el('h2', { id: 'detail-title' }, 'Trace'), close),
      el('p', { class: 'mono' }, trace.trace_id),
      ...stepLink(trace.final.client_request_id),
      el('p', {}, why.summary),
      facts(summaryOf(trace)),
      el('h3', {}, 'Why'),
      el(
        'ol',
        {},
        ...why.steps.map(({ step, decision, because }) =>
          el('li', {}, el('strong', {}, step), \`: \${decision}; \${because}\`),
        ),
      ),
      el('h3', {}, 'Attempts'),
      ...(trace.attempts.length === 0
        ? [el('p', { class: 'hint' }, 'None: the call was refused before any.')]
        : trace.attempts.map(attemptView)),
      el('h3', {}, 'Outcome'),
      buttons,
      said,
      reports,
      el('h3', {}, 'Hashes'),
      facts(hashesOf(trace, pending)),
    ]
  }
  dialog.addEventListener('click', event => {
    if (event.target === dialog) dialog.close()
  })
  dialog.addEventListener('close', () => {
    wanted = ''
    closed()
  })
  return { open, close: () => dialog.close() }
}
function stepLink(requestId                    )                {
  const [, run, step] = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\\.([\\w-]+)$/.exec(requestId ?? '') ?? []
  if (run === undefined || step === undefined) return []
  const { dashboard } = document.documentElement.dataset
  const words = \`\${step} of run …\${run.slice(-12)}\`
  const made = dashboard === undefined ? words : el('a', { href: \`\${dashboard}/runs/\${run}#step=\${step}\` }, words)
  return [el('p', {}, 'Made by ', made)]
}
function summaryOf({
  tenant_id,
  ts,
  session_id,
  mode,
  route_ix,
  request,
  policy,
  final,
}                      )                     {
  const { features } = request
  const share = policy.propensity === 1 ? '' : \`, chosen with probability \${policy.propensity}\`
  return [
    ['Arrived', ts],
    ['Tenant', tenant_id],
    ['Session', session_id],
    [
      'Mode',
      \`\${mode}\${policy.mode_profile === 'none' ? '' : \`, \${policy.mode_profile}\`}\${route_ix === null ? ', no route' : \`, route \${route_ix}\`}\`,
    ],
    ['Asked for', \`\${features.requested_model} by \${features.agent || 'an unnamed agent'} (\${request.api})\`],
    ['Policy', \`\${policy.id}, start rung \${policy.start_rung}\${share}\`],
    ['Overrides', policy.overrides.join(', ') || 'none'],
    ...(policy.stay === undefined ? [] : [stayRow(policy.stay)]),
    ...(policy.dropped ?? []).map(({ rung, model, because })                   => [
      \`Rung \${rung} left out\`,
      \`\${model}: \${because}\`,
    ]),
    ['Served', \`\${final.served_model ?? 'nothing'} from \${final.served_from}, status \${final.status}\`],
    ['Cost', \`\${usd(final.total_cost_usd)}, of it gates \${usd(final.gate_cost_usd)}\`],
    ['The same tokens on the top rung', usd(final.baseline_same_token_usd)],
    ['Saved', usd(final.savings_usd)],
    ['Escalations, failovers', \`\${final.escalations}, \${final.failovers}\`],
    ['Time', \`\${milliseconds(final.wall_ms)}, of it the router \${milliseconds(final.overhead_ms)}\`],
  ]
}
function stayRow({ from, to, stays, cached_tokens, stay_usd, go_usd }                             )                   {
  const where = stays ? \`stayed on rung \${from}\` : \`went to rung \${to}\`
  return ['For the cache', \`\${where}: \${cached_tokens} tokens, \${usd(stay_usd)} to stay, \${usd(go_usd)} to go\`]
}
function attemptView(attempt         , i        )              {
  const { rung, provider, model, gate, verdict, cost, score, tokens, usage_source, latency_ms, status, finish, cause } =
    attempt
  const input = tokens.uncached + tokens.cache_write_5m + tokens.cache_write_1h + tokens.cache_read
  const cached = tokens.cache_read > 0 ? \` (\${count(tokens.cache_read)} from the cache)\` : ''
  const gates = attempt.gates.map(one => [
    one.gate_id,
    one.kind,
    one.verdict,
    one.score === undefined ? '–' : String(one.score),
    usd(one.cost),
    milliseconds(one.latency_ms),
    [one.reason, one.evidence_ref].filter(Boolean).join(' · ') || '–',
  ])
  return el(
    'section',
    { class: 'attempt' },
    el(
      'h4',
      {},
      \`\${i + 1}. Rung \${rung}: \${model} \`,
      el('span', { class: verdict === 'pass' ? 'good' : 'bad' }, verdict),
    ),
    facts([
      ['Provider', provider],
      ['Cause', attempt.error_class === undefined ? cause : \`\${cause}; ended as \${attempt.error_class}\`],
      ...(attempt.adapted ?? []).map(({ path, from, to, why })                   => [
        'Changed',
        \`\${path}\${from === undefined ? '' : \` (\${from})\`}: \${to ?? 'left out'}; \${why}\`,
      ]),
      ['Gates said', score === null ? gate : \`\${gate}, score \${score}\`],
      ['Tokens', \`\${count(input)} in\${cached}, \${count(tokens.output)} out (\${usage_source})\`],
      ['Cost', usd(cost)],
      ['Answer', \`\${status ?? 'no status'}\${finish === null ? '' : \`, \${finish}\`}, \${milliseconds(latency_ms)}\`],
    ]),
    gates.length > 0 &&
      table(
        \`Gates of attempt \${i + 1}\`,
        ['Gate', 'Kind', 'Verdict', { num: 'Score' }, { num: 'Cost' }, { num: 'Time' }, 'Reason'],
        gates,
      ),
  )
}
function hashesOf(trace                             , pending         )                     {
  const { request, policy } = trace
  const place                     =
    pending || !('seq' in trace)
      ? [['Chain', 'not sealed yet: reload in a moment']]
      : [
          ['Place in the chain', String(trace.seq)],
          ['Hash', trace.hash],
          ['Hash before it', trace.prev_hash],
        ]
  return [
    ...place,
    ['Prompt (salted)', request.prompt_hash],
    ['Body in (salted)', request.body_sha256_in],
    ['Body out (salted)', request.body_sha256_out ?? 'nothing was sent'],
    ['Config', policy.config_hash],
    ['Price table', policy.price_table_hash],
  ]
}
function facts(entries                                        )              {
  return el('dl', { class: 'facts' }, ...entries.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]))
}
`,
  "trace-ids.js": `export const newTraceIdList = ()              => ({ words: new Uint32Array(256), count: 0, others: new Map() })
export function pushTraceId(list             , id        )       {
  if ((list.count + 1) * 4 > list.words.length) {
    const wider = new Uint32Array(list.words.length * 2)
    wider.set(list.words)
    list.words = wider
  }
  if (!pack(id, list.words, list.count * 4)) list.others.set(list.count, id)
  list.count++
}
function pack(id        , into             , at        )          {
  if (id.length !== 36) return false
  let word = at
  let value = 0
  let digits = 0
  for (let place = 0; place < 36; place++) {
    const code = id.charCodeAt(place)
    if (place === 8 || place === 13 || place === 18 || place === 23) {
      if (code !== 0x2d) return false
      continue
    }
    const digit = code < 0x3a ? code - 0x30 : code < 0x67 ? code - 0x57 : -1
    if (digit < 0 || (code >= 0x3a && digit < 10)) return false
    value = (value << 4) | digit
    if (++digits % 8 === 0) into[word++] = value
  }
  return (into[at]  | into[at + 1]  | into[at + 2]  | into[at + 3] ) !== 0
}
const PIECE = 1 << 14
export function traceIdSet() {
  const pieces                = []
  let slots = new Uint32Array(1024)
  let size = 0
  const others = new Set        ()
  function slotOf(words             , at        )         {
    const [a, b, c, d] = [words[at] , words[at + 1] , words[at + 2] , words[at + 3] ]
    let slot = Math.imul(d ^ (c << 7), 0x9e3779b1) ^ Math.imul(b ^ a, 0x85ebca77)
    for (;;) {
      slot &= slots.length - 1
      const place = slots[slot]  - 1
      if (place < 0) return slot
      const piece = pieces[Math.floor(place / PIECE)]
      const from = (place % PIECE) * 4
      if (piece[from] === a && piece[from + 1] === b && piece[from + 2] === c && piece[from + 3] === d) return slot
      slot++
    }
  }
  function add(words             , at        )          {
    if (size * 2 >= slots.length) grow()
    const slot = slotOf(words, at)
    if (slots[slot] !== 0) return false
    if (size % PIECE === 0) pieces.push(new Uint32Array(PIECE * 4))
    pieces.at(-1) .set(words.subarray(at, at + 4), (size % PIECE) * 4)
    slots[slot] = ++size
    return true
  }
  function grow() {
    slots = new Uint32Array(slots.length * 2)
    for (let place = 0; place < size; place++) {
      slots[slotOf(pieces[Math.floor(place / PIECE)] , (place % PIECE) * 4)] = place + 1
    }
  }
  return {
    addAll(list             )                     {
      for (let at = 0; at < list.count; at++) {
        const other = list.others.get(at)
        if (other !== undefined) {
          if (others.has(other)) return at
          others.add(other)
          continue
        }
        if (!add(list.words, at * 4)) return at
      }
      return undefined
    },
  }
}
`,
  "trace-list.js": `import { el, part, table } from './dom.js'
import { moment, usd } from './figures.js'
import { feedbackButtons } from './feedback.js'
const COLUMNS = [
  'Time',
  'Route',
  'Served by',
  'From',
  { num: 'Attempts' },
  { num: 'Cost' },
  { num: 'Saved' },
  'Outcome',
]
const PAGE = '50'
export function traceList(view               ) {
  const { api, failed, filtered } = view
  const body = part('#traces > .body')
  const older = part                   ('#older')
  const filter = part                 ('#filter')
  let next                = null
  let asked = 0
  const query = () => filled(filter)
  const row = (trace             ) => cellsOf(trace, view)
  async function show()                   {
    const turn = ++asked
    const wanted = query()
    const page = await api.traces({ ...wanted, limit: PAGE })
    if (turn !== asked) return true
    next = page.next
    older.hidden = next === null
    const none = page.traces.length === 0
    const isFiltered = Object.keys(wanted).length > 0
    const words = isFiltered
      ? 'No trace matches. Clear the filter to see all.'
      : 'Each call that comes through stands here.'
    body.replaceChildren(
      none ? el('p', { class: 'hint' }, words) : table('Traces, newest first', COLUMNS, page.traces.map(row)),
    )
    return !none || isFiltered
  }
  async function showNewer()                {
    const turn = asked
    const page = await api.traces({ ...query(), limit: PAGE })
    if (turn !== asked) return
    const rows = body.querySelector('tbody')
    const known = new Set([...(rows?.querySelectorAll('button.link') ?? [])].map(one => one.getAttribute('title')))
    const fresh = page.traces.filter(({ trace_id }) => !known.has(trace_id))
    if (fresh.length === 0) return
    if (rows === null || fresh.length === page.traces.length) {
      await show()
      return
    }
    const made = table('', COLUMNS, fresh.map(row)).querySelectorAll('tbody > tr')
    for (const one of made) one.classList.add('fresh')
    rows.prepend(...made)
    performance.mark('tail-shown')
  }
  async function showOlder()                {
    if (next === null) return
    const turn = asked
    const page = await api.traces({ ...query(), limit: PAGE, before: next })
    if (turn !== asked) return
    next = page.next
    older.hidden = next === null
    const rows = table('', COLUMNS, page.traces.map(row)).querySelectorAll('tbody > tr')
    part('tbody', body).append(...rows)
    rows[0]?.querySelector('button')?.focus()
  }
  function fill(filters                                  )       {
    for (const field of filter.elements)
      if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement)
        field.value = filters[field.name] ?? ''
  }
  const shown = (work                        ) => () => void work().catch(failed)
  const ask = () => {
    filtered(query())
    shown(show)()
  }
  filter.addEventListener('submit', event => {
    event.preventDefault()
    ask()
  })
  filter.addEventListener('reset', () => setTimeout(ask))
  older.addEventListener('click', shown(showOlder))
  return { show, showNewer, fill }
}
function cellsOf(trace             , { api, open, said, failed }               ) {
  const { trace_id, ts, mode, route_ix, attempts, final } = trace
  const look = el('button', { type: 'button', class: 'link', title: trace_id }, moment(ts))
  look.addEventListener('click', () => open(trace_id))
  const rung = final.served_rung < 0 ? 'nothing' : \`\${final.served_model ?? 'unknown'}\`
  const place = mode === 'observe' || final.served_rung < 0 ? '' : \` · rung \${final.served_rung}\`
  return [
    look,
    \`\${mode}\${route_ix === null ? '' : \` \${route_ix}\`}\`,
    rung + place,
    \`\${final.served_from} (\${final.status})\`,
    attempts.length,
    usd(final.total_cost_usd),
    final.savings_usd === null ? 'unknown' : usd(final.savings_usd),
    feedbackButtons({ api, traceId: trace_id, said, failed }),
  ]
}
function filled(form                 )                         {
  const given = [...new FormData(form)].map(([name, value])                   => [name, String(value).trim()])
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}
`,
  "trace-row.js": `import { fromUsd } from './money.js'
import { sealableText } from './canonical-trace.js'
export const rowColumns = [
  'tenant_id',
  'seq',
  'trace_id',
  'ts_ms',
  'session_id',
  'mode',
  'route_ix',
  'served_from',
  'served_rung',
  'served_model',
  'total_nano',
  'gate_nano',
  'baseline_nano',
  'calibrated_nano',
  'escalations',
  'failovers',
  'response_id',
  'upstream_request_id',
  'client_request_id',
  'gates',
]
export function rowOf(record         , seq        )         {
  const { final } = record
  return [
    text(record.tenant_id),
    integer(seq),
    text(record.trace_id),
    integer(Date.parse(record.ts)),
    text(record.session_id),
    text(record.mode),
    orNull(record.route_ix, integer),
    text(final.served_from),
    integer(final.served_rung),
    orNull(final.served_model, text),
    orNull(final.total_cost_usd, fromUsd),
    fromUsd(final.gate_cost_usd),
    orNull(final.baseline_same_token_usd, fromUsd),
    orNull(final.baseline_calibrated_usd, fromUsd),
    integer(final.escalations),
    integer(final.failovers),
    orNull(final.response_id, text),
    orNull(final.upstream_request_id, text),
    orNull(final.client_request_id, text),
    gateRuns(record.attempts),
  ]
}
function gateRuns(attempts                    )                {
  const runs           = []
  for (const { gates } of attempts) {
    for (const { gate_id, verdict, cost, latency_ms } of gates) {
      runs.push([sealableText(gate_id), verdict, fromUsd(cost), Math.round(latency_ms * 1000)])
    }
  }
  return runs.length === 0 ? null : JSON.stringify(runs)
}
function orNull   (value                      , cell                    )       {
  return value === null || value === undefined ? null : cell(value)
}
function text(value        )         {
  if (typeof value !== 'string') throw new TypeError(\`A trace column expected text, got \${typeof value}.\`)
  return sealableText(value)
}
function integer(value        )         {
  if (!Number.isSafeInteger(value)) throw new TypeError(\`A trace column expected an integer, got \${value}.\`)
  return value
}
`,
  "verified-tenant.js": `import { GENESIS, recordChainChecker } from './record-chain.js'
import { matchesFeedback } from './feedback-columns.js'
export function newTenant(
  id        ,
  { checkpoints, anchors, after }                                                                            ,
  sha256        ,
)         {
  const prune = checkpoints.findLast(({ kind }) => kind === 'prune')
  const start = startOf(prune, after)
  const wanted = [...checkpoints, ...anchors]
  return {
    id,
    start,
    head: start === undefined || start.seq < 0 ? undefined : { seq: start.seq, hash: start.hash },
    records: 0,
    broken: undefined,
    wanted: new Map(wanted.map(({ seq }) => [seq, undefined])),
    checkpoints,
    anchors,
    feedback: {
      checker: recordChainChecker(feedbackStart(start), sha256),
      broken: undefined,
      wanted: new Map(wanted.map(({ feedback_seq }) => [feedback_seq, undefined])),
    },
  }
}
function startOf(prune                        , after                       )                    {
  const cut = { feedbackSeq: prune?.feedback_seq ?? -1, feedbackHash: prune?.feedback_hash ?? GENESIS }
  if (after !== undefined && after.seq > (prune?.seq ?? -1)) return { seq: after.seq, hash: after.hash, ...cut }
  return prune && { seq: prune.seq, hash: prune.hash, ...cut }
}
function feedbackStart(start                   ) {
  if (start === undefined || start.feedbackSeq < 0) return undefined
  return { seq: start.feedbackSeq, prev_hash: '', hash: start.feedbackHash }
}
export function joinStretch(tenant        , stretch                , ids                               )       {
  const base = tenant.records
  tenant.records += stretch.records
  if (tenant.broken !== undefined || stretch.records === 0) return
  const broken = placeFault(tenant, stretch) ?? repeatedId(stretch, ids) ?? stretch.broken
  const sound = broken?.index ?? stretch.records
  const firstSeq = (tenant.head?.seq ?? -1) + 1
  for (const [seq, hash] of stretch.hashes) if (seq - firstSeq < sound) tenant.wanted.set(seq, hash)
  if (broken !== undefined) tenant.broken = { ...broken, index: base + broken.index }
  else tenant.head = stretch.head
}
function placeFault({ head }        , { first }                )                    {
  if (first === undefined) return undefined
  if (first.seq !== (head === undefined ? 0 : head.seq + 1)) return { index: 0, reason: 'seq' }
  if (first.prevHash !== (head === undefined ? GENESIS : head.hash)) return { index: 0, reason: 'prev_hash' }
  return undefined
}
function repeatedId({ traceIds }                , ids                               )                    {
  const index = ids.addAll(traceIds)
  return index === undefined ? undefined : { index, reason: 'trace_id' }
}
export function pushFeedback({ id, feedback }        , { record, fault }          , columns                    )       {
  if (feedback.broken !== undefined) return
  if (record === undefined || fault !== undefined) {
    feedback.broken = { index: feedback.checker.count, reason: fault ?? 'parse' }
    return
  }
  feedback.broken = feedback.checker.push(record)
  const index = feedback.checker.count - 1
  if (feedback.broken === undefined && record.tenant_id !== id) feedback.broken = { index, reason: 'tenant' }
  if (feedback.broken === undefined && columns !== undefined && !matchesFeedback(columns, record))
    feedback.broken = { index, reason: 'columns' }
  if (feedback.broken === undefined && feedback.wanted.has(record.seq)) feedback.wanted.set(record.seq, record.hash)
}
`,
  "verify-chains.js": `import { fromBase64 } from './bytes.js'
import { publicKey } from './ed25519.js'
import { verifyRecords } from './verify.js'
import { chainOf,                            seqOf, toLink } from './read-chain.js'
export async function verifyChains(source             , hooks              = {})                          {
  const keys = keysById(await source.keys())
  const { checkpoints, chains, reports } = await readAll(source, hooks)
  const report = await verifyRecords({
    records: lots([...chains].map(([tenantId, { links }]) => links.map(({ record }) => lineOf(tenantId, record)))),
    feedback: lots([...reports].map(([tenantId, records]) => records.map(record => lineOf(tenantId, record)))),
    checkpoints,
    keys,
  })
  return report.tenants.map(tenant => toVerdict(tenant, { checkpoints, chains, reports }))
}
async function readAll(source             , hooks             )                    {
  for (;;) {
    const checkpoints = await allCheckpoints(source, hooks.signal)
    const links = await readLinks(source, hooks)
    const reports = await allFeedback(source, hooks.signal)
    if (prunes(await allCheckpoints(source, hooks.signal)).length > prunes(checkpoints).length) continue
    const signed = Map.groupBy(checkpoints, one => one.tenant_id)
    const cuts = new Map(prunes(checkpoints).map(one => [one.tenant_id, one]))
    return {
      checkpoints,
      chains: new Map(
        [...links].map(([tenant, { read, settled }]) => {
          const known = Math.max(settled, ...(signed.get(tenant) ?? []).map(({ seq }) => seq))
          return [tenant, chainOf(read, cuts.get(tenant)?.seq ?? -1, known)]
        }),
      ),
      reports: new Map(
        [...reports].map(([tenant, all]) => {
          const cut = cuts.get(tenant)?.feedback_seq ?? -1
          return [tenant, all.filter(record => !(seqOf(record) <= cut))]
        }),
      ),
    }
  }
}
const prunes = (checkpoints                       ) => checkpoints.filter(({ kind }) => kind === 'prune')
const lineOf = (tenantId        , record         ) => ({ tenantId, text: JSON.stringify(record) })
async function* lots   (lists              )                    {
  yield* lists
}
function toVerdict(
  { tenant_id: tenant, records, broken_at: index, reason, ...report }                                 ,
  { checkpoints, chains, reports }          ,
)               {
  const own = checkpoints.filter(one => one.tenant_id === tenant)
  const { links = [], late = 0 } = chains.get(tenant) ?? {}
  const held = own.filter(({ seq }) => seq <= (report.last_checkpoint ?? -1))
  return {
    tenant,
    records,
    reports: reports.get(tenant)?.length ?? 0,
    ...(index !== null && reason !== null && { broken: brokenAt(index, reason, links) }),
    unanchored: report.unanchored_tail,
    checkpoints: own.length,
    signatures: own.length === 0 ? 'none' : 'checked',
    keyIds: [...new Set(held.map(({ key_id }) => key_id))],
    late,
  }
}
function brokenAt(index        , reason        , links                 )                                      {
  const link = links[index]
  const before = links[index - 1]
  const isMissing = reason === 'seq' && link !== undefined && link.seq > (before?.seq ?? -1) + 1
  const isOfRecord = !/^(?:checkpoint|feedback|tail)_/.test(reason)
  return { index, reason, ...(isOfRecord && !isMissing && link && { traceId: link.traceId }) }
}
async function readLinks(source             , { onRecords, signal }             )                                   {
  const tenants = new Map                    ()
  let records = 0
  let tenant = ''
  let next = source.traces(undefined)
  for (let first = true; ; first = false) {
    const page = await next
    signal?.throwIfAborted()
    if (page.next !== null) next = source.traces(page.next)
    for (const link of page.traces.map(toLink)) {
      tenant = link.tenant ?? tenant
      const known = tenants.get(tenant) ?? { read: [], settled: -1 }
      tenants.set(tenant, known)
      known.read.push(link)
      if (first && link.holds && link.seq > known.settled) known.settled = link.seq
    }
    records += page.traces.length
    onRecords?.(records)
    if (page.next === null) return tenants
  }
}
async function allCheckpoints(source             , signal                         )                        {
  const all               = []
  for (let after                    ; ; ) {
    const page = await source.checkpoints(after)
    signal?.throwIfAborted()
    all.push(...page.checkpoints)
    if (page.next === null) return all
    after = page.next
  }
}
async function allFeedback(source             , signal                         )                                  {
  const all = new Map                   ()
  for (let after                    ; ; ) {
    const page = await source.feedback(after)
    signal?.throwIfAborted()
    for (const { tenant_id, record } of page.feedback) {
      const known = all.get(tenant_id) ?? []
      all.set(tenant_id, known)
      known.push(record)
    }
    if (page.next === null) return all
    after = page.next
  }
}
function keysById({ keys }            )              {
  const known = new Map                                 ()
  for (const { public_key } of keys) {
    try {
      const { keyId, publicKey: raw } = publicKey(fromBase64(public_key))
      known.set(keyId, raw)
    } catch {
    }
  }
  return known
}
`,
  "verify-checkpoints.js": `import { canonicalize } from './jcs.js'
import { GENESIS } from './record-chain.js'
import { checkpointDigest, checkSignature,                  } from './checkpoint.js'
export async function conclude(
  tenant        ,
  { keys, sha256, withFeedback }            ,
)                                           {
  const first = (tenant.start?.seq ?? -1) + 1
  const checked = await checkCheckpoints(tenant, first, keys, sha256)
  const anchored = await checkAnchors(tenant, first, keys)
  const { checker, broken: brokenFeedback } = tenant.feedback
  const feedback = brokenFeedback && { index: brokenFeedback.index, reason: \`feedback_\${brokenFeedback.reason}\` }
  const lost = withFeedback && feedback === undefined ? lostFeedback(tenant, checker.head?.seq ?? -1) : undefined
  let broken
  for (const found of [tenant.broken, checked.broken, anchored]) {
    if (found !== undefined && (broken === undefined || found.index < broken.index)) broken = found
  }
  broken ??= feedback ?? lost
  const intact = tenant.broken === undefined ? first + tenant.records : first + tenant.broken.index
  return {
    tenant_id: tenant.id,
    records: tenant.records,
    broken_at: broken?.index ?? null,
    reason: broken?.reason ?? null,
    last_checkpoint: checked.last ?? null,
    unanchored_tail: Math.max(0, intact - 1 - (checked.last ?? first - 1)),
    unanchored_feedback: Math.max(0, (checker.head?.seq ?? -1) - checked.lastFeedback),
  }
}
async function checkCheckpoints(tenant        , first        , keys                         , sha256        ) {
  let previous = GENESIS
  let last
  let lastFeedback = tenant.start?.feedbackSeq ?? -1
  let broken
  for (const checkpoint of withoutRepeats(tenant.checkpoints)) {
    const reason = await checkpointFault(tenant, checkpoint, { first, previous, keys })
    if (reason !== undefined) {
      const index = Math.min(Math.max(0, checkpoint.seq - first), tenant.records)
      if (broken === undefined || index < broken.index) broken = { index, reason }
      break
    }
    previous = checkpointDigest(checkpoint, sha256)
    if (checkpoint.seq >= 0) last = Math.max(last ?? -1, checkpoint.seq)
    lastFeedback = Math.max(lastFeedback, checkpoint.feedback_seq)
  }
  return { broken, last, lastFeedback }
}
async function checkpointFault(
  tenant        ,
  checkpoint            ,
  { first, previous, keys }                   ,
)                              {
  if (keys !== undefined && !(await checkSignature(checkpoint, keys))) return 'checkpoint_signature'
  if (checkpoint.prev_checkpoint !== previous) return 'checkpoint_link'
  return headFault(tenant, checkpoint, first)
}
function headFault(tenant        , { seq, hash }            , first        )                     {
  if (seq < first) return seq === tenant.start?.seq && hash !== tenant.start.hash ? 'checkpoint_head' : undefined
  const found = tenant.wanted.get(seq)
  if (found !== undefined) return found === hash ? undefined : 'checkpoint_head'
  return tenant.broken === undefined ? 'tail_cut' : undefined
}
async function checkAnchors(tenant        , first        , keys                         )                             {
  let broken
  for (const anchor of tenant.anchors) {
    const reason =
      keys !== undefined && !(await checkSignature(anchor, keys))
        ? 'anchor_signature'
        : headFault(tenant, anchor, first)
    if (reason === undefined) continue
    const index = Math.min(Math.max(0, anchor.seq - first), tenant.records)
    if (broken === undefined || index < broken.index) broken = { index, reason: reason.replace('checkpoint', 'anchor') }
  }
  return broken
}
function lostFeedback(tenant        , last        )                    {
  const from = (tenant.start?.feedbackSeq ?? -1) + 1
  for (const { feedback_seq, feedback_hash } of [...tenant.checkpoints, ...tenant.anchors]) {
    if (feedback_seq < from) continue
    const found = tenant.feedback.wanted.get(feedback_seq)
    if (found === undefined) return { index: last + 1 - from, reason: 'feedback_tail_cut' }
    if (found !== feedback_hash) return { index: feedback_seq - from, reason: 'feedback_head' }
  }
  return undefined
}
function withoutRepeats(checkpoints                       )               {
  const seen = new Set        ()
  return checkpoints.filter(one => {
    const text = canonicalize(one)
    return !seen.has(text) && seen.add(text)
  })
}
`,
  "verify-export.js": `import { ProofTextError, proofText } from './read-proof.js'
import { fromBase64 } from './bytes.js'
import { publicKey } from './ed25519.js'
import { sha256 } from './sha256.js'
import { ExportLineError, exportExtras, exportRecords, toKeys } from './export-line.js'
import { trustedKeys } from './keys.js'
import { signedReport } from './signed-report.js'
import { verifyRecords } from './verify.js'
export async function verifyExport(bytes            , key        )                        {
  try {
    const lines = proofText(bytes)
      .split('\\n')
      .filter(line => line.trim() !== '')
    const lots = () => oneLot(lines)
    const { checkpoints, keys: listed, feedback } = await exportExtras(lots())
    const keys = key.trim() === '' ? trustedKeys({ keys: listed.flatMap(({ keys }) => keys) }) : keptKeys(key.trim())
    const report = await verifyRecords({
      records: exportRecords(lots(), 'record'),
      ...(feedback && { feedback: exportRecords(lots(), 'feedback') }),
      checkpoints,
      ...(keys.size > 0 && { keys }),
      sha256,
    })
    return signedReport(report, keys.size > 0)
  } catch (error) {
    if (!(error instanceof ExportLineError) && !(error instanceof ProofTextError)) throw error
    return { valid: false, reason: error.reason, records: 0, tenants: [] }
  }
}
function keptKeys(text        )              {
  if (text.startsWith('{')) return trustedKeys(toKeys(text))
  const key = publicKey(fromBase64(text))
  return new Map([[key.keyId, key.publicKey]])
}
async function* oneLot(lines                   )                                    {
  yield lines
}
`,
  "verify-view.js": `import { el, part } from './dom.js'
import { count, many } from './figures.js'
import {                    verifyChains } from './verify-chains.js'
const REASONS                                   = {
  seq: 'a record is missing here, stands in another place or stands twice',
  prev_hash: 'it does not follow on the record before it',
  hash: 'its content is not what was sealed',
  trace_id: 'another record has its id',
  tenant: 'it says that it is of another tenant',
  lone_surrogate: 'it holds half of a surrogate pair, so no hash can be of it',
  unknown_member: 'it has a member that no record has',
  parse: 'the record does not read',
  tail_cut: 'a signed checkpoint names a record that is not there: the end of the chain was cut off',
  feedback_seq: 'a report is missing here, or stands in another place',
  feedback_prev_hash: 'it does not follow on the report before it',
  feedback_hash: 'the report’s content is not what was sealed',
  feedback_lone_surrogate: 'it holds half of a surrogate pair, so no hash can be of it',
  feedback_unknown_member: 'it has a member that no report has',
  feedback_parse: 'the report does not read',
  feedback_tail_cut: 'a signed checkpoint names a report that is not there: the end of the feedback was cut off',
  feedback_head: 'a signed checkpoint has another hash for it: the feedback was written anew',
  checkpoint_head: 'a signed checkpoint has another hash for it: the chain was written anew',
  checkpoint_link: 'the checkpoint over it does not follow on the checkpoint before it',
  checkpoint_signature: 'the checkpoint over it is not signed by a key of this router',
}
export function verifyView({ api, open, failed }            )       {
  const [button, stop] = [part('#verify'), part('#stop-verify')]
  const shown = part('#verified')
  let running
  async function verify()                {
    if (globalThis.crypto?.subtle === undefined) {
      const command = el('code', {}, 'router verify')
      shown.replaceChildren(
        el('p', {}, 'This browser hashes on https or localhost only. Open the panel there, or run ', command, '.'),
      )
      return
    }
    running = new AbortController()
    const { signal } = running
    const progress = el('p', {}, 'Reading …')
    shown.replaceChildren(progress)
    button.toggleAttribute('disabled', true)
    stop.hidden = false
    try {
      const source = {
        traces: (before                    ) => api.traces({ limit: '500', before }, signal),
        checkpoints: (after                    ) => api.checkpoints({ limit: '500', after }, signal),
        feedback: (after                    ) => api.feedbackRecords({ limit: '500', after }, signal),
        keys: api.keys,
      }
      const onRecords = (records        ) => progress.replaceChildren(\`\${many(records, 'record')} hashed …\`)
      const verdicts = await verifyChains(source, { signal, onRecords })
      shown.replaceChildren(
        ...(verdicts.length === 0 ? [el('p', {}, 'There is no record yet.')] : verdicts.map(toVerdict)),
      )
    } catch (error) {
      shown.replaceChildren(el('p', {}, signal.aborted ? 'Stopped.' : 'The check could not be finished.'))
      if (!signal.aborted) failed(error)
    } finally {
      button.toggleAttribute('disabled', false)
      stop.hidden = true
      running = undefined
    }
  }
  function toVerdict(verdict              )              {
    const { tenant, records, reports, broken } = verdict
    const ofFeedback = broken?.reason.startsWith('feedback_') === true
    const state = broken === undefined ? 'whole' : \`\${ofFeedback ? 'feedback ' : ''}broken at index \${broken.index}\`
    const words = el(
      'strong',
      { class: broken === undefined ? 'good' : 'bad' },
      \`\${broken === undefined ? '✓' : '✗'} \${tenant}: \${state}\`,
    )
    const box = el(
      'div',
      { class: 'verdict' },
      el('p', {}, words, \` of \${ofFeedback ? many(reports, 'report') : many(records, 'record')}.\`),
    )
    if (broken !== undefined)
      box.append(el('p', {}, \`Index \${broken.index}: \${REASONS[broken.reason] ?? broken.reason}.\`))
    const id = broken?.traceId
    if (id !== undefined) {
      const look = el('button', { type: 'button', class: 'link' }, \`Trace \${id}\`)
      look.addEventListener('click', () => open(id))
      box.append(el('p', {}, look))
    }
    box.append(el('p', { class: 'hint' }, signedWords(verdict)))
    return box
  }
  button.addEventListener('click', () => void verify())
  stop.addEventListener('click', () => running?.abort())
}
function signedWords({ reports, signatures, checkpoints, keyIds, unanchored, broken, late }              )         {
  const keys = keyIds.length === 0 ? '' : \` by key \${keyIds.join(', ')}\`
  const signed = {
    none: 'No checkpoint has been signed yet.',
    checked: \`\${many(checkpoints, 'checkpoint')} signed\${keys}.\`,
  }[broken?.reason === 'checkpoint_signature' ? 'none' : signatures]
  const tail =
    unanchored === 0
      ? ''
      : \` The last \${many(unanchored, 'record')} \${unanchored === 1 ? 'is' : 'are'} under no checkpoint yet.\`
  const rest =
    late === 0
      ? ''
      : \` \${count(late)} came while this was read and \${late === 1 ? 'is' : 'are'} not in it: verify again.\`
  const bad =
    broken?.reason === 'checkpoint_signature'
      ? \`Of \${many(checkpoints, 'checkpoint')} not every one is signed.\`
      : signed
  const feedback =
    reports === 0 ? '' : \` \${many(reports, 'report')} of feedback \${reports === 1 ? 'was' : 'were'} read as well.\`
  return bad + tail + rest + feedback
}
`,
  "verify.js": `import { FEEDBACK, TRACE } from './members.js'
import { sha256 as portableSha256,             } from './sha256.js'
import {                                       stretchCheck } from './check-stretch.js'
import {                readLine } from './record-reader.js'
import { traceIdSet } from './trace-ids.js'
import { joinStretch, newTenant, pushFeedback,             } from './verified-tenant.js'
import { conclude } from './verify-checkpoints.js'
const noLots                          = []
export async function verifyRecords(input             )                        {
  const { checkpoints = [], anchors = [], keys, tenant: only, after, sha256 = portableSha256 } = input
  const tenants = new Map                ()
  const ids = traceIdSet()
  const signed = Map.groupBy(checkpoints, one => one.tenant_id)
  const anchored = Map.groupBy(anchors, one => one.tenant_id)
  function tenantOf(id        )         {
    const found = tenants.get(id)
    if (found !== undefined) return found
    const known = { checkpoints: signed.get(id) ?? [], anchors: anchored.get(id) ?? [] }
    const made = newTenant(id, { ...known, after: id === only ? after : undefined }, sha256)
    tenants.set(id, made)
    return made
  }
  const wanted         = id => tenantOf(id).wanted
  for (const id of [...signed.keys(), ...anchored.keys()]) if (only === undefined || id === only) tenantOf(id)
  const { records } = input
  const stretches = typeof records === 'function' ? records(wanted) : checkedLots(records, { wanted, only, sha256 })
  for await (const stretch of stretches) {
    if (only === undefined || stretch.tenantId === only) joinStretch(tenantOf(stretch.tenantId), stretch, ids)
  }
  let last = ''
  for await (const lot of input.feedback ?? noLots) {
    for (const line of lot) {
      const read = readLine(line.text, FEEDBACK)
      const id = line.tenantId ?? tenantOfLine(read, last)
      if (only !== undefined && id !== only) continue
      last = id
      pushFeedback(tenantOf(id), read, line.columns)
    }
  }
  const reports = []
  for (const tenant of [...tenants.values()].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    reports.push(await conclude(tenant, { keys, sha256, withFeedback: input.feedback !== undefined }))
  }
  return {
    valid: reports.every(({ broken_at }) => broken_at === null),
    records: reports.reduce((sum, { records }) => sum + records, 0),
    tenants: reports,
  }
}
function tenantOfLine({ record }          , last        )         {
  return typeof record?.tenant_id === 'string' ? record.tenant_id : last
}
export async function* checkedLots(
  lots                                      ,
  { wanted, only, sha256 }            ,
)                                 {
  let last = ''
  for await (const lot of lots) {
    const checks = new Map                                         ()
    for (const line of lot) {
      const one = readLine(line.text, TRACE)
      const id = line.tenantId ?? tenantOfLine(one, last)
      if (only !== undefined && id !== only) continue
      last = id
      let check = checks.get(id)
      if (check === undefined) {
        check = stretchCheck(id, wanted(id), sha256)
        checks.set(id, check)
      }
      check.push(line, one)
    }
    for (const { stretch } of checks.values()) yield stretch
  }
}
`,
  "write-queue.js": `class WriteTurnError extends Error {
           name = 'WriteTurnError'
           code = 'SQLITE_BUSY'
}
const LONGEST_WAIT_MS = 10_000
export function writeQueue({ longestWaitMs = LONGEST_WAIT_MS }                             = {}) {
  const waiting                 = []
  let writing = false
  function turn()                {
    if (!writing) {
      writing = true
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const go = () => {
        clearTimeout(late)
        resolve()
      }
      const late = setTimeout(() => {
        waiting.splice(waiting.indexOf(go), 1)
        reject(
          new WriteTurnError(\`The store did not take this write within \${longestWaitMs / 1000} s: try again later.\`),
        )
      }, longestWaitMs)
      waiting.push(go)
    })
  }
  return async function inTurn   (write                  )             {
    await turn()
    try {
      return await write()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else writing = false
    }
  }
}
`,
}

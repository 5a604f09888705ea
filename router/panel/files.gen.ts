// Written by `npx node scripts/panel.ts` from browser/.
export const panelFiles: Readonly<Record<string, string>> = {
  "api.js": `import { readProof } from './read-proof.js'

/** The router did not give what was asked for; the message is for the person at the page. */
export class ApiFault extends Error {
           status
  constructor(status        , message        ) {
    super(message)
    this.name = 'ApiFault'
    this.status = status
  }
}

/** The router's API by addresses relative to the page. */
export function panelApi(key                          ) {
  async function ask   (path        , query        = {}, more              = {})             {
    const given = Object.entries(query).filter((entry)                            => Boolean(entry[1]))
    const secret = key()
    if (secret !== undefined && !/^[\\x21-\\x7e]+$/.test(secret)) {
      throw new ApiFault(401, 'A key has no spaces and no letters beyond ASCII: copy it again.')
    }
    const headers = { ...more.headers, ...(secret !== undefined && { 'x-router-key': secret }) }
    const search = given.length === 0 ? '' : \`?\${new URLSearchParams(given)}\`
    const answer = await fetch(path + search, { ...more, headers, cache: 'no-store' }).catch((cause         ) => {
      if (more.signal?.aborted) throw cause
      throw new ApiFault(0, 'The router does not answer. Is it running?')
    })
    const body = await answer
      .text()
      .then(readProof)
      .catch(() => undefined)
    if (answer.ok && body !== undefined) return body
    throw new ApiFault(answer.status, messageOf(body) ?? \`The router answered \${answer.status} and no words.\`)
  }

  return {
    traces: (query       , signal              ) => ask           ('v1/traces', query, signal && { signal }),
    trace: (id        ) => ask             (\`v1/traces/\${encodeURIComponent(id)}\`),
    explain: (id        ) => ask             (\`v1/traces/\${encodeURIComponent(id)}/explain\`),
    savings: (query       ) => ask         ('v1/savings', query),
    evals: (query       ) => ask       ('v1/evals', query),
    checkpoints: (query       , signal              ) =>
      ask                ('v1/checkpoints', query, signal && { signal }),
    feedbackRecords: (query       , signal              ) =>
      ask              ('v1/feedback/records', query, signal && { signal }),
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

/** Errors of this path have one shape; a proxy in front may answer with another. */
function messageOf(body         )                     {
  if (typeof body !== 'object' || body === null || !('error' in body)) return undefined
  const { error } = body
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined
  return typeof error.message === 'string' ? error.message : undefined
}
`,
  "base.css": `/* What every page of both services looks like; the style sheet of each comes after it. */
:root {
  color-scheme: light dark;
  --page: #f6f7f9;
  --card: #ffffff;
  --text: #1b1f24;
  --quiet: #535b66;
  --line: #d5dae0;
  --edge: #78828e;
  --link: #0b57b8;
  --good: #12693b;
  --bad: #b3261e;
  --warn: #7a4d00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b;
    --card: #1d2126;
    --text: #e8ebee;
    --quiet: #a9b2bd;
    --line: #363d45;
    --edge: #7f8a96;
    --link: #8ab8f5;
    --good: #73cf9b;
    --bad: #ff9a91;
    --warn: #f0c063;
  }
}
* {
  box-sizing: border-box;
}
.notice.bad {
  border-left-color: var(--bad);
}
h2 {
  margin: 0 0 0.75rem;
  font-size: 1.1rem;
}
p {
  margin: 0.4rem 0;
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
.figures {
  display: flex;
  flex-wrap: wrap;
  gap: 0.5rem 2rem;
  margin: 0 0 0.75rem;
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
  font-size: 0.85rem;
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

/** Beyond 255 for what is no digit. */
function digit(code        )         {
  if (code >= 48 && code <= 57) return code - 48
  return code >= 97 && code <= 102 ? code - 87 : 0x100
}

/** Standard base64 with padding (RFC 4648 §4). */
export function toBase64(bytes            )         {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** base64url without padding (RFC 4648 §5). */
export function toBase64Url(bytes            )         {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/**
 * Reads either alphabet, with or without padding. Refuses text whose unused last bits are set: two spellings of one
 * signature would let a receipt be edited without a verifier seeing it.
 */
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

/** The chunks of a body in one piece; their number has no bound, so they come as a list. */
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
  "dom.js": `const SVG = 'http://www.w3.org/2000/svg'

/** An element with its attributes and children. Texts become text nodes, so nothing that is shown can become markup. */
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

/** The element of the page with this selector; it is part of the page, so its absence is a mistake. */
export function part                                 (selector        , within             = document)    {
  const found = within.querySelector   (selector)
  if (found === null) throw new Error(\`the page has no \${selector}\`)
  return found
}

/** The words of a heading and a table below it, whose cells carry their column's name for narrow screens. */
export function table(caption        , columns                   , rows                               )              {
  return el(
    'div',
    // A keyboard can only scroll what it can reach.
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    el(
      'table',
      {},
      el('caption', { class: 'unseen' }, caption),
      el('thead', {}, el('tr', {}, ...columns.map(name => el('th', { scope: 'col' }, name)))),
      el(
        'tbody',
        {},
        ...rows.map(cells => el('tr', {}, ...cells.map((cell, i) => el('td', { 'data-label': columns[i] }, cell)))),
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
  "feedback.js": `import { el } from './dom.js'

const WORDS                                                        = { correct: '✓ Right', incorrect: '✗ Wrong' }

/** Two buttons that report how an answer turned out; the one that was taken last stays pressed. */
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

/** What was reported, oldest first. */
export function reportsOf(feedback                           )              {
  if (feedback.length === 0) return el('p', { class: 'hint' }, 'Nothing has been reported about this answer.')
  const lines = feedback.map(({ ts, reporter, gate_id, verdict }) =>
    el('li', {}, \`\${verdict} (\${gate_id}) by \${reporter}, \${ts}\`),
  )
  return el('ul', {}, ...lines)
}
`,
  "figures.js": `/** Dollars as they are on the receipt: a price that is not known is no number. */
export function usd(value                           )         {
  if (value === null || value === undefined) return 'unknown'
  const size = Math.abs(value)
  const digits = size >= 100 ? 2 : size >= 1 ? 4 : 9
  const [whole = '0', rest = ''] = size.toFixed(digits).split('.')
  const cents = rest.replace(/0+$/, '').padEnd(2, '0')
  return \`\${value < 0 ? '−' : ''}$\${grouped(whole)}.\${cents}\`
}

export function count(value        )         {
  return grouped(String(value))
}

/** A word in the number of what it counts. */
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

/** A time that was taken by clocks of whole milliseconds. */
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

/** The same in every time zone, as it stands on the record. */
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
/** As wide as all calls together are drawn. */
const WIDEST = 22

/**
 * Calls come in from the left on the rung where they begin, go from box to box where an attempt led to another, and go out on the right
 * from the rung that served them.
 */
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
    // What stays on its rung asks another provider, or the same again; the table says how often.
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

/** The picture, and the same as a table for whoever cannot see it. */
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
    el('details', {}, el('summary', {}, 'As a table'), table('From rung to rung', ['From', 'To', 'Answers'], rows)),
  ]
}
`,
  "icon.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><title>Waybill</title><rect width="32" height="32" rx="6" fill="#1f5fbf"/><path d="M8 23h4v-6h4v-5h4V7h4" fill="none" stroke="#fff" stroke-width="3"/></svg>
`,
  "jcs.js": `/** A value that JSON can carry. \`undefined\` members are left out, as JSON.stringify does. */

export class CanonicalError extends TypeError {
           path
  constructor(path        , problem        ) {
    super(\`cannot canonicalise \${path === '' ? 'the value' : path}: \${problem}\`)
    this.name = 'CanonicalError'
    this.path = path
  }
}

/**
 * RFC 8785 (JCS): no white space, keys sorted by UTF-16 code units (§3.2.3), numbers and strings as ECMAScript prints
 * them (§3.2.2). Throws CanonicalError for what I-JSON cannot hold: NaN, infinities, lone surrogates, bigint, functions.
 */
export function canonicalize(value         )         {
  const text = inOrder(value) ? JSON.stringify(value) : write(value)
  if (text !== undefined) return text
  throw problemIn(value, '') ?? new CanonicalError('', 'it changes while it is read')
}

/**
 * Whether the engine's own JSON text is the canonical one: members stand in order, and nothing is there that it would leave out, replace
 * or ask for its form. What is made often is made in order, and then takes half the time, without a string for each part of it.
 */
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
  // Not \`every\`, which passes over what is missing.
  for (let at = 0; at < values.length; at++) if (!inOrder(values[at])) return false
  return true
}

function membersInOrder(value        )          {
  const shape = Object.getPrototypeOf(value)
  // Boxed values and the like have a form of their own in JSON.
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

/** Undefined where there is no form; only then is it worth knowing where, since carrying the path along takes a third of the time. */
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

/** Most objects have few members, or had them in order: \`sort\` would make three more arrays for each of them. */
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

/** The first thing in a value that has no form, and where it stands. */
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
  "members.js": `/** The members that a fixed format has, at every level; below \`true\` anything may stand. */

/** Members whose values are not looked into here. */
function open(names        )          {
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

/** \`payload\` and \`meta\` are free, and under the hash as they are. */
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
    ...open('api prompt_hash body_sha256_in body_sha256_out'),
    features: {
      ...open('requested_model agent subagent task language tool_count image_count has_thinking_history stream'),
      ...open('body_bytes size_bucket message_count max_tokens n'),
    },
  },
  policy: {
    ...open('id start_rung propensity mode_profile explore config_hash price_table_hash overrides'),
    dropped: [open('rung model reason because')],
  },
  attempts: [
    {
      ...open('rung provider model gate verdict cost score usage_source latency_ms ttfb_ms status finish cause'),
      ...open('error_class'),
      gates: [open('gate_id kind verdict score cost latency_ms reason evidence_ref')],
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

/** Where a member stands that the format has not, such as \`events/1/output\`; undefined where there is none. */
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
  "overview.js": `import { el, svg, table } from './dom.js'
import { count, many, milliseconds, percent, usd } from './figures.js'

/** Which rung served how much, and what made calls move. */
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
  return [table('Gate outcomes', ['Gate', 'Outcomes', 'Pass', 'Fail', 'Abstain', 'p50', 'p95', 'Cost'], rows)]
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
    table('Calibration by route', ['Route', 'Tenant', 'State', 'n', 'Threshold', 'Method'], rows),
    hint('n of m: the reported outcomes, and the fewest that can certify a route if none of them failed.'),
    ...notes(states),
  ]
}

/** What is certified, and what cannot be, in the words of the service. */
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

/** A bar of parts of a whole; the numbers stand beside it. */
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
  --saved: #2a8f5b;
  --lost: #cf4238;
  --none: #a7afb9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --saved: #4cb47d;
    --lost: #e66a60;
    --none: #6b7580;
  }
}
body {
  margin: 0;
  background: var(--page);
  color: var(--text);
  font:
    15px / 1.5 system-ui,
    sans-serif;
}
header,
main {
  max-width: 78rem;
  margin: 0 auto;
  padding: 0.75rem 1rem;
}
header,
.row,
.tools,
#filter {
  display: flex;
  flex-wrap: wrap;
  gap: 0.5rem 0.75rem;
  align-items: center;
}
header,
.between {
  justify-content: space-between;
}
main {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
  gap: 1rem;
  padding-bottom: 3rem;
}
noscript,
.wide,
.notice {
  grid-column: 1 / -1;
}
.card,
.notice {
  min-width: 0;
  padding: 1rem;
  border: 1px solid var(--line);
  border-radius: 8px;
  background: var(--card);
}
.notice {
  margin: 0;
  border-left: 4px solid var(--link);
}
h1 {
  margin: 0;
  font-size: 1.3rem;
}
h1 small,
.hint,
dt,
figcaption {
  color: var(--quiet);
}
h1 small {
  font-weight: normal;
  font-size: 0.9rem;
}
h3 {
  margin: 1.25rem 0 0.5rem;
  font-size: 1rem;
}
h4 {
  margin: 0 0 0.5rem;
  font-size: 0.95rem;
  overflow-wrap: anywhere;
}
.mono,
pre,
code {
  font-family: ui-monospace, monospace;
  font-size: 0.9em;
  overflow-wrap: anywhere;
  white-space: pre-wrap;
}
button,
input,
select {
  padding: 0.35rem 0.6rem;
  border: 1px solid var(--edge);
  border-radius: 5px;
  background: var(--card);
  color: var(--text);
  font: inherit;
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
  padding: 0.1rem 0.5rem;
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
  padding: 0.5rem;
  background: var(--card);
  color: var(--link);
}
.figures dd {
  margin: 0;
  font-size: 1.25rem;
  font-weight: 600;
}
.facts {
  display: grid;
  grid-template-columns: minmax(8rem, max-content) 1fr;
  gap: 0.15rem 1rem;
  margin: 0.5rem 0;
}
.chart {
  display: block;
  width: 100%;
  height: 9rem;
}
figure {
  margin: 0.75rem 0;
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
  border-radius: 3px;
  background: var(--line);
}
.flow {
  display: block;
  width: 100%;
  max-width: 26rem;
  font-size: 12px;
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
  margin: 0 0 0.5rem;
  padding: 0;
  list-style: none;
}
.bars li {
  display: grid;
  grid-template-columns: 4.5rem 1fr minmax(7rem, max-content);
  gap: 0.75rem;
  align-items: center;
}
th,
td {
  padding: 0.35rem 0.6rem 0.35rem 0;
  border-bottom: 1px solid var(--line);
  text-align: left;
  vertical-align: middle;
}
td {
  overflow-wrap: break-word;
}
.feedback {
  display: inline-flex;
  gap: 0.4rem;
}
.attempt {
  margin-bottom: 0.75rem;
  padding: 0.75rem;
  border: 1px solid var(--line);
  border-radius: 6px;
}
#filter,
#find {
  margin-bottom: 0.75rem;
}
#find-id {
  flex: 1 1 12rem;
  max-width: 30rem;
  min-width: 0;
}
/* Wherever the page is scrolled to: what was said is about the row that was just pressed. */
.said:not(:empty) {
  position: sticky;
  top: 0.5rem;
  bottom: 0.5rem;
  z-index: 1;
  padding: 0.5rem 0.75rem;
  border: 1px solid var(--edge);
  border-radius: 5px;
  background: var(--card);
}
#problem {
  position: sticky;
  top: 0.5rem;
  z-index: 2;
}
.pages {
  margin-top: 0.75rem;
}
.verdict {
  margin-top: 0.75rem;
}
dialog {
  width: min(60rem, calc(100vw - 1.5rem));
  max-height: calc(100vh - 2rem);
  padding: 1rem;
  border: 1px solid var(--edge);
  border-radius: 8px;
  background: var(--card);
  color: var(--text);
}
dialog h2 {
  margin: 0;
}
@media (max-width: 44rem) {
  /* A row becomes a card: each cell stands behind the name of its column. */
  thead {
    display: none;
  }
  tr {
    display: block;
    padding: 0.5rem 0;
    border-bottom: 1px solid var(--line);
  }
  td {
    display: grid;
    grid-template-columns: 7rem 1fr;
    gap: 0.5rem;
    padding: 0.1rem 0;
    border: 0;
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
    margin-bottom: 0.4rem;
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
import { ApiFault, panelApi } from './api.js'
import { flowView } from './flow.js'
import { calibrationView, gatesView, ladderView } from './overview.js'
import { savingsView } from './savings-chart.js'
import { sessionKey } from './session-key.js'
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

/** Where a key would help the person is asked for one; anything else is said as it is. */
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

const detail = traceDetail({ api, failed })
const open = (id        ) => void detail.open(id)
const list = traceList({ api, open, said, failed })
verifyView({ api, open, failed })

function since()                     {
  if (period.value === '') return undefined
  return new Date(Date.now() - (Number(period.value) - 1) * DAY_MS).toISOString().slice(0, 10)
}

async function showFigures()                {
  const window = { since: since() }
  const savings = await api.savings({ ...window, group: 'day' })
  bodyOf('savings').replaceChildren(...savingsView(savings))
  const evals = await api.evals(window)
  bodyOf('ladder').replaceChildren(...ladderView(evals), ...flowView(evals))
  bodyOf('gates').replaceChildren(...gatesView(evals.gates))
  bodyOf('calibration').replaceChildren(...calibrationView(evals.calibration))
}

/** What to do where nothing has come through yet. */
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
    // The list first: it is one question however long the history is, and the sums behind it are not.
    const any = await list.show()
    keyForm.hidden = true
    part('#empty').hidden = any
    part('#empty').replaceChildren(...(any ? [] : firstSteps()))
    performance.mark('traces-shown')
    await showFigures()
    performance.mark('figures-shown')
  } catch (error) {
    failed(error)
  } finally {
    main.removeAttribute('aria-busy')
  }
}

/** Nothing that another key has shown stays on the page. */
function useKey(value                    )       {
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
period.addEventListener('change', () => void showFigures().catch(failed))
part('#find').addEventListener('submit', event => {
  event.preventDefault()
  open(part                  ('#find-id').value.trim())
})
void load()
`,
  "read-json.js": `/**
 * Reads JSON text. It throws what JSON.parse throws.
 *
 * The engine's reader can give a wrong name to a member: it takes the characters of an escaped name as they are written for a name that
 * objects of the same shape have had ("L\\n" is read as \`L\\\`; nodejs/node issue 63785). What an escaped name is read as would then depend
 * on what was read before, and hashes and signatures with it. A text that holds such a name is read here.
 */
export function readJson(text        )          {
  const value          = JSON.parse(text)
  return escapedName.test(text) ? rebuilt(text) : value
}

/** The last escape of a string, its end and a colon. It also matches inside of some strings, which costs time and nothing else. */
const escapedName = /\\\\.[^"\\\\]*"[ \\t\\r\\n]*:/

/** What a walk over a text comes by; either may throw. */

/** The value of a text that is JSON: the engine reads the scalars and the names, each by itself. */
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
      passed?.member(parent, name)
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
      passed?.scalar(value, written)
      put(value)
      at = end
    }
  }
  return root
}

/** An assignment to __proto__ would set the prototype instead of a member. */
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

/** A text of which two readers may read two things, so that no signature over it says which was meant. */
export class ProofTextError extends Error {
           name = 'ProofTextError'
           reason
  constructor(reason           , message        , options               ) {
    super(message, options)
    this.reason = reason
  }
}

/**
 * Reads the JSON text of a proof (docs/spec/proof.md, "Strict reading"): a name stands once in its object, a number is written as RFC 8785
 * writes it, and no text holds half of a surrogate pair. Then every reader that takes the text at all reads the same.
 */
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

/** The same of bytes; what is not UTF-8 is no JSON. */
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

/** An escape that may be half of a pair. */
const HALF = /\\\\u[dD][89a-fA-F]/

/** What the engine writes for the value is the text: nothing was lost in reading it. Most proofs come as they were written. */
function saysItself(value         , text        )          {
  if (HALF.test(text) || !text.isWellFormed()) return false
  try {
    return JSON.stringify(value) === text.trim()
  } catch {
    // Nested deeper than the engine writes.
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
  "record-hash.js": `import { toHex, utf8 } from './bytes.js'
import { canonicalize } from './jcs.js'

/** Lower-hex SHA-256 of the canonical record without its \`hash\` (router contract §1.2); undefined for what has no canonical form. */
export async function recordHash(record         )                              {
  if (typeof record !== 'object' || record === null) return undefined
  const { hash: _own, ...body } = record
  let text
  try {
    text = canonicalize(body)
  } catch {
    return undefined
  }
  return sha256(text)
}

export async function sha256(text        )                  {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', utf8(text))))
}
`,
  "savings-chart.js": `import { el, svg, table } from './dom.js'
import { many, percent, usd } from './figures.js'

const [WIDTH, HEIGHT] = [800, 160]
const DAY_MS = 86_400_000
/** Beyond this many days a bar would be thinner than a pixel on a phone. */
const MOST_BARS = 366

/** The sums and a bar for each day; below it the same as a table, for whoever cannot see bars. */
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
      table('Savings by day', ['Day (UTC)', 'Calls', 'Spent', 'Saved'], rows),
    ),
  ]
}

/** Days without a call are days too. */
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
  // The words stand outside: inside they would be stretched with the bars.
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

/** The key for as long as the tab is open: in memory, and in the session storage so that a reload keeps it. */
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

/** A browser that is told to store nothing throws; the key is then in memory only. */
function tried   (what         )                {
  try {
    return what()
  } catch {
    return undefined
  }
}
`,
  "trace-detail.js": `import { el, part, table } from './dom.js'
import { count, milliseconds, usd } from './figures.js'

import { feedbackButtons, reportsOf } from './feedback.js'

/** Everything that a record says, in a dialog: Escape closes it and the focus goes back to where it was. */
export function traceDetail({ api, failed }            ) {
  const dialog = part                   ('#detail')
  let wanted = ''

  async function open(id        )                {
    wanted = id
    try {
      const [detail, why] = await Promise.all([api.trace(id), api.explain(id)])
      // Another one was asked for while this one was read.
      if (wanted !== id) return
      dialog.replaceChildren(...content(detail, why))
      if (!dialog.open) dialog.showModal()
    } catch (error) {
      dialog.close()
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

  // A click beside the dialog closes it.
  dialog.addEventListener('click', event => {
    if (event.target === dialog) dialog.close()
  })
  return { open }
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
      ['Gates said', score === null ? gate : \`\${gate}, score \${score}\`],
      ['Tokens', \`\${count(input)} in\${cached}, \${count(tokens.output)} out (\${usage_source})\`],
      ['Cost', usd(cost)],
      ['Answer', \`\${status ?? 'no status'}\${finish === null ? '' : \`, \${finish}\`}, \${milliseconds(latency_ms)}\`],
    ]),
    gates.length > 0 &&
      table(\`Gates of attempt \${i + 1}\`, ['Gate', 'Kind', 'Verdict', 'Score', 'Cost', 'Time', 'Reason'], gates),
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
  "trace-list.js": `import { el, part, table } from './dom.js'
import { moment, usd } from './figures.js'

import { feedbackButtons } from './feedback.js'

const COLUMNS = ['Time', 'Route', 'Served by', 'From', 'Attempts', 'Cost', 'Saved', 'Outcome']
const PAGE = '50'

/** A page of traces and the older ones behind a button: however long the history is, the first page is one question. */
export function traceList({ api, open, said, failed }               ) {
  const body = part('#traces > .body')
  const older = part                   ('#older')
  const filter = part                 ('#filter')
  let next                = null
  /** Answers of a question that was asked before the last one are late. */
  let asked = 0

  function query()                         {
    const given = [...new FormData(filter)].map(([name, value])                   => [name, String(value).trim()])
    return Object.fromEntries(given.filter(([, value]) => value !== ''))
  }

  function row(trace             ) {
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

  /** The newest traces that the filter lets through; resolves to whether there is any trace at all. */
  async function show()                   {
    const turn = ++asked
    const wanted = query()
    const page = await api.traces({ ...wanted, limit: PAGE })
    if (turn !== asked) return true
    next = page.next
    older.hidden = next === null
    const none = page.traces.length === 0
    const filtered = Object.keys(wanted).length > 0
    const words = filtered
      ? 'No trace matches. Clear the filter to see all.'
      : 'Each call that comes through stands here.'
    body.replaceChildren(
      none ? el('p', { class: 'hint' }, words) : table('Traces, newest first', COLUMNS, page.traces.map(row)),
    )
    return !none || filtered
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
    // The keyboard goes on where the new rows begin.
    rows[0]?.querySelector('button')?.focus()
  }

  const shown = (work                        ) => () => void work().catch(failed)
  filter.addEventListener('submit', event => {
    event.preventDefault()
    shown(show)()
  })
  // The fields have their first values only after this event, and after what it leaves to do.
  filter.addEventListener('reset', () => setTimeout(shown(show)))
  older.addEventListener('click', shown(showOlder))
  return { show }
}
`,
  "verify-chains.js": `import { CHECKPOINT, TRACE, unknownMember } from './members.js'
import { fromBase64, toHex, utf8 } from './bytes.js'
import { canonicalize } from './jcs.js'

import { recordHash, sha256 } from './record-hash.js'
import {                                  walkChain } from './walk-chain.js'
import {                    walkFeedback } from './walk-feedback.js'

/** Where the records come from: the router's own API. What it says is taken for nothing but what it is to be checked against. */

const GENESIS = '0'.repeat(64)
/** Of a checkpoint's signed bytes (router contract §1.3); shared/wire says it too, together with all of its schemas. */
const DOMAIN = 'router-checkpoint-v1\\n'
const UNSUPPORTED = Symbol('no Ed25519')

/** Re-derives every chain that the source shows, and holds it against its checkpoints. */
export async function verifyChains(
  source             ,
  { onRecords, signal }              = {},
)                          {
  // Before the records: what a checkpoint names was in the store by then.
  const signed = Map.groupBy(await allCheckpoints(source, signal), one => one.tenant_id)
  const keys = await importKeys(await source.keys())
  const read = await readLinks(source, { onRecords, signal })
  const reports = await allFeedback(source, signal)
  // After them: what was pruned meanwhile is not missing.
  const pruned = Map.groupBy(
    (await allCheckpoints(source, signal)).filter(({ kind }) => kind === 'prune'),
    one => one.tenant_id,
  )
  const tenants = [...new Set([...signed.keys(), ...read.keys(), ...reports.keys()])].sort()
  return Promise.all(
    tenants.map(tenant => {
      const checkpoints = signed.get(tenant) ?? []
      const { links = [], settled = -1 } = read.get(tenant) ?? {}
      const cut = pruned.get(tenant)?.at(-1)
      const start = cut === undefined ? { seq: -1, hash: GENESIS } : { seq: cut.seq, hash: cut.hash }
      const known = Math.max(settled, ...checkpoints.map(({ seq }) => seq))
      const walk = walkChain(links, start, known)
      return conclude({
        tenant,
        checkpoints,
        start,
        walk,
        keys,
        hashes: new Map(links.map(one => [one.seq, one.hash])),
        feedback: walkFeedback(
          reports.get(tenant) ?? [],
          cut === undefined ? start : { seq: cut.feedback_seq, hash: cut.feedback_hash },
          checkpoints,
        ),
      })
    }),
  )
}

async function conclude({ tenant, checkpoints, start, walk, keys, hashes, feedback }          )                        {
  let previous = GENESIS
  let last = start.seq
  let broken                         = walk.broken
  let signatures                             = checkpoints.length === 0 ? 'none' : 'checked'
  const keyIds = new Set        ()
  for (const checkpoint of checkpoints) {
    const signature = await isSigned(checkpoint, keys)
    if (signature === UNSUPPORTED) signatures = 'unsupported'
    const reason =
      signature === false
        ? 'checkpoint_signature'
        : checkpoint.prev_checkpoint !== previous
          ? 'checkpoint_link'
          : headFault(checkpoint, { start, walk, hashes })
    if (reason !== undefined) {
      const index = Math.min(Math.max(0, checkpoint.seq - start.seq - 1), walk.records)
      if (broken === undefined || index < broken.index) broken = { index, reason }
      break
    }
    previous = await sha256(signedText(checkpoint))
    last = Math.max(last, checkpoint.seq)
    keyIds.add(checkpoint.key_id)
  }
  const { reports, broken: reported } = await feedback
  // A break of the records themselves is told first, as \`router verify\` does.
  broken ??= reported
  return {
    tenant,
    records: walk.records,
    reports,
    ...(broken && { broken }),
    unanchored: Math.max(0, walk.head.seq - last),
    checkpoints: checkpoints.length,
    signatures,
    keyIds: [...keyIds],
    late: walk.late,
  }
}

/** Whether the chain has, at its place, the head that was signed. Behind a break of the chain nothing more is said. */
function headFault({ seq, hash }            , { start, walk, hashes }                                             ) {
  if (seq < start.seq || seq < 0) return undefined
  if (seq === start.seq) return hash === start.hash ? undefined : 'checkpoint_head'
  if (seq > walk.head.seq) return walk.broken === undefined ? 'tail_cut' : undefined
  return hashes.get(seq) === hash ? undefined : 'checkpoint_head'
}

async function readLinks(source             , { onRecords, signal }             )                                   {
  const tenants = new Map                    ()
  let records = 0
  let tenant = ''
  let next = source.traces(undefined)
  for (let first = true; ; first = false) {
    const page = await next
    signal?.throwIfAborted()
    // The router reads the next page while this one is hashed.
    if (page.next !== null) next = source.traces(page.next)
    const hashed = await Promise.all(page.traces.map(toLink))
    for (const [i, link] of hashed.entries()) {
      // A record whose tenant does not read belongs to the chain it stands in.
      tenant = memberOf(page.traces[i], 'tenant_id') ?? tenant
      const known = tenants.get(tenant) ?? { links: [], settled: -1 }
      tenants.set(tenant, known)
      known.links.push(link)
      if (first && link.holds && link.seq > known.settled) known.settled = link.seq
    }
    records += hashed.length
    onRecords?.(records)
    if (page.next === null) return tenants
  }
}

async function toLink(record         )                {
  const hash = memberOf(record, 'hash') ?? ''
  const seq = typeof record === 'object' && record !== null && 'seq' in record ? record.seq : undefined
  return {
    traceId: memberOf(record, 'trace_id') ?? '',
    seq: typeof seq === 'number' && Number.isSafeInteger(seq) ? seq : Number.NaN,
    prev: memberOf(record, 'prev_hash') ?? '',
    hash,
    holds: hash !== '' && unknownMember(record, TRACE) === undefined && (await recordHash(record)) === hash,
  }
}

function memberOf(record         , name        )                     {
  if (typeof record !== 'object' || record === null) return undefined
  const value = (record                           )[name]
  return typeof value === 'string' ? value : undefined
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

/** By the tenant whose row each stands in, whatever it says itself. */
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

function signedText({ sig: _sig, ...body }            )         {
  return DOMAIN + canonicalize(body)
}

async function importKeys({ keys }            )                {
  const imported = new Map                                        ()
  for (const { key_id, public_key } of keys) {
    try {
      const raw = fromBase64(public_key)
      // The id is taken from the key, so that a listed one cannot lend its name to another.
      if ((await digestOf(raw)).slice(0, 16) !== key_id) continue
      imported.set(key_id, await crypto.subtle.importKey('raw', raw, { name: 'Ed25519' }, false, ['verify']))
    } catch (error) {
      if (error instanceof DOMException && error.name === 'NotSupportedError') imported.set(key_id, UNSUPPORTED)
    }
  }
  return imported
}

async function digestOf(bytes                         )                  {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

async function isSigned(checkpoint            , keys      )                                        {
  if (unknownMember(checkpoint, CHECKPOINT) !== undefined) return false
  const key = keys.get(checkpoint.key_id)
  if (key === undefined || key === UNSUPPORTED) return key ?? false
  try {
    return await crypto.subtle.verify(
      { name: 'Ed25519' },
      key,
      fromBase64(checkpoint.sig),
      utf8(signedText(checkpoint)),
    )
  } catch {
    return false
  }
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

/** The button that checks the chain without trusting the router to do so. */
export function verifyView({ api, open, failed }            )       {
  const [button, stop] = [part('#verify'), part('#stop-verify')]
  const shown = part('#verified')
  let running

  async function verify()                {
    // A page over plain HTTP from another machine has no cryptography (W3C Secure Contexts).
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
    unsupported: \`This browser has no Ed25519: the signatures of \${many(checkpoints, 'checkpoint')} were not checked, their heads were.\`,
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
  "walk-chain.js": `/** What the check keeps of a record: a chain of 100,000 is about 30 MB. */

/**
 * Walks one chain in the order of its numbers: lists come by time, and a long call is sealed after shorter ones that began later. A gap up
 * to \`settled\`, which was in the store before the reading began, is a break; one behind it may be a record that came meanwhile.
 */
export function walkChain(links                 , start      , settled        )       {
  const ids = new Set        ()
  let head = start
  let index = 0
  const records = inOrder(links, start.seq)
  for (const link of records) {
    if (link.seq > head.seq + 1 && head.seq >= settled && link.holds) {
      return { records: index, head, late: records.length - index }
    }
    const reason = fault(link, head, ids)
    if (reason !== undefined) {
      // What is missing has no id: the record that stands in its place is another one.
      const missing = reason === 'seq' && link.seq > head.seq + 1
      const broken = { index, reason, ...(!missing && { traceId: link.traceId }) }
      return { records: records.length, broken, head, late: 0 }
    }
    head = { seq: link.seq, hash: link.hash }
    index++
  }
  return { records: records.length, head, late: 0 }
}

function fault(link      , head      , ids             )                     {
  if (link.seq !== head.seq + 1) return 'seq'
  if (link.prev !== head.hash) return 'prev_hash'
  if (!link.holds) return 'hash'
  if (ids.has(link.traceId)) return 'trace_id'
  ids.add(link.traceId)
  return undefined
}

/**
 * By number. One that does not read, or that a record claims whose hash does not hold though another one has it rightly, comes last: the
 * place where such a record belongs shows as a gap, and one that belongs nowhere as a record too many.
 */
function inOrder(links                 , start        )         {
  const sound = new Set(links.filter(({ holds }) => holds).map(({ seq }) => seq))
  const isLost = ({ seq, holds }      ) => Number.isNaN(seq) || (!holds && (seq <= start || sound.has(seq)))
  const place = (link      ) => (isLost(link) ? Number.MAX_VALUE : link.seq)
  return links.filter(({ seq, holds }) => !(seq <= start && holds)).sort((a, b) => place(a) - place(b))
}
`,
  "walk-feedback.js": `import { FEEDBACK, unknownMember } from './members.js'

import { recordHash } from './record-hash.js'

/** Walks the reports of one tenant in their order, and holds them against what signed checkpoints name of them. */
export async function walkFeedback(
  records                    ,
  start      ,
  checkpoints                                                               ,
)                        {
  let head = start
  const hashes = new Map                ()
  // What was pruned while this was read is still in what was read before.
  const left = records.filter(record => !(numberOf(record) <= start.seq))
  for (const [index, record] of left.entries()) {
    const reason = await fault(record, head)
    if (reason !== undefined) return { reports: left.length, broken: { index, reason: \`feedback_\${reason}\` } }
    const { hash } = record
    head = { seq: head.seq + 1, hash }
    hashes.set(head.seq, hash)
  }
  const from = start.seq + 1
  for (const { feedback_seq, feedback_hash } of checkpoints) {
    if (feedback_seq < from) continue
    const found = hashes.get(feedback_seq)
    if (found === undefined) {
      return { reports: left.length, broken: { index: head.seq + 1 - from, reason: 'feedback_tail_cut' } }
    }
    if (found !== feedback_hash) {
      return { reports: left.length, broken: { index: feedback_seq - from, reason: 'feedback_head' } }
    }
  }
  return { reports: left.length }
}

async function fault(record         , head      )                              {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return 'parse'
  // It has no canonical form, and that is the only reason for it.
  const own = await recordHash(record)
  if (own === undefined) return 'lone_surrogate'
  if (unknownMember(record, FEEDBACK) !== undefined) return 'unknown_member'
  const { seq, prev_hash, hash } = record
  if (seq !== head.seq + 1) return 'seq'
  if (prev_hash !== head.hash) return 'prev_hash'
  return hash === own ? undefined : 'hash'
}

function numberOf(record         )         {
  const seq = typeof record === 'object' && record !== null && 'seq' in record ? record.seq : undefined
  return typeof seq === 'number' ? seq : Number.NaN
}
`,
}

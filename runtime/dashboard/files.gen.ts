// Written by `npm run generate` from browser/.
export const dashboardFiles: Readonly<Record<string, string>> = {
  "approvals.js": `import { part } from './dom.js'
import { many } from './figures.js'
import { askFirst } from './ask-first.js'
import { sendEach } from './send-each.js'
const boxes = () => [...document.querySelectorAll                  ('[data-choose]')]
const chosen = () => boxes().filter(box => box.checked)
function showBulk()       {
  const all = chosen()
  part('#bulk').hidden = all.length === 0
  part('#bulk-count').replaceChildren(\`\${many(all.length, 'decision')} chosen\`)
}
function chooseNone()       {
  for (const box of boxes()) {
    box.checked = false
    delete box.dataset.typed
  }
  showBulk()
}
async function decide(verb                      , done        , sure        )                {
  const ids = chosen().map(({ dataset }) => dataset.choose ?? '')
  if (!(await askFirst(sure.replace('{n}', many(ids.length, 'decision'))))) return
  chooseNone()
  await sendEach({ ids, path: id => \`ui/api/v1/approvals/\${id}/\${verb}\`, one: 'decision', done })
}
document.addEventListener('change', event => {
  if (event.target instanceof HTMLInputElement && event.target.dataset.choose !== undefined) showBulk()
})
document.addEventListener('refreshed', showBulk)
part('#bulk-approve').addEventListener('click', () =>
  decide('approve', 'approved', 'Approve {n}? What each asks for is done at once.'),
)
part('#bulk-reject').addEventListener('click', () =>
  decide('reject', 'rejected', 'Reject {n}? Most runs fail by that.'),
)
part('#bulk-none').addEventListener('click', chooseNone)
`,
  "ask-first.js": `import { el } from './dom.js'
export function askFirst(words        , yes = 'Yes, do it')                   {
  const sure = el('button', { class: 'main', value: 'yes' }, yes)
  const dialog = el(
    'dialog',
    { class: 'ask', 'aria-labelledby': 'ask-words' },
    el(
      'form',
      { method: 'dialog' },
      el('p', { id: 'ask-words' }, words),
      el('div', { class: 'row' }, sure, el('button', { value: 'no' }, 'Rather not')),
    ),
  )
  document.body.append(dialog)
  dialog.showModal()
  sure.focus()
  return new Promise(resolve => {
    dialog.addEventListener('close', () => {
      resolve(dialog.returnValue === 'yes')
      dialog.remove()
    })
  })
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
  "chat.js": `import { el, part } from './dom.js'
import { money } from './figures.js'
import { root, send } from './page-api.js'
import { refresh } from './refresh.js'
import { textView } from './text-view.js'
const page = part('#session')
const at = \`ui/api/v1/sessions/\${page.dataset.session}\`
const pending = part('#pending')
const form = document.querySelector                 ('#say')
const writing = new Map                     ()
function answerOf(turnId        )              {
  const known = writing.get(turnId)
  if (known !== undefined) return known
  const text = el('li', { class: 'assistant', 'aria-live': 'polite' })
  pending.append(text)
  writing.set(turnId, text)
  return text
}
function listen()       {
  const stream = new EventSource(\`\${root}\${at}/events\`)
  const on =    (name        , act                   ) =>
    stream.addEventListener(name, message => act(JSON.parse((message                        ).data)     ))
  on                                                ('message_delta', ({ turnId, seq, delta }) => {
    const text = answerOf(turnId)
    if (seq === 1) text.replaceChildren()
    text.append(delta)
    text.scrollIntoView({ block: 'nearest' })
  })
  on                                                                               ('message_completed', end => {
    const { turnId, text, usage, finish } = end
    const cut = finish === 'truncated' ? ', cut off' : finish === 'refused' ? ', refused' : ''
    answerOf(turnId).replaceChildren(textView(text), el('small', {}, \`\${money(usage.costUsd)}\${cut}\`))
    void done()
  })
  on                                                 ('message_error', ({ turnId, error, code }) => {
    answerOf(turnId).replaceChildren(el('span', { class: 'bad' }, \`\${code}: \${error}\`))
  })
  on('session_stopped', () => {
    stream.close()
    void done()
  })
}
async function done()                {
  await refresh()
  pending.replaceChildren()
  writing.clear()
}
let unrecorded
const lastTurn = ()                     =>
  [...document.querySelectorAll             ('#talk li.user')].at(-1)?.dataset.turn
document.addEventListener('refreshed', () => {
  if (unrecorded === undefined || lastTurn() === unrecorded.after) return
  unrecorded.own.remove()
  unrecorded = undefined
})
form?.addEventListener('submit', async event => {
  event.preventDefault()
  const field = part                     ('textarea', form)
  const content = field.value
  if (content.trim() === '') return
  const said = part('output', form)
  said.replaceChildren()
  const own = el('li', { class: 'user' }, textView(content))
  pending.append(own)
  unrecorded = { own, after: lastTurn() }
  field.value = ''
  delete field.dataset.typed
  try {
    const { status } = await send       ('POST', \`\${at}/messages\`, { content })
    if (status === 'completed') await done()
    else await refresh()
  } catch (error) {
    own.remove()
    unrecorded = undefined
    field.value = content
    said.replaceChildren(
      el('span', { class: 'bad', role: 'alert' }, error instanceof Error ? error.message : String(error)),
    )
  }
  field.focus()
})
form?.addEventListener('keydown', event => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault()
    form.requestSubmit()
  }
})
if (page.dataset.over === undefined) listen()
`,
  "complete-names.js": `import { el } from './dom.js'
import {                  completionAt } from './completion.js'
const MOST = 12
export function completeNames(editor                     , members                   )       {
  const list = el('ul', {
    class: 'completion plain',
    id: 'completion',
    role: 'listbox',
    tabindex: 0,
    'aria-label': 'What can stand here',
    hidden: true,
  })
  editor.after(list)
  let found
  let at = 0
  function close()       {
    found = undefined
    list.hidden = true
    editor.removeAttribute('aria-activedescendant')
  }
  function draw()       {
    found = completionAt(editor.value, editor.selectionStart, members)
    if (found === undefined) {
      close()
      return
    }
    const options = found.options.slice(0, MOST)
    at = Math.min(at, options.length - 1)
    list.replaceChildren(
      ...options.map(({ words, about }, i) => {
        const item = el(
          'li',
          { id: \`completion-\${i}\`, role: 'option', 'aria-selected': String(i === at) },
          el('code', {}, words),
          ' ',
          el('small', {}, about),
        )
        item.addEventListener('mousedown', event => {
          event.preventDefault()
          take(i)
        })
        return item
      }),
    )
    list.hidden = false
    editor.setAttribute('aria-controls', list.id)
    editor.setAttribute('aria-activedescendant', \`completion-\${at}\`)
  }
  function take(nth        )       {
    const option = found?.options[nth]
    if (found === undefined || option === undefined) return
    editor.setRangeText(option.text, found.from, found.to, 'end')
    close()
    editor.dispatchEvent(new Event('input', { bubbles: true }))
  }
  editor.addEventListener('input', event => {
    if (!(event instanceof InputEvent)) return
    at = 0
    const isBegun = /"[\\w-]*$/.test(editor.value.slice(0, editor.selectionStart))
    if (isBegun || found !== undefined) draw()
  })
  editor.addEventListener('keydown', event => {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault()
      at = 0
      draw()
      return
    }
    if (found === undefined) return
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) at = (at + by + list.children.length) % list.children.length
    else if (event.key === 'Enter') take(at)
    else if (event.key === 'Escape') close()
    else return
    event.preventDefault()
    if (by !== undefined) draw()
  })
  editor.addEventListener('blur', close)
}
`,
  "completion.js": `export function completionAt(text        , caret        , members                   )                         {
  const place = placeAt(text, caret)
  if (place === undefined) return undefined
  const { path, from, typed, isValue } = place
  let here = members
  for (const name of isValue ? path.slice(0, -1) : path) {
    const found = here.find(one => one.name === name)
    if (found === undefined) return undefined
    here = found.inside
  }
  const to = caret + /^[\\w-]*"?/.exec(text.slice(caret)) [0].length
  const begins = (word        ) => word.replaceAll('"', '').startsWith(typed)
  const own = here.find(({ name }) => name === path.at(-1))
  const options = isValue
    ? (own?.values ?? []).filter(begins).map(value => ({ text: value, words: value, about: '' }))
    : here
        .filter(({ name }) => begins(name))
        .map(({ name, about }) => {
          const isNamed = /^\\s*:/.test(text.slice(to))
          return { text: \`"\${name}"\${isNamed ? '' : ': '}\`, words: name, about }
        })
  return options.length === 0 ? undefined : { from, to, options }
}
function placeAt(text        , caret        )                    {
  const levels          = []
  let name
  let isValue = false
  let at = 0
  while (at < caret) {
    const letter = text[at]
    if (letter === '"') {
      const end = endOfString(text, at)
      if (end >= caret) return placeOfWord(at, text.slice(at + 1, caret))
      if (!isValue && !levels.at(-1)?.isList) name = text.slice(at + 1, end)
      at = end + 1
      continue
    }
    if (letter === '{' || letter === '[') {
      levels.push({ name, isList: letter === '[' })
      name = undefined
      isValue = false
    } else if (letter === '}' || letter === ']') {
      name = levels.pop()?.name
    } else if (letter === ':') isValue = true
    else if (letter === ',') {
      isValue = false
      name = undefined
    }
    at++
  }
  const word = /[\\w-]*$/.exec(text.slice(0, caret)) [0]
  return placeOfWord(caret - word.length, word)
  function placeOfWord(from        , typed        )                    {
    if (levels.length === 0 || typed.includes('\\n')) return undefined
    const isItem = levels.at(-1)?.isList === true
    const above = levels.slice(1).flatMap(level => (level.name === undefined ? [] : [level.name]))
    if (isItem) return undefined
    return { path: isValue ? [...above, name ?? ''] : above, from, typed, isValue }
  }
}
function endOfString(text        , from        )         {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\\\') at++
    else if (text[at] === '"') return at
    else if (text[at] === '\\n') return text.length
  }
  return text.length
}
`,
  "conversation-view.js": `import { el } from './dom.js'
import { count, many, usd } from './figures.js'
import { copyButton } from './copy-button.js'
import { visible } from './foreign-text.js'
import { jsonView, lazyFold, textView } from './text-view.js'
const AT_ONCE = 40
const WITHOUT                                                                = {
  not_stored: 'This agent keeps no prompts (privacy.storePrompts is false), so there is no conversation to show.',
  program: 'The program of a code agent wrote this request; the journal has its digest alone.',
  deleted: 'What this request is rebuilt from was deleted.',
  unknown: 'The journal does not lead to this request.',
}
export function conversationView(told             , links                   )                {
  const { request, answer, without, failures, copiedFrom, step } = told
  return [
    ...(copiedFrom
      ? [
          el(
            'p',
            { class: 'hint' },
            'A copy; made by ',
            el('a', { href: links.runPage(copiedFrom.runId) }, 'another run'),
            '.',
          ),
        ]
      : []),
    ...(without ? [el('p', { class: 'notice' }, WITHOUT[without])] : []),
    ...failures.map(({ attempt, code, error, costUsd }) =>
      el(
        'p',
        { class: 'notice bad' },
        el('strong', {}, \`Attempt \${attempt}: \${visible(code)}\`),
        \` \${visible(error)}\`,
        costUsd > 0 && \` (\${usd(costUsd)})\`,
      ),
    ),
    ...(request ? conversation(request, links) : []),
    ...(answer ? [answerView(answer, step)] : []),
  ]
}
function conversation(request         , links                   )                {
  const { exact, system, tools, toolsOmitted = 0, toolTokens, toolsCached } = request
  return [
    ...(exact
      ? []
      : [
          el(
            'p',
            { class: 'notice' },
            'This is not certain to be what was sent: its digest is not the one that was recorded before the call.',
          ),
        ]),
    ...(tools.length === 0
      ? []
      : [
          lazyFold(
            titled(many(tools.length + toolsOmitted, 'tool'), { estimatedTokens: toolTokens, cached: toolsCached }),
            () =>
              tools.map(tool =>
                lazyFold(visible(tool.name), () => [
                  textView(tool.description),
                  jsonView(\`the schema of \${tool.name}\`, tool.parameters),
                ]),
              ),
          ),
        ]),
    ...(request.outputSchema
      ? [lazyFold('Schema of the answer', () => [jsonView('the schema of the answer', request.outputSchema)])]
      : []),
    ...(system.text === ''
      ? []
      : [
          lazyFold(
            titled('System prompt', system),
            () => [textView(system.text, system.omitted)],
            system.text.length < 1000,
          ),
        ]),
    messageList(request, links),
  ]
}
function messageList(request         , links                   )              {
  const box = el('div', { class: 'messages' })
  const more = el('button', { type: 'button' })
  let waiting = request.messages.slice(0, Math.max(0, request.messages.length - AT_ONCE))
  let first = request.firstMessage
  const label = () => {
    const left = first + waiting.length
    more.hidden = left === 0
    more.replaceChildren(\`Show earlier messages (\${count(left)})\`)
  }
  more.addEventListener('click', async () => {
    if (waiting.length === 0) {
      more.disabled = true
      const page = await links.earlier(first).catch(() => undefined)
      more.disabled = false
      if (!page?.request) return
      waiting = page.request.messages
      first = page.request.firstMessage
    }
    const next = waiting.slice(-AT_ONCE)
    waiting = waiting.slice(0, -AT_ONCE)
    box.prepend(...next.map(message => messageView(message, links)))
    label()
  })
  box.append(...request.messages.slice(-AT_ONCE).map(message => messageView(message, links)))
  label()
  return el('div', {}, more, box)
}
function titled(title        , { estimatedTokens, cached }        )         {
  const notes = [
    ...(estimatedTokens === undefined ? [] : [\`about \${many(estimatedTokens, 'token')}\`]),
    ...(cached ? [cached === 'whole' ? 'cached' : 'cached in part'] : []),
  ]
  return [...(title === '' ? [] : [title]), ...notes].join(' · ')
}
function messageView(message                , links                   )              {
  const look = \`message \${message.role}\${message.cached === undefined ? '' : \` cached-\${message.cached}\`}\`
  if (message.role === 'tool') {
    return el(
      'section',
      { class: look, 'aria-label': 'Results of tools' },
      heading('Results', message),
      ...message.results.map(one => resultView(one, links)),
    )
  }
  const name = message.role === 'user' ? 'User' : 'Assistant'
  const calls = message.role === 'assistant' ? message.toolCalls : []
  return el(
    'section',
    { class: look, 'aria-label': name },
    heading(name, message, message.role === 'assistant' ? message.stepId : undefined),
    message.text !== '' && textView(message.text, message.omitted),
    ...calls.map(callView),
  )
}
function heading(name        , weight        , stepId         )              {
  return el(
    'p',
    { class: 'who-says' },
    el('strong', {}, name),
    el('small', {}, titled('', weight)),
    stepId !== undefined && stepLink(stepId),
  )
}
const stepLink = (stepId        )              =>
  el('a', { href: \`#step=\${encodeURIComponent(stepId)}\` }, visible(stepId))
function callView({ name, arguments: given }                                                      )              {
  return el(
    'section',
    { class: 'call', 'aria-label': \`Call of \${visible(name)}\` },
    el('p', { class: 'who-says' }, el('strong', {}, \`→ \${visible(name)}\`)),
    jsonView(\`the arguments of \${name}\`, given),
  )
}
function resultView(
  { name, content, omitted = 0, failed, stepId, blob }                                                              ,
  links                   ,
)              {
  return el(
    'section',
    { class: \`call\${failed ? ' failed' : ''}\`, 'aria-label': \`Result of \${visible(name)}\` },
    el(
      'p',
      { class: 'who-says' },
      el('strong', {}, \`← \${visible(name)}\`),
      failed && el('span', { class: 'bad' }, 'failed'),
      stepId !== undefined && stepLink(stepId),
    ),
    jsonView(\`the result of \${name}\`, content),
    omitted > 0 && el('p', { class: 'hint' }, \`\${count(omitted)} more characters are not in this answer.\`),
    blob && el('p', {}, el('a', { href: links.blob(blob.sha256) }, \`The whole result (\${count(blob.bytes)} bytes)\`)),
  )
}
function answerView(answer                                    , { tokensOut }                     )              {
  const { text, omitted, thinking, toolCalls, stop, cappedByBudget, score } = answer
  const notes = [
    many(tokensOut, 'token'),
    ...(stop && stop !== 'end' && stop !== 'tools' ? [\`stopped: \${stop}\`] : []),
    ...(cappedByBudget ? ['as long as the budget let it be'] : []),
    ...(score === undefined ? [] : [\`confidence \${score}\`]),
  ]
  return el(
    'section',
    { class: 'message assistant answer', 'aria-label': 'Answer' },
    el(
      'p',
      { class: 'who-says' },
      el('strong', {}, 'Answer'),
      el('small', {}, notes.join(' · ')),
      copyButton('the answer', () => text),
    ),
    thinking && lazyFold('Thinking', () => [textView(thinking.text, thinking.omitted)]),
    text !== '' && textView(text, omitted),
    ...toolCalls.map(callView),
  )
}
`,
  "copy-button.js": `import { el } from './dom.js'
import { toast } from './toast.js'
export function copyButton(about        , text              )                    {
  const button = el('button', { type: 'button', class: 'copy', 'aria-label': \`Copy \${about}\` }, 'Copy')
  button.addEventListener('click', () => void copy(text()))
  return button
}
export function copyButtons()       {
  document.addEventListener('click', event => {
    const button = event.target instanceof Element ? event.target.closest             ('[data-copy]') : null
    if (button !== null) void copy(button.dataset.copy ?? '')
  })
}
async function copy(text        )                {
  const done = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  )
  toast(done ? 'Copied.' : 'The browser gives this page no clipboard: select the text and copy it.')
}
`,
  "dashboard.css": `:root {
  --good-soft: light-dark(#e3f4ea, #1b3427);
  --bad-soft: light-dark(#fbe9e7, #40211f);
  --warn-soft: light-dark(#fdf0d5, #3b2f17);
  --plain-soft: light-dark(#e9ecf0, #2c323a);
  --model: light-dark(#2f6fce, #6ea3ec);
  --tool: light-dark(#2a8f5b, #4cb47d);
  --wait: light-dark(#c98a1b, #dba544);
  --fail: light-dark(#cf4238, #e66a60);
  --rest: light-dark(#8a94a0, #7b8692);
}
a {
  color: var(--link);
}
button,
input,
select,
textarea {
  padding: var(--space-3) var(--space-4);
  border: 1px solid var(--edge);
  border-radius: var(--radius-2);
  background: var(--card);
  color: var(--text);
  font: inherit;
}
textarea {
  min-height: 4rem;
  unicode-bidi: plaintext;
  resize: vertical;
}
label {
  display: block;
  margin-bottom: var(--space-4);
  font-weight: 600;
}
fieldset.scopes {
  display: grid;
  grid-template-columns: max-content minmax(0, 1fr);
  gap: 0 var(--space-6);
}
fieldset label {
  display: inline-block;
  margin: 0 var(--space-5) var(--space-2) 0;
  font-weight: normal;
}
body:not(:has(nav)) {
  display: block;
}
.top,
.row,
.who,
.filter,
.inline {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-4) var(--space-5);
  align-items: center;
}
small,
.hint,
dt,
figcaption {
  color: var(--quiet);
}
small {
  font-weight: normal;
  font-size: var(--font-less);
}
main > p,
form:not(.inline, .filter) {
  max-width: 60rem;
}
body:not(:has(nav)) > main {
  margin: 0 auto;
}
.cards {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
  gap: var(--space-6);
  align-items: start;
  margin-bottom: var(--space-6);
}
.card > .cards {
  margin-bottom: 0;
}
.wide {
  grid-column: 1 / -1;
}
.card,
.notice,
.nothing {
  min-width: 0;
  margin: 0 0 var(--space-6);
  padding: var(--space-6);
  border: 1px solid var(--line);
  border-radius: var(--radius-3);
  background: var(--card);
}
.cards > .card,
.cards > [data-live] > .card {
  margin: 0;
}
.notice {
  border-left: 4px solid var(--link);
}
.notice.good {
  border-left-color: var(--good);
}
.nothing {
  border-style: dashed;
  background: none;
  color: var(--quiet);
}
.card > .nothing {
  margin: 0;
}
.before {
  max-width: 34rem;
  margin: 6vh auto 0;
}
h1 {
  margin: 0 0 var(--space-6);
  font-size: var(--font-7);
  overflow-wrap: anywhere;
}
h3 {
  margin: var(--space-6) 0 var(--space-4);
  font-size: var(--font-5);
}
.badge {
  display: inline-block;
  padding: var(--space-1) var(--space-4);
  border-radius: var(--round);
  background: var(--plain-soft);
  font-size: var(--font-2);
  white-space: nowrap;
}
.badge.good {
  background: var(--good-soft);
}
.badge.bad {
  background: var(--bad-soft);
}
.badge.warn {
  background: var(--warn-soft);
}
.mono,
pre,
code,
textarea.code {
  font-family: ui-monospace, monospace;
  font-size: var(--font-code);
  overflow-wrap: anywhere;
}
pre {
  max-height: 24rem;
  margin: var(--space-4) 0;
  padding: var(--space-4);
  overflow: auto;
  border: 1px solid var(--line);
  border-radius: var(--radius-2);
  background: var(--page);
  white-space: pre-wrap;
}
.filter label,
.inline label {
  margin: 0;
  font-weight: normal;
}
label > input:not([type="checkbox"], [type="radio"]),
label > select,
label > textarea {
  display: block;
  width: 100%;
  margin-top: var(--space-2);
  font-weight: normal;
}
.filter label > input,
.filter label > select {
  width: auto;
}
fieldset {
  margin: 0 0 var(--space-4);
  padding: var(--space-4) var(--space-5);
  border: 1px solid var(--line);
  border-radius: var(--radius-2);
}
input[type="checkbox"],
input[type="radio"] {
  min-height: 0;
  margin: 0 var(--space-2) 0 0;
  accent-color: var(--link);
}
a.button {
  display: inline-block;
  padding: var(--space-3) var(--space-5);
  border: 1px solid var(--edge);
  border-radius: var(--radius-2);
  text-decoration: none;
}
a.button.main {
  border-color: var(--link);
  background: var(--link);
  color: var(--card);
}
table,
.num,
.strip,
.figures {
  font-variant-numeric: tabular-nums;
}
button {
  min-height: 2rem;
  overflow-wrap: normal;
  cursor: pointer;
}
button.main {
  border-color: var(--link);
  background: var(--link);
  color: var(--card);
}
button > .icon,
a.button > .icon {
  color: var(--quiet);
}
:is(button, a.button).main > .icon {
  color: inherit;
}
button.danger {
  border-color: var(--bad);
  color: var(--bad);
}
[aria-invalid="true"] {
  border-color: var(--bad);
  box-shadow: 0 0 0 1px var(--bad);
}
output {
  display: block;
  overflow-wrap: anywhere;
}
output:empty {
  display: none;
}
button + output {
  margin-top: var(--space-3);
}
.problem {
  display: block;
  color: var(--bad);
  font-weight: normal;
}
.inline {
  display: inline-flex;
}
.filter {
  margin-bottom: var(--space-6);
  align-items: end;
}
.once {
  margin: var(--space-4) 0;
  padding: var(--space-4);
  border: 1px solid var(--good);
  border-radius: var(--radius-2);
  background: var(--good-soft);
}
.once code {
  display: block;
  margin: var(--space-2) 0;
  user-select: all;
}
.skip:focus {
  left: 1rem;
  top: 0.5rem;
  z-index: 3;
  padding: var(--space-4);
  background: var(--card);
}
.figures dd {
  margin: 0;
  font-size: var(--font-7);
  font-weight: 600;
}
.facts {
  display: grid;
  grid-template-columns: minmax(7rem, max-content) minmax(0, 1fr);
  gap: var(--space-1) var(--space-6);
  margin: 0 0 var(--space-4);
}
th,
td {
  padding: var(--space-3) var(--space-5) var(--space-3) 0;
  border-bottom: 1px solid var(--line);
  text-align: left;
  vertical-align: top;
}
th {
  overflow-wrap: normal;
}
td:not(.num) > div {
  min-width: 6rem;
}
td.num > div {
  white-space: nowrap;
}
time {
  white-space: nowrap;
}
td a {
  overflow-wrap: break-word;
}
td .inline {
  margin-bottom: var(--space-2);
}
tbody tr:last-child > td {
  border-bottom: 0;
}
.chart {
  display: block;
  width: 100%;
  height: 7rem;
}
figure {
  margin: var(--space-4) 0;
}
.axis {
  stroke: var(--edge);
  vector-effect: non-scaling-stroke;
}
.c-succeeded,
.c-tool,
.c-spent {
  fill: var(--tool);
}
.c-running,
.c-model {
  fill: var(--model);
}
.c-failed {
  fill: var(--fail);
}
.c-waiting,
.c-wait {
  fill: var(--wait);
}
.c-queued,
.c-cancelled,
.c-rest,
.c-delay {
  fill: var(--rest);
}
.c-delay {
  opacity: 0.45;
}
.keys > span {
  display: inline-block;
  margin-right: var(--space-5);
}
.key {
  display: inline-block;
  width: 0.7rem;
  height: 0.7rem;
  margin-right: var(--space-2);
}
.share {
  display: block;
  width: 100%;
  min-width: 4rem;
  height: 0.7rem;
  border-radius: var(--radius-1);
  background: var(--line);
}
.rows {
  position: relative;
  max-height: 28rem;
  overflow: auto;
  border: 1px solid var(--line);
  border-radius: var(--radius-2);
}
.rows.tall {
  height: 28rem;
}
.lanes {
  max-height: 12rem;
  overflow: auto;
}
.lanes.tall {
  height: 7rem;
}
.picture {
  display: block;
  overflow: hidden;
  fill: var(--text);
  font-size: var(--font-1);
}
.picture rect {
  cursor: pointer;
}
.replayed {
  stroke: var(--text);
  stroke-width: 1.5;
  stroke-dasharray: 3 2;
  vector-effect: non-scaling-stroke;
}
.chosen {
  stroke: var(--link);
  stroke-width: 3;
}
.ends {
  display: flex;
  justify-content: space-between;
  margin: 0 0 var(--space-4);
  border-top: 1px solid var(--line);
}
.line {
  display: grid;
  grid-template-columns: minmax(9rem, 23rem) minmax(6rem, 1fr) 5rem 6.5rem 6rem;
  gap: var(--space-5);
  align-items: center;
  width: 100%;
  height: 30px;
  min-height: 0;
  padding: 0 var(--space-4);
  border: 0;
  border-bottom: 1px solid var(--line);
  border-radius: 0;
  background: none;
  text-align: left;
  white-space: nowrap;
}
.line > span {
  overflow: hidden;
  text-overflow: ellipsis;
}
.line.event {
  grid-template-columns: 4rem 9.5rem minmax(8rem, 1fr) 12.5rem minmax(10rem, 20rem);
}
.line:hover,
.line[aria-pressed="true"] {
  background: var(--plain-soft);
}
.line:focus-visible {
  outline-offset: -3px;
}
.line .bar {
  width: 100%;
  height: 14px;
}
.spacer {
  position: relative;
}
.spacer > .line {
  position: absolute;
  left: 0;
}
.num {
  text-align: right;
}
@media (min-width: 48.01rem) {
  :is(td, th).num + :is(td, th):not(.num) {
    padding-left: var(--space-6);
  }
}
.head {
  color: var(--quiet);
  font-size: var(--font-2);
}
.line.head {
  position: sticky;
  top: 0;
  z-index: 1;
  background: var(--card);
}
.strip {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-4) var(--space-9);
  margin: 0 0 var(--space-5);
}
.strip dd {
  margin: 0;
  font-weight: 600;
}
.tabs {
  display: flex;
  gap: var(--space-2);
  margin: 0 0 var(--space-6);
  border-bottom: 1px solid var(--line);
}
.tabs {
  overflow-x: auto;
}
.tabs > * {
  flex: none;
}
.tabs > a {
  padding: var(--space-3) var(--space-4);
  color: var(--text);
  text-decoration: none;
}
.tabs > a:hover {
  border-bottom-color: var(--edge);
}
.tabs :focus-visible {
  outline-offset: -3px;
}
.tabs > :is(a, button) {
  border: 0;
  border-bottom: 3px solid transparent;
  border-radius: 0;
  background: none;
}
.tabs > [aria-selected="true"] {
  border-bottom-color: var(--link);
  font-weight: 600;
}
.panel:not(.open) {
  display: none;
}
.panes {
  display: grid;
  grid-template-columns: minmax(0, 1fr) minmax(0, 1fr);
  gap: var(--space-6);
  align-items: start;
}
.panes .line:not(.event) {
  grid-template-columns: minmax(8rem, 1.6fr) minmax(4rem, 1fr) 4.5rem 5.5rem;
}
.panes .line:not(.event) > :nth-child(4) {
  display: none;
}
.side {
  position: sticky;
  top: 3.7rem;
  max-height: calc(100vh - 4.2rem);
  margin-bottom: var(--space-6);
  overflow: auto;
}
.side > div > section {
  margin: 0;
}
#step:not(:empty) + #run-result {
  display: none;
}
.spread {
  justify-content: space-between;
  flex-wrap: nowrap;
  align-items: start;
}
.spread button {
  flex: none;
}
.copy {
  min-height: 0;
  padding: var(--space-1) var(--space-4);
  font-size: var(--font-2);
}
.tree {
  margin: 0;
  padding-left: var(--space-6);
}
.tree > li {
  margin: var(--space-2) 0;
}
.message,
.call {
  min-width: 0;
  margin: var(--space-4) 0;
  padding: var(--space-4) var(--space-5);
  border: 1px solid var(--line);
  border-left: 4px solid var(--edge);
  border-radius: var(--radius-2);
  overflow-wrap: anywhere;
}
.message {
  content-visibility: auto;
  contain-intrinsic-size: auto 6rem;
}
.message.user {
  border-left-color: var(--model);
}
.message.assistant {
  border-left-color: var(--tool);
}
.message.answer {
  border-width: 2px 2px 2px 4px;
}
.message.cached-whole {
  background: var(--plain-soft);
}
.call {
  background: var(--card);
}
.call.failed {
  border-left-color: var(--fail);
}
.who-says {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-2) var(--space-4);
  align-items: baseline;
  margin: 0;
}
.text {
  unicode-bidi: isolate;
}
.text :is(p, li, h3, h4, blockquote),
.row-link,
.clamped,
pre,
q {
  unicode-bidi: plaintext;
}
.text p {
  white-space: pre-wrap;
}
.text blockquote {
  margin: var(--space-3) 0;
  padding-left: var(--space-5);
  border-left: 3px solid var(--line);
  white-space: pre-wrap;
}
.text ul,
.text ol {
  margin: var(--space-3) 0;
  padding-left: var(--space-8);
}
.json {
  position: relative;
}
.json pre {
  max-height: 18rem;
  padding-right: calc(var(--space-10) + var(--space-6));
}
.json > .copy {
  position: absolute;
  top: 0.4rem;
  right: 0.5rem;
}
#step h3,
.card > h3:first-child {
  margin-top: 0;
}
form + .row {
  margin-top: var(--space-4);
}
summary {
  cursor: pointer;
}
.needs-script + details,
details + .needs-script {
  margin-top: var(--space-4);
}
.card > summary {
  font-weight: 600;
}
.operations {
  max-height: 26rem;
  overflow: auto;
}
.operation {
  display: grid;
  grid-template-columns: minmax(0, 1fr) auto;
  gap: 0 var(--space-5);
  align-items: center;
  padding: var(--space-3) var(--space-2) var(--space-3) 0;
  border-bottom: 1px solid var(--line);
}
.operation:last-child {
  border-bottom: 0;
}
.operation > label {
  margin: 0;
}
.operation > small {
  grid-column: 1 / -1;
}
.grow {
  flex: 1 1 12rem;
}
:is(label, .operation)[hidden] {
  display: none;
}
[data-role="viewer"] form[data-send]:not([data-send^="POST auth/"]),
[data-role="viewer"] #say,
[data-role="viewer"] .try,
[data-role="viewer"] details.needs-script:has(form[data-send]):not(:has([data-send^="POST auth/"])) {
  display: none;
}
.talk {
  display: flex;
  flex-direction: column;
  gap: var(--space-5);
  margin: 0 0 var(--space-6);
  padding: 0;
  list-style: none;
}
.talk li {
  max-width: 46rem;
  padding: var(--space-4) var(--space-6);
  border: 1px solid var(--line);
  border-radius: var(--radius-3);
  background: var(--card);
  overflow-wrap: anywhere;
}
.talk li.user {
  align-self: flex-end;
  background: var(--plain-soft);
}
.talk small {
  display: block;
}
.diff {
  white-space: pre;
}
.diff span {
  display: block;
  width: max-content;
  min-width: 100%;
}
.diff .added {
  background: var(--good-soft);
}
.diff .gone {
  background: var(--bad-soft);
}
#toast {
  position: fixed;
  right: 1rem;
  bottom: 1rem;
  z-index: 5;
  max-width: min(30rem, calc(100vw - 2rem));
  margin: 0;
}
#toast:not(:empty) {
  display: flex;
  gap: var(--space-5);
  align-items: center;
  padding: var(--space-4) var(--space-6);
  border: 1px solid var(--edge);
  border-radius: var(--radius-2);
  background: var(--card);
  box-shadow: 0 4px 16px rgb(0 0 0 / 20%);
}
.going {
  opacity: 0.6;
}
ul.plain {
  margin: var(--space-2) 0;
  padding: 0;
  list-style: none;
}
details[open] > summary {
  margin-bottom: var(--space-3);
}
dialog {
  width: min(28rem, calc(100vw - 1.5rem));
  padding: var(--space-7);
  border: 1px solid var(--edge);
  border-radius: var(--radius-3);
  background: var(--card);
  color: var(--text);
}
@media (max-width: 64rem) {
  .panes {
    grid-template-columns: minmax(0, 1fr);
  }
  .side {
    position: static;
    max-height: none;
  }
}
@media (max-width: 48rem) {
  .facts {
    grid-template-columns: 6.5rem minmax(0, 1fr);
    gap: var(--space-1) var(--space-4);
  }
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
    grid-template-columns: 6.5rem minmax(0, 1fr);
    gap: var(--space-4);
    padding: var(--space-1) 0;
    border: 0;
    overflow-wrap: anywhere;
  }
  tbody tr:last-child {
    border-bottom: 0;
  }
  td.num {
    text-align: left;
  }
  td:empty,
  td:has(> div:empty) {
    display: none;
  }
  td::before {
    content: attr(data-label);
    color: var(--quiet);
  }
  .operation {
    grid-template-columns: minmax(0, 1fr);
  }
  .line,
  .panes .line:not(.event) {
    grid-template-columns: minmax(0, 1.6fr) minmax(3.5rem, 1fr) 4.5rem;
    gap: var(--space-3);
  }
  .line > :nth-child(n + 4) {
    display: none;
  }
  .line.event {
    grid-template-columns: 3rem minmax(0, 1fr) minmax(0, 1fr);
  }
}
@media (prefers-reduced-motion: no-preference) {
  .going {
    transition: opacity 0.15s;
  }
}
`,
  "dashboard.js": `import { part } from './dom.js'
import { themeSwitch } from './theme.js'
import { copyButtons } from './copy-button.js'
import { keys } from './keys.js'
import { logInAgain, root } from './page-api.js'
import { palette } from './palette.js'
import { refresh } from './refresh.js'
import { sendForms } from './send-form.js'
import { pageTabs } from './tabs.js'
import { followTimes } from './times.js'
const QUIET_MS = 30
const REST = 5
const LONGEST_REST_MS = 2000
let restUntil = 0
let isDue = false
function lookSoon()       {
  if (isDue) return
  isDue = true
  setTimeout(
    () => {
      isDue = false
      if (!document.hidden) void renew()
    },
    Math.max(QUIET_MS, restUntil - performance.now()),
  )
}
async function renew()                {
  const began = performance.now()
  await refresh(true)
  const now = performance.now()
  restUntil = now + Math.min(REST * (now - began), LONGEST_REST_MS)
}
function listen()       {
  if (document.querySelector('[data-live]') === null) return
  const line = part('#live')
  const changes = new EventSource(\`\${root}ui/live\`)
  changes.addEventListener('open', () => line.replaceChildren('● live'))
  changes.addEventListener('changed', lookSoon)
  changes.addEventListener('error', () => {
    line.replaceChildren('○ the line is broken; connecting again …')
    if (changes.readyState !== EventSource.CLOSED) return
    setTimeout(async () => {
      const me = await fetch(\`\${root}auth/me\`, { cache: 'no-store' }).catch(() => undefined)
      if (me?.status === 401 && !(await logInAgain())) return
      listen()
      void refresh()
    }, 3000)
  })
}
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refresh()
})
document.querySelector('#menu [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
copyButtons()
sendForms()
followTimes()
themeSwitch()
keys()
pageTabs()
palette()
listen()
`,
  "demo-run.js": `import { el, part } from './dom.js'
import { duration } from './figures.js'
import { followRun } from './run-events.js'
import { stepName,                     timelineOf, tookMs } from './timeline.js'
import { root, send } from './page-api.js'
const DEMO = 'demo'
const SCRIPT = '/call wait {"seconds":1}\\n/call wait {"seconds":1}'
export async function startDemo()                  {
  await send('POST', 'ui/api/v1/agents', { name: DEMO, manifest: { model: 'demo/echo', tools: ['wait'] } })
  const run = { agentName: DEMO, input: { prompt: SCRIPT } }
  return (await send                ('POST', 'ui/api/v1/runs', run)).id
}
export function demoRun()       {
  const button = part                   ('#demo-run')
  const shown = part('#demo-shown')
  button.addEventListener('click', async () => {
    button.disabled = true
    shown.replaceChildren(el('p', {}, 'Starting …'))
    try {
      follow(await startDemo(), shown)
    } catch (error) {
      shown.replaceChildren(el('p', { class: 'bad' }, error instanceof Error ? error.message : String(error)))
    }
    button.disabled = false
  })
}
function follow(id        , shown             )       {
  const events                  = []
  const list = el('ol', {})
  const end = el('p', { role: 'status' }, 'It runs. Each line is in its journal before the next begins.')
  shown.replaceChildren(end, list)
  followRun(id, {
    over: false,
    begun: () => undefined,
    resumed: () => undefined,
    event(one) {
      events.push(one)
      const lines = timelineOf(events).map(step => {
        const took = tookMs(step)
        const done = took === undefined ? step.status : \`\${step.status} in \${duration(took)}\`
        return el('li', {}, \`\${stepName(step)}: \${done}\`)
      })
      list.replaceChildren(...lines)
    },
    async ended() {
      const run = await send                    ('GET', \`ui/api/v1/runs/\${id}?fields=summary\`)
      const link = el('a', { href: \`\${root}runs/\${id}\` }, 'Look at the run, its timeline and its signed receipt')
      end.replaceChildren(el('strong', { class: 'good' }, \`The run has \${run.status}. \`), link)
    },
  })
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
  "event-names.js": `export const eventNames = [
  'step_started',
  'step_completed',
  'step_failed',
  'step_retrying',
  'step_waiting',
  'confidence_evaluated',
  'anomaly_detected',
]
`,
  "figures.css": `:root {
  --axis: 4.5rem;
  --s0: light-dark(#2f6fce, #6ea3ec);
  --s1: light-dark(#2a8f5b, #4cb47d);
  --s2: light-dark(#b8590f, #e0925a);
  --s3: light-dark(#8347b5, #b78be0);
  --s4: light-dark(#b23a6f, #e07fa8);
  --s5: light-dark(#20808d, #55b9c6);
}
th a {
  color: inherit;
}
.title-row {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-4) var(--space-6);
  align-items: center;
  justify-content: space-between;
  margin-bottom: var(--space-6);
}
.title-row h1 {
  margin: 0;
}
.segments {
  display: inline-flex;
  flex-wrap: wrap;
  max-width: 100%;
  border: 1px solid var(--edge);
  border-radius: var(--radius-2);
  overflow: hidden;
  background: var(--card);
}
.segments a {
  flex: auto;
  text-align: center;
  padding: var(--space-2) var(--space-5);
  color: var(--text);
  text-decoration: none;
}
.segments a + a {
  border-left: 1px solid var(--line);
}
.segments a:hover {
  background: var(--plain-soft);
}
.segments a[aria-current] {
  background: var(--link);
  color: var(--card);
}
.segments a:focus-visible {
  outline-offset: -3px;
}
.tiles {
  display: flex;
  flex-wrap: wrap;
  gap: 1px;
  margin: 0 0 var(--space-6);
  border: 1px solid var(--line);
  border-radius: var(--radius-3);
  background: var(--line);
  overflow: hidden;
}
.tile {
  flex: 1 1 8.5rem;
  padding: var(--space-5) var(--space-6);
  background: var(--card);
}
.tile dt {
  font-size: var(--font-2);
}
.tile dd {
  margin: 0;
}
.big {
  display: block;
  font-weight: 650;
  font-size: var(--font-8);
  line-height: 1.3;
  font-variant-numeric: tabular-nums;
}
.tile.poor .big {
  color: var(--bad);
}
.note {
  color: var(--quiet);
  font-size: var(--font-2);
}
.cards.two {
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
  align-items: stretch;
}
@media (min-width: 80rem) {
  .cards.two {
    grid-template-columns: repeat(3, minmax(0, 1fr));
  }
  .span-two {
    grid-column: span 2;
  }
}
.cards.two-columns {
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr));
}
.plot figcaption {
  margin-bottom: var(--space-4);
}
.plot-box {
  display: grid;
  grid-template-columns: var(--axis) minmax(0, 1fr);
  gap: var(--space-4);
}
.plot-box > .chart {
  height: 9rem;
}
.plot-y {
  display: flex;
  flex-direction: column;
  justify-content: space-between;
  color: var(--quiet);
  font-size: var(--font-1);
  line-height: 1;
  text-align: right;
  white-space: nowrap;
  font-variant-numeric: tabular-nums;
}
.plot-x {
  display: flex;
  justify-content: space-between;
  margin: var(--space-2) 0 var(--space-4) calc(var(--axis) + var(--space-4));
  color: var(--quiet);
  font-size: var(--font-1);
}
.grid {
  stroke: var(--line);
  vector-effect: non-scaling-stroke;
}
.slot {
  fill: transparent;
}
.slot:hover {
  fill: var(--quiet);
  opacity: 0.15;
}
.curve {
  fill: none;
  stroke-width: 2;
  stroke-linecap: round;
  stroke-linejoin: round;
  vector-effect: non-scaling-stroke;
}
.curve.alone {
  stroke-width: 4;
}
.plot details > summary {
  color: var(--quiet);
  font-size: var(--font-2);
}
form .scroll {
  margin-bottom: var(--space-4);
}
.plot details[open] .scroll {
  max-height: 16rem;
  overflow: auto;
}
i.key {
  border-radius: var(--radius-1);
}
.l-middle {
  stroke: var(--s0);
  background: var(--s0);
}
.l-high {
  stroke: var(--s2);
  background: var(--s2);
}
.s-0 {
  fill: var(--s0);
  background: var(--s0);
}
.s-1 {
  fill: var(--s1);
  background: var(--s1);
}
.s-2 {
  fill: var(--s2);
  background: var(--s2);
}
.s-3 {
  fill: var(--s3);
  background: var(--s3);
}
.s-4 {
  fill: var(--s4);
  background: var(--s4);
}
.s-5 {
  fill: var(--s5);
  background: var(--s5);
}
.s-rest,
i.c-cancelled {
  fill: var(--rest);
  background: var(--rest);
}
i.c-succeeded {
  background: var(--tool);
}
i.c-failed {
  background: var(--fail);
}
@media (max-width: 48rem) {
  .tile {
    flex-basis: 40%;
  }
  .big {
    font-size: var(--font-7);
  }
  .plot-box > .chart {
    height: 7rem;
  }
}
.choose {
  width: 2rem;
}
table.runs tr {
  position: relative;
}
table.runs tbody tr:hover {
  background: var(--plain-soft);
}
.row-link::after {
  position: absolute;
  inset: 0;
  content: "";
}
.row-link {
  overflow-wrap: anywhere;
  color: var(--text);
  font-weight: 600;
  text-decoration: none;
}
.row-link:focus-visible::after {
  outline: 3px solid var(--link);
  outline-offset: -3px;
}
.row-link:focus-visible {
  outline: none;
}
.above {
  position: relative;
  z-index: 1;
}
.runs {
  font-size: var(--font-3);
}
.wide-cell {
  width: 100%;
  min-width: 13rem;
}
.runs :is(td, th) {
  white-space: nowrap;
}
.runs .wide-cell {
  white-space: normal;
}
.name-cell > div {
  max-width: 14rem;
  overflow: hidden;
  text-overflow: ellipsis;
}
.runs td > div {
  min-width: 0;
}
.row-link,
.runs small.bad {
  display: -webkit-box;
  overflow: hidden;
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 2;
}
tr.below > td:first-child {
  box-shadow: inset 3px 0 var(--edge);
}
tr.below .wide-cell > div {
  padding-left: var(--space-7);
}
.bulk {
  position: sticky;
  top: 3.2rem;
  z-index: 3;
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-4);
  align-items: center;
  margin-bottom: var(--space-5);
  padding: var(--space-4) var(--space-6);
  border: 1px solid var(--link);
  border-radius: var(--radius-3);
  background: var(--card);
}
.bulk[hidden] {
  display: none;
}
.wide-dialog {
  width: min(44rem, calc(100vw - 1.5rem));
}
@media (max-width: 48rem) {
  .filter {
    display: grid;
    grid-template-columns: repeat(2, minmax(0, 1fr));
  }
  .filter label > :is(input, select) {
    width: 100%;
  }
  .runs tbody tr {
    display: flex;
    flex-wrap: wrap;
    gap: var(--space-1) var(--space-5);
    padding: var(--space-4) 0;
  }
  .runs tbody td {
    display: block;
    min-width: 0;
    padding: 0;
    font-size: var(--font-2);
  }
  .runs tbody td::before {
    content: none;
  }
  .runs .wide-cell {
    flex: 1 1 100%;
    padding-right: var(--space-9);
    font-size: var(--font-5);
  }
  .runs .choose {
    position: absolute;
    top: 0.6rem;
    right: 0;
    width: auto;
  }
}
kbd {
  padding: 0 var(--space-2);
  border: 1px solid var(--line);
  border-radius: var(--radius-1);
  background: var(--page);
  font-size: var(--font-less);
}
#open-palette {
  color: var(--quiet);
}
dialog.palette {
  margin-top: 12vh;
  padding: 0;
  overflow: hidden;
}
.palette > input {
  width: 100%;
  padding: var(--space-6) var(--space-6);
  border: 0;
  border-bottom: 1px solid var(--line);
  border-radius: 0;
  font-size: var(--font-6);
}
.palette > input:focus-visible {
  outline-offset: -3px;
}
.palette > ul {
  max-height: 24rem;
  margin: 0;
  padding: var(--space-3);
  overflow: auto;
  list-style: none;
}
.palette li {
  display: flex;
  gap: var(--space-6);
  justify-content: space-between;
  padding: var(--space-3) var(--space-4);
  border-radius: var(--radius-2);
  cursor: pointer;
}
.palette li > span {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.palette li:hover,
.palette li[aria-selected="true"] {
  background: var(--plain-soft);
}
[data-card]:focus-visible {
  outline: 3px solid var(--link);
}
@media (max-width: 48rem) {
  #open-palette kbd,
  .whose {
    display: none;
  }
}
.diff.wrapped {
  white-space: pre-wrap;
}
.diff.wrapped span {
  width: auto;
}
.briefs {
  display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr));
  gap: var(--space-6) var(--space-9);
}
.brief form {
  margin-top: var(--space-3);
}
.brief input {
  flex: 1 1 8rem;
  min-width: 0;
}
.clamped {
  display: -webkit-box;
  overflow: hidden;
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 3;
}
@media (min-width: 64rem) {
  td .clamped {
    min-width: 14rem;
  }
}
.composer {
  position: sticky;
  bottom: 0;
  z-index: 2;
  padding: var(--space-5) 0;
  background: var(--page);
}
.talk .call {
  margin: 0 0 var(--space-4);
  padding: var(--space-3) var(--space-4);
}
.talk .call > summary {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.talk .text > :first-child {
  margin-top: 0;
}
.typing {
  color: var(--quiet);
}
#pending:has(.assistant) + #turn > .typing {
  display: none;
}
.dots > i {
  display: inline-block;
  width: 0.4rem;
  height: 0.4rem;
  margin-right: var(--space-2);
  border-radius: var(--round);
  background: var(--link);
}
@media (prefers-reduced-motion: no-preference) {
  .dots > i {
    animation: typing 1.2s infinite;
  }
  .dots > i:nth-child(2) {
    animation-delay: 0.2s;
  }
  .dots > i:nth-child(3) {
    animation-delay: 0.4s;
  }
}
@keyframes typing {
  0%,
  60%,
  100% {
    opacity: 0.25;
  }
  30% {
    opacity: 1;
  }
}
.skeleton {
  display: grid;
  gap: var(--space-4);
}
.skeleton > i {
  height: var(--space-6);
  border-radius: var(--radius-1);
  background: var(--line);
}
.skeleton > i:last-child {
  width: 60%;
}
@media (prefers-reduced-motion: no-preference) {
  .skeleton > i {
    animation: typing 1.2s infinite;
  }
}
.monogram {
  display: inline-grid;
  flex: none;
  place-items: center;
  width: 2.25rem;
  height: 2.25rem;
  border: 2px solid;
  border-radius: var(--radius-2);
  background: var(--page);
  font-weight: 600;
  font-size: var(--font-3);
}
.m-0 {
  border-color: var(--s0);
}
.m-1 {
  border-color: var(--s1);
}
.m-2 {
  border-color: var(--s2);
}
.m-3 {
  border-color: var(--s3);
}
.m-4 {
  border-color: var(--s4);
}
.m-5 {
  border-color: var(--s5);
}
.with-monogram {
  display: flex;
  gap: var(--space-5);
  align-items: center;
}
.labels {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-2);
  margin-top: var(--space-2);
}
.label {
  max-width: 16rem;
  padding: 0 var(--space-3);
  overflow: hidden;
  border-radius: var(--radius-1);
  background: var(--plain-soft);
  color: var(--quiet);
  font-size: var(--font-2);
  text-decoration: none;
  text-overflow: ellipsis;
}
a.label:hover {
  color: var(--link);
}
.views {
  display: flex;
  flex-wrap: wrap;
  gap: var(--space-4);
  align-items: center;
  margin-bottom: var(--space-6);
}
.views:empty {
  display: none;
}
.view {
  display: inline-flex;
  gap: var(--space-2);
  align-items: center;
  padding: var(--space-1) var(--space-2) var(--space-1) var(--space-4);
  border: 1px solid var(--line);
  border-radius: var(--round);
  background: var(--card);
}
.view > a[aria-current] {
  font-weight: 600;
}
.beside {
  table-layout: fixed;
}
.beside :is(td, th) {
  padding: 0 var(--space-4);
}
.beside td {
  border: 0;
}
.beside td + td,
.beside th + th {
  border-left: 1px solid var(--line);
}
.beside code {
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}
.beside .gone {
  background: var(--bad-soft);
}
.beside .added {
  background: var(--good-soft);
}
.beside .none {
  background: var(--page);
}
.beside tr.omitted > td {
  color: var(--quiet);
  text-align: center;
}
.completion {
  max-height: 16rem;
  margin: 0;
  padding: var(--space-2);
  overflow: auto;
  border: 1px solid var(--edge);
  border-radius: var(--radius-2);
  background: var(--card);
  font-weight: normal;
}
.completion > li {
  padding: var(--space-2) var(--space-4);
  border-radius: var(--radius-1);
  cursor: pointer;
}
.completion > li[aria-selected="true"],
.completion > li:hover {
  background: var(--plain-soft);
}
.snippets h2 {
  margin-top: var(--space-5);
  font-size: var(--font-4);
}
.filter :is(input, select, button) {
  min-height: 2.3rem;
}
.filter .grow > input {
  width: 100%;
}
.cards.two td:not(.num) > div {
  min-width: 4.5rem;
}
.cards.two td a {
  overflow-wrap: anywhere;
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
  "forecast.js": `import { el } from './dom.js'
import { count, percent, usd } from './figures.js'
import { send } from './page-api.js'
document.addEventListener('click', event => {
  const button = event.target instanceof Element ? event.target.closest             ('#forecast') : null
  if (button !== null) void show(button.dataset.agent ?? '')
})
async function show(agentName        )                {
  const said = document.querySelector('#forecast-said')
  try {
    const found = await send          ('POST', 'ui/api/v1/runs/forecast', { agentName, input: {} })
    const basis =
      found.sampleSize === 0 ? 'from the manifest alone' : \`from \${count(found.sampleSize)} runs of this version\`
    const words = \`\${found.estimatedCostUsd === null ? 'Of unknown cost' : \`About \${usd(found.estimatedCostUsd)}\`} with \${found.model}: \${count(found.estimatedTokensIn)} tokens in, \${count(found.estimatedTokensOut)} out, \${basis} (confidence \${percent(found.confidence)}).\`
    const blocked =
      found.wouldExceedBudget &&
      el('strong', { class: 'bad' }, \` \${found.blockReason ?? 'The budget would not allow it.'}\`)
    said?.replaceChildren(el('p', {}, words, blocked))
  } catch (error) {
    said?.replaceChildren(el('p', { class: 'bad' }, error instanceof Error ? error.message : String(error)))
  }
}
`,
  "foreign-text.js": `const UNSEEN = /[\\p{Cc}\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff]/gu
export function visible(text        )         {
  return text
    .replaceAll('\\r\\n', '\\n')
    .replace(UNSEEN, mark =>
      mark === '\\n' || mark === '\\t'
        ? mark
        : \`\\u27e8U+\${mark.codePointAt(0) .toString(16).toUpperCase().padStart(4, '0')}\\u27e9\`,
    )
}
export function prettyJson(value         )         {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2) ?? 'nothing'
  if (!/^[[{]/.test(value)) return value
  try {
    const read          = JSON.parse(value)
    return JSON.stringify(read) === value ? JSON.stringify(read, null, 2) : value
  } catch {
    return value
  }
}
`,
  "form-body.js": `export function bodyFrom(fields                 )                          {
  const body                          = {}
  for (const { name, value, as } of fields) {
    const read = readValue(name, value, as)
    if (read === undefined) continue
    const path = name.split('.')
    const last = path.pop()
    let at = body
    for (const member of path) {
      at[member] ??= {}
      at = at[member]
    }
    at[last] = as.startsWith('many') ? [...((at[last]             ) ?? []), read] : read
  }
  return body
}
function readValue(name        , value        , as        )          {
  switch (as) {
    case 'number':
      return value.trim() === '' ? undefined : Number(value)
    case 'limit':
      return value.trim() === '' ? null : Number(value)
    case 'hosts':
      return hostsIn(value)
    case 'hosts-or-null':
      return hostsIn(value) ?? null
    case 'labels':
      return labelsIn(value)
    case 'flag':
      return value === 'true'
    case 'many-json':
    case 'json':
      if (value.trim() === '') return undefined
      try {
        return JSON.parse(value)
      } catch (error) {
        throw new Error(\`\${name} is not JSON: \${error instanceof Error ? error.message : String(error)}\`)
      }
    case 'text':
      return value
    default:
      return value === '' ? undefined : value
  }
}
function hostsIn(value        )                                                  {
  const lines = value.split(/[\\s,]+/).filter(line => line !== '')
  if (lines.length === 0) return undefined
  return lines.map(line => {
    const [, host = line, port = '443'] = /^(\\[.*\\]|[^:]*):(\\d+)$/.exec(line) ?? []
    return { host, ports: [Number(port)] }
  })
}
function labelsIn(value        )                                     {
  const parts = value
    .split(/[,\\n]/)
    .map(part => part.trim())
    .filter(part => part !== '')
  if (parts.length === 0) return undefined
  return Object.fromEntries(
    parts.map(part => {
      const colon = part.indexOf(':')
      if (colon < 1) throw new Error(\`labels: expected key:value, got \${part}\`)
      return [part.slice(0, colon).trim(), part.slice(colon + 1).trim()]
    }),
  )
}
export function bodyOf(form                 )                          {
  const fields          = []
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
`,
  "icon.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><title>Waybill</title><rect width="32" height="32" rx="6" fill="#1f5fbf"/><path d="M8 23h4v-6h4v-5h4V7h4" fill="none" stroke="#fff" stroke-width="3"/></svg>
`,
  "input-fields.js": `const MOST_FIELDS = 40
const LONG_TEXT = 200
const isObject = (value         )                  =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export function inputFields(schema         )                           {
  if (!isObject(schema) || !isObject(schema.properties)) return undefined
  const all = Object.entries(schema.properties)
  if (all.length === 0 || all.length > MOST_FIELDS) return undefined
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  if (all.some(([name]) => name === '' || name.includes('.') || name in Object.prototype)) return undefined
  const place = (name        ) => (required.includes(name) ? required.indexOf(name) : required.length)
  return all
    .toSorted(([a], [b]) => place(a) - place(b))
    .map(([name, member]) => fieldOf(name, isObject(member) ? member : {}, required.includes(name)))
}
function fieldOf(name        , schema        , required         )             {
  const field = {
    name,
    title: textOf(schema.title) ?? name,
    about: textOf(schema.description),
    required,
    choices: [],
    limits: {},
  }
  const type = typeOf(schema)
  if (Array.isArray(schema.enum)) return choiceOf(field, schema.enum, schema.default)
  if (type === 'boolean') return choiceOf(field, [true, false], schema.default)
  if (type === 'string') return { ...field, ...textField(schema), as: '', value: textOf(schema.default) ?? '' }
  const value = schema.default === undefined ? '' : JSON.stringify(schema.default)
  if (type === 'number' || type === 'integer') {
    const limits = { step: type === 'integer' ? 1 : 'any', ...numbers({ min: schema.minimum, max: schema.maximum }) }
    return { ...field, look: 'number', as: 'number', value, limits }
  }
  return { ...field, look: 'json', as: 'json', value }
}
function choiceOf(
  field                                           ,
  values                    ,
  chosen         ,
)             {
  const isText = values.every(value => typeof value === 'string' && value !== '')
  const written = (value         ) => (isText ? String(value) : JSON.stringify(value))
  const choices = values.map(value => ({ value: written(value), words: WORDS.get(value) ?? String(written(value)) }))
  return {
    ...field,
    look: 'choice',
    as: isText ? '' : 'json',
    value: chosen === undefined ? '' : written(chosen),
    choices,
  }
}
const WORDS = new Map                 ([
  [true, 'yes'],
  [false, 'no'],
])
const TYPES                                   = { date: 'date', email: 'email', uri: 'url' }
function textField({ maxLength, minLength, pattern, format }        )                                      {
  const type = typeof format === 'string' ? TYPES[format] : undefined
  const limits = { ...numbers({ maxlength: maxLength, minlength: minLength }), ...(type && { type }) }
  const isLine =
    type !== undefined || typeof pattern === 'string' || (typeof maxLength === 'number' && maxLength <= LONG_TEXT)
  return { look: isLine ? 'line' : 'text', limits }
}
function numbers(limits                                   )                         {
  return Object.fromEntries(
    Object.entries(limits).filter((entry)                            => typeof entry[1] === 'number'),
  )
}
function typeOf({ type }        )          {
  if (!Array.isArray(type)) return type
  const others = type.filter(one => one !== 'null')
  return others.length === 1 && others.length === type.length ? others[0] : undefined
}
const textOf = (value         )                     => (typeof value === 'string' && value !== '' ? value : undefined)
`,
  "invite.js": `import { el, part } from './dom.js'
import { root } from './page-api.js'
import { postOpen } from './post-open.js'
const form = part                 ('#invite')
const said = part('#said')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
const say = (words        ) => said.replaceChildren(el('span', { class: 'bad', role: 'alert' }, words))
if (!token) {
  say('Open the whole link that you were sent: its token is missing here.')
  part                   ('button', form).disabled = true
}
form.addEventListener('submit', async event => {
  event.preventDefault()
  const { password, again } = Object.fromEntries(new FormData(form))
  if (password !== again) {
    say('The two passwords are not the same.')
    return
  }
  said.replaceChildren('One moment …')
  const set = await postOpen                                               ('auth/invitation', { token, password })
  if (!set.ok) {
    say(set.body.error ?? 'It did not work.')
    return
  }
  history.replaceState(null, '', location.pathname)
  const { email, tenantId } = set.body.user
  const login = await postOpen('auth/login', { email, password, tenantId })
  location.href = login.ok ? root : \`\${root}login\`
})
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
  "keys.js": `import { el } from './dom.js'
import { root } from './page-api.js'
import { openPalette } from './palette.js'
const OFF = 'waybill-keys-off'
const HELP                                          = [
  ['Ctrl K', 'go to an agent, a run or a page'],
  ['/', 'filter or search'],
  ['j, k', 'next and previous run or decision'],
  ['Enter', 'open the run'],
  ['x', 'choose the run'],
  ['a, r', 'approve or reject the decision'],
  ['g then o, r, a, s', 'go to overview, runs, approvals, sessions'],
  ['?', 'this help'],
]
const PAGES                                   = { o: '', r: 'runs', a: 'approvals', s: 'sessions' }
const STOPS = '.row-link, [data-card]'
export function keys()       {
  let going = false
  document.addEventListener('keydown', event => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      openPalette()
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    if (document.querySelector('dialog[open]') !== null || localStorage.getItem(OFF) !== null) return
    const wasGoing = going
    going = event.key === 'g' && !wasGoing
    const page = PAGES[event.key]
    if (wasGoing && page !== undefined) {
      location.href = root + page
      return
    }
    const act = ACTS[event.key]
    if (act?.()) event.preventDefault()
  })
}
const ACTS                                          = {
  j: () => move(1),
  k: () => move(-1),
  '/': () => focus(document.querySelector             ('[data-search]')),
  '?': () => showHelp(),
  x: () => press(stop()?.closest('tr')?.querySelector('[data-choose]')),
  a: () => press(decision()?.querySelector('button.main')),
  r: () => press(decision()?.querySelector('button.danger')),
}
const isTyping = (target                    )          =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches('input:not([type=checkbox]), select, textarea'))
const stop = ()                     => document.activeElement?.closest             (STOPS) ?? null
const decision = ()                     => document.activeElement?.closest             ('[data-card]') ?? null
function focus(one                                )          {
  one?.focus()
  return one != null
}
function press(one                            )          {
  if (!(one instanceof HTMLElement)) return false
  one.click()
  return true
}
function move(by        )          {
  const all = [...document.querySelectorAll             (STOPS)]
  const now = stop()
  const at = now === null ? -1 : all.indexOf(now)
  const next = all[at === -1 ? (by > 0 ? 0 : all.length - 1) : at + by]
  if (next?.matches('[data-card]')) next.tabIndex = -1
  next?.scrollIntoView({ block: 'nearest' })
  return focus(next)
}
function showHelp()          {
  const off = el('input', { type: 'checkbox' })
  off.checked = localStorage.getItem(OFF) !== null
  off.addEventListener('change', () => {
    if (off.checked) localStorage.setItem(OFF, '1')
    else localStorage.removeItem(OFF)
  })
  const dialog = el(
    'dialog',
    { 'aria-labelledby': 'keys-title' },
    el('h2', { id: 'keys-title' }, 'Keys'),
    el(
      'dl',
      { class: 'facts' },
      ...HELP.flatMap(([key, words]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, words)]),
    ),
    el('label', {}, off, 'Single keys do nothing'),
    el('form', { method: 'dialog' }, el('button', { class: 'main' }, 'Close')),
  )
  document.body.append(dialog)
  dialog.addEventListener('close', () => dialog.remove())
  dialog.showModal()
  return true
}
`,
  "lanes.js": `import { BAR_WIDTH, barsOf,                              } from './timeline.js'
export const LANE_PX = 28
const ROOM = 70
const HAIR = 2
export function lanesOf(steps                         , span      )        {
  const freeFrom           = []
  const last                          = []
  const bars            = []
  const names             = []
  const begun = steps.filter(({ pieces }) => pieces.length > 0)
  for (const step of begun.toSorted((a, b) => a.pieces[0] .fromMs - b.pieces[0] .fromMs)) {
    const { stepId, pieces, name, replayed } = step
    const fromMs = pieces[0] .fromMs
    const toMs = pieces.at(-1) .toMs ?? span.toMs
    const free = freeFrom.findIndex(at => at <= fromMs)
    const lane = free === -1 ? freeFrom.length : free
    freeFrom[lane] = Math.max(toMs, fromMs)
    for (const { x, width, className } of barsOf(step, span)) {
      const before = last[lane]
      if (before && width <= HAIR * 2 && before.className === className && before.replayed === replayed) {
        const end = Math.max(before.x + before.width, x + width)
        if (x - (before.x + before.width) <= HAIR) {
          before.width = end - before.x
          continue
        }
      }
      const bar = { stepId, lane, x, width, className, replayed }
      last[lane] = bar
      bars.push(bar)
    }
    const x = ((fromMs - span.fromMs) / (span.toMs - span.fromMs)) * BAR_WIDTH
    const width = ((toMs - fromMs) / (span.toMs - span.fromMs)) * BAR_WIDTH
    if (width >= ROOM) names.push({ stepId, words: name === '' ? stepId : name, lane, x, width })
  }
  return { count: freeFrom.length, bars, names }
}
export const across = (x        )         => \`\${(x / BAR_WIDTH) * 100}%\`
`,
  "manifest.js": `import { el, part } from './dom.js'
import { send } from './page-api.js'
import { completeNames } from './complete-names.js'
import { plainFields } from './plain-fields.js'
const QUIET_MS = 300
const text = part                     ('#manifest')
const said = part('#manifest-said')
let asked = 0
let waiting
function lineOf(source        , path        )         {
  let at = 0
  for (const name of path.split('.')) {
    const found = /^\\d+$/.test(name) ? -1 : source.indexOf(\`"\${name}"\`, at)
    if (found >= 0) at = found
  }
  return source.slice(0, at).split('\\n').length
}
async function check()                {
  const turn = ++asked
  const source = text.value
  let manifest
  try {
    manifest = JSON.parse(source)
  } catch (error) {
    show([{ path: '', message: error instanceof Error ? error.message : String(error) }])
    await offerYaml(source, turn)
    return
  }
  try {
    const { issues } = await send         ('POST', 'ui/manifest/check', { manifest })
    if (turn === asked) show(issues)
  } catch (error) {
    if (turn === asked) said.replaceChildren(error instanceof Error ? error.message : String(error))
  }
}
async function offerYaml(source        , turn        )                {
  const read = await send                       ('POST', 'ui/manifest/read', { text: source }).catch(() => undefined)
  if (turn !== asked || read?.manifest === undefined) return
  const { manifest } = read
  const button = el('button', { type: 'button' }, 'Write it as JSON')
  button.addEventListener('click', () => {
    text.value = JSON.stringify(manifest, null, 2)
    text.dispatchEvent(new Event('input', { bubbles: true }))
    text.focus()
  })
  said.append(el('p', { class: 'row' }, 'It can be read as YAML.', button))
}
function show(issues                   )       {
  text.setAttribute('aria-invalid', String(issues.length > 0))
  if (issues.length === 0) {
    said.replaceChildren(el('span', { class: 'good' }, '✓ This is a valid manifest.'))
    return
  }
  const lines = issues.map(({ path, message }) => {
    if (path === '') return el('li', {}, message)
    const line = lineOf(text.value, path)
    const go = el('button', { type: 'button', class: 'link' }, \`Line \${line}, \${path}\`)
    go.addEventListener('click', () => {
      const start =
        text.value
          .split('\\n')
          .slice(0, line - 1)
          .join('\\n').length + (line > 1 ? 1 : 0)
      text.focus()
      text.setSelectionRange(start, start + (text.value.slice(start).split('\\n', 1)[0]?.length ?? 0))
    })
    return el('li', {}, go, \`: \${message}\`)
  })
  said.replaceChildren(el('ul', { class: 'bad' }, ...lines))
}
text.addEventListener('input', () => {
  clearTimeout(waiting)
  waiting = setTimeout(() => void check(), QUIET_MS)
})
completeNames(text, JSON.parse(text.dataset.members ?? '[]')            )
plainFields(text)
void check()
`,
  "markdown.js": `const LOOK_AHEAD = 1000
const MOST_DEPTH = 4
const FENCE = /^ {0,3}(\`{3,}|~{3,})\\s*([\\w+#.-]{0,30})\\s*$/
const HEADING = /^ {0,3}(#{1,6}) (.*)$/
const ITEM = /^ {0,8}(?:([-*+])|(\\d{1,9})[.)]) (.*)$/
const QUOTE = /^ {0,3}> ?(.*)$/
const RULE = /^ {0,3}(?:-{3,}|\\*{3,}|_{3,})\\s*$/
export function markdownBlocks(text        )          {
  const lines = text.split('\\n')
  const blocks          = []
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]
    const [, fence, language = ''] = FENCE.exec(line) ?? []
    if (fence !== undefined) {
      let to = at + 1
      while (to < lines.length && !closes(lines[to] , fence)) to++
      blocks.push({ is: 'code', language, text: lines.slice(at + 1, to).join('\\n') })
      at = to + 1
      continue
    }
    if (line.trim() === '') {
      at++
      continue
    }
    const [block, next] = lineBlock(lines, at)
    blocks.push(block)
    at = next
  }
  return blocks
}
function closes(line        , fence        )          {
  const own = line.trim()
  return own.startsWith(fence) && own.replaceAll(fence[0] , '') === ''
}
function lineBlock(lines                   , at        )                  {
  const line = lines[at]
  const heading = HEADING.exec(line)
  if (heading) return [{ is: 'heading', level: heading[1] .length, inside: inline(heading[2] ) }, at + 1]
  if (RULE.test(line)) return [{ is: 'rule' }, at + 1]
  const item = ITEM.exec(line)
  if (item) return list(lines, at, item[2] !== undefined)
  const isQuote = QUOTE.test(line)
  let to = at
  while (to < lines.length && (isQuote ? QUOTE.test(lines[to] ) : to === at || isPlain(lines[to] ))) to++
  const own = lines.slice(at, to).map(one => (isQuote ? (QUOTE.exec(one)?.[1] ?? '') : one))
  return [{ is: isQuote ? 'quote' : 'paragraph', inside: inline(own.join('\\n')) }, to]
}
function list(lines                   , from        , ordered         )                  {
  const items           = []
  let at = from
  for (; at < lines.length; at++) {
    const line = lines[at]
    const item = ITEM.exec(line)
    if (item && (item[2] !== undefined) === ordered) items.push(item[3] )
    else if (!item && /^ {2,}\\S/.test(line)) items[items.length - 1] += \`\\n\${line.trim()}\`
    else break
  }
  return [{ is: 'list', ordered, items: items.map(text => inline(text)) }, at]
}
const isPlain = (line        )          =>
  line.trim() !== '' && ![FENCE, HEADING, ITEM, QUOTE, RULE].some(form => form.test(line))
export function inline(text        , depth = 0)           {
  const found           = []
  let plain = 0
  let at = 0
  const take = (one        , to        ) => {
    if (at > plain) found.push({ is: 'text', text: text.slice(plain, at) })
    found.push(one)
    plain = to
    at = to
  }
  while (at < text.length) {
    const mark = depth < MOST_DEPTH ? readMark(text, at, depth) : undefined
    if (mark) take(...mark)
    else at++
  }
  if (plain < text.length) found.push({ is: 'text', text: text.slice(plain) })
  return found
}
function readMark(text        , at        , depth        )                               {
  switch (text[at]) {
    case '\`': {
      const end = near(text, '\`', at + 1)
      return end > at + 1 ? [{ is: 'code', text: text.slice(at + 1, end) }, end + 1] : undefined
    }
    case '*':
    case '_':
      return emphasis(text, at, depth)
    case '!':
    case '[':
      return link(text, at, depth)
    default:
      return undefined
  }
}
function emphasis(text        , at        , depth        )                               {
  const letter = text[at]
  const isStrong = text[at + 1] === letter
  const mark = isStrong ? letter + letter : letter
  const from = at + mark.length
  if (/\\s/.test(text[from] ?? ' ') || (at > 0 && /\\w/.test(text[at - 1] ))) return undefined
  const end = near(text, mark, from)
  if (end <= from || /\\s/.test(text[end - 1] ) || /\\w/.test(text[end + mark.length] ?? ' ')) return undefined
  const inside = inline(text.slice(from, end), depth + 1)
  return [{ is: isStrong ? 'strong' : 'em', inside }, end + mark.length]
}
function link(text        , at        , depth        )                               {
  const isImage = text[at] === '!'
  const from = at + (isImage ? 2 : 1)
  if (isImage && text[at + 1] !== '[') return undefined
  const end = near(text, '](', from)
  const close = end === -1 ? -1 : near(text, ')', end + 2)
  if (close === -1) return undefined
  const words = text.slice(from, end)
  const href = text.slice(end + 2, close).trim()
  if (words.includes('\\n\\n') || /\\s/.test(href)) return undefined
  if (isImage) return [{ is: 'image', text: words, href }, close + 1]
  if (!/^https?:\\/\\/[^\\s]/i.test(href)) return undefined
  return [{ is: 'link', href, inside: inline(words, depth + 1) }, close + 1]
}
function near(text        , what        , from        )         {
  const found = text.slice(from, from + LOOK_AHEAD).indexOf(what)
  return found === -1 ? -1 : from + found
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
  "new-run.js": `import { el, part } from './dom.js'
import { send } from './page-api.js'
import { visible } from './foreign-text.js'
import {                  inputFields } from './input-fields.js'
export function newRun()       {
  const dialog = document.querySelector                   ('#new-run')
  if (dialog === null) return
  const agent = part                   ('[name=agentName]', dialog)
  const asJson = part                  ('#input-as-json')
  let fields
  let asked = 0
  function show()       {
    const kind = asJson.checked ? 'json' : fields === undefined ? 'message' : 'fields'
    for (const box of document.querySelectorAll             ('[data-input]')) {
      const isShown = box.dataset.input === kind
      box.hidden = !isShown
      for (const field of box.querySelectorAll                  ('input, select, textarea')) field.disabled = !isShown
    }
  }
  async function read()                {
    const turn = ++asked
    const path = \`ui/api/v1/agents/\${encodeURIComponent(agent.value)}\`
    const found = await send       ('GET', path).catch(() => undefined)
    if (turn !== asked) return
    const schema = found?.manifest.inputSchema
    fields = inputFields(schema)
    part('#input-fields').replaceChildren(...(fields ?? []).map(fieldView))
    asJson.checked = schema !== undefined && fields === undefined
    show()
  }
  function open()       {
    dialog?.showModal()
    void read()
  }
  document.querySelector('[data-open=new-run]')?.addEventListener('click', open)
  dialog.querySelector('[data-close]')?.addEventListener('click', () => dialog.close())
  agent.addEventListener('change', () => void read())
  asJson.addEventListener('change', show)
  if (dialog.dataset.openNow !== undefined) open()
}
function fieldView(field            )              {
  const { title, about, required } = field
  return el(
    'label',
    {},
    visible(title),
    required ? '' : el('small', {}, ' optional'),
    controlOf(field),
    about !== undefined && el('small', {}, visible(about)),
  )
}
function controlOf({ name, look, as, required, value, choices, limits }            )              {
  const common = { name: \`input.\${name}\`, 'data-as': as, required }
  if (look === 'choice') {
    const options = choices.map(one =>
      el('option', { value: one.value, selected: one.value === value }, visible(one.words)),
    )
    const none = required && value !== '' ? [] : [el('option', { value: '' }, required ? 'Choose …' : 'not given')]
    return el('select', common, ...none, ...options)
  }
  if (look === 'line' || look === 'number')
    return el('input', { type: look === 'number' ? 'number' : 'text', ...common, ...limits, value })
  const text = el('textarea', {
    ...common,
    ...limits,
    rows: look === 'json' ? 3 : 4,
    class: look === 'json' ? 'code' : undefined,
    placeholder: look === 'json' ? 'JSON' : undefined,
  })
  text.value = value
  return text
}
`,
  "no-script.css": `form[data-send],
.needs-script {
  display: none;
}
.panel {
  display: block;
}
[data-tabs] ~ .panel:not(.open) {
  display: none;
}
`,
  "older-rows.js": `import { parsed } from './refresh.js'
import { localTimes } from './times.js'
const AHEAD = '800px'
const MOST = 5000
const list = ()                     => document.querySelector             ('#runs')
const rowsIn = (box                               )                        => [
  ...(box?.querySelectorAll                     ('table.runs > tbody > tr:not(.below)') ?? []),
]
const linkIn = (box                               ) => box?.querySelector                   ('a[rel=next]') ?? null
export function olderRows()       {
  let first = rowsIn(list())
  let older                        = []
  let next = linkIn(list())?.getAttribute('href') ?? null
  let isAsking = false
  const seen = new IntersectionObserver(
    entries => {
      if (entries.some(one => one.isIntersecting)) void goOn()
    },
    { rootMargin: AHEAD },
  )
  function show()       {
    list()
      ?.querySelector('table.runs > tbody')
      ?.append(...older)
    const link = linkIn(list())
    if (link === null) return
    if (next === null) {
      link.remove()
      return
    }
    link.href = next
    seen.disconnect()
    if (first.length + older.length < MOST) seen.observe(link)
  }
  async function goOn()                {
    if (isAsking || next === null) return
    isAsking = true
    const page = await parsed(next)
    isAsking = false
    if (page === undefined) return
    const known = new Set([...first, ...older].map(({ dataset }) => dataset.run))
    const rows = rowsIn(page).filter(({ dataset }) => !known.has(dataset.run))
    older.push(...rows.map(row => document.importNode(row, true)))
    next = linkIn(page)?.getAttribute('href') ?? null
    show()
    localTimes()
  }
  document.addEventListener('refreshed', () => {
    const now = rowsIn(list())
    if (now[0] === first[0]) return
    if (older.length === 0) {
      first = now
      next = linkIn(list())?.getAttribute('href') ?? null
    } else {
      const known = new Set(now.map(({ dataset }) => dataset.run))
      older = [...first, ...older].filter(({ dataset }) => !known.has(dataset.run))
      first = now
      for (const row of older) row.querySelector('[data-sub-runs]')?.removeAttribute('aria-expanded')
    }
    show()
  })
  show()
}
`,
  "overview.js": `import { root } from './page-api.js'
import { toast } from './toast.js'
import { startDemo } from './demo-run.js'
document.addEventListener('click', async event => {
  const button = event.target instanceof Element ? event.target.closest                   ('#demo-run') : null
  if (button === null) return
  button.disabled = true
  try {
    location.href = \`\${root}runs/\${await startDemo()}\`
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error))
    button.disabled = false
  }
})
`,
  "own-connector.js": `import { el, part } from './dom.js'
import { count } from './figures.js'
import { send } from './page-api.js'
const QUIET_MS = 300
const MOST = 100
const EFFECTS = [
  ['read', 'only reads'],
  ['idempotent', 'may be repeated'],
  ['once', 'is sent once'],
]
function ownConnector(form                 )       {
  const text = part                     ('[name=openapi]', form)
  const file = part                  ('#own-file', form)
  const said = part('#own-said', form)
  const rest = part('#own-rest', form)
  const id = part                  ('[name=connectorId]', form)
  const address = part                  ('[name="config.baseUrl"]', form)
  const operations = operationList(form)
  let asked = 0
  let waiting
  async function look()                {
    const turn = ++asked
    if (text.value.trim() === '') {
      said.replaceChildren()
      text.removeAttribute('aria-invalid')
      rest.hidden = true
      return
    }
    try {
      const found = await send           ('POST', 'ui/openapi/look', { openapi: text.value })
      if (turn !== asked) return
      if ('problem' in found) complain(\`\${found.problem.place}: \${found.problem.message}\`)
      else show(found)
    } catch (error) {
      if (turn === asked) complain(error instanceof Error ? error.message : String(error))
    }
  }
  function complain(words        )       {
    text.setAttribute('aria-invalid', 'true')
    said.replaceChildren(el('span', { class: 'bad' }, words))
  }
  function show({ title, server, operations: found, keys }        )       {
    text.removeAttribute('aria-invalid')
    said.replaceChildren(el('span', { class: 'good' }, \`✓ \${title || 'An API'}, \${count(found.length)} operations.\`))
    rest.hidden = false
    if (id.value === '') id.value = idOf(title)
    address.placeholder = server ?? ''
    address.required = server === undefined
    operations.show(found)
    showKeys(form, keys)
    operations.tell()
  }
  text.addEventListener('input', () => {
    clearTimeout(waiting)
    waiting = setTimeout(() => void look(), QUIET_MS)
  })
  file.addEventListener('change', async () => {
    const [given] = file.files ?? []
    if (given === undefined) return
    if (given.size > text.maxLength) {
      complain(\`\${given.name} is larger than \${count(text.maxLength)} bytes, which is the most there can be\`)
      return
    }
    text.value = await given.text()
    text.dataset.typed = ''
    void look()
  })
  void look()
}
function operationList(form                 ) {
  const filter = part                  ('#own-filter', form)
  let rows        = []
  function show(operations                     )       {
    const before = new Map(rows.map(({ operation, box }) => [operation.operationId, box.checked]))
    const reading = operations.filter(({ effect, problem }) => effect === 'read' && problem === undefined)
    const all = reading.length <= MOST
    rows = operations.map(operation => {
      const { operationId, effect, problem } = operation
      const row = rowOf(operation)
      row.box.checked = problem === undefined && (before.get(operationId) ?? (all && effect === 'read'))
      return row
    })
    part('#own-operations', form).replaceChildren(...rows.map(({ line }) => line))
    sift()
  }
  function tell()       {
    const chosen = rows.filter(({ box }) => box.checked)
    const words = \`\${count(chosen.length)} of \${count(rows.length)} chosen\`
    const most = chosen.length > MOST ? \`; an install has at most \${MOST}\` : ''
    part('#own-count', form).replaceChildren(words + most)
    const needed = new Set(chosen.flatMap(({ operation }) => operation.keys.map(key => \`config.\${key}\`)))
    for (const field of part('#own-keys', form).querySelectorAll('input')) {
      field.disabled = !needed.has(field.name)
      if (field.parentElement) field.parentElement.hidden = field.disabled
    }
  }
  function sift()       {
    const wanted = filter.value.trim().toLowerCase()
    for (const { operation, line } of rows) {
      const { name, operationId, path, about } = operation
      line.hidden = ![name, operationId, path, about].some(one => one.toLowerCase().includes(wanted))
    }
  }
  function choose(which                                  )       {
    for (const { operation, box } of rows) box.checked = operation.problem === undefined && which(operation)
    tell()
  }
  part('#own-operations', form).addEventListener('change', tell)
  filter.addEventListener('input', sift)
  filter.addEventListener('keydown', event => {
    if (event.key === 'Enter') event.preventDefault()
  })
  part('#own-reads', form).addEventListener('click', () => choose(({ effect }) => effect === 'read'))
  part('#own-none', form).addEventListener('click', () => choose(() => false))
  return { show, tell }
}
function showKeys(form                 , keys                )       {
  const box = part('#own-keys', form)
  const before = new Map([...box.querySelectorAll('input')].map(({ name, value }) => [name, value]))
  const fields = keys.map(({ name, secret }) => {
    const field = el('input', {
      name: \`config.\${name}\`,
      type: secret ? 'password' : 'text',
      autocomplete: 'off',
      spellcheck: 'false',
    })
    field.value = before.get(field.name) ?? ''
    return el('label', {}, \`\${name} \`, field)
  })
  box.replaceChildren(...fields)
}
function rowOf(operation          )      {
  const { operationId, name, method, path, about, effect, problem } = operation
  const box = el('input', { type: 'checkbox', name: 'operations', 'data-as': 'many-json' })
  box.disabled = problem !== undefined
  const select = el(
    'select',
    { 'aria-label': \`What a second call of \${name} does\`, disabled: box.disabled },
    EFFECTS.map(([value, words]) => el('option', { value, selected: value === effect }, words)),
  )
  const keep = () => {
    box.value = JSON.stringify({ operationId, name, effect: select.value })
  }
  keep()
  select.addEventListener('change', keep)
  const line = el(
    'div',
    { class: 'operation' },
    el('label', {}, box, el('code', {}, name), el('small', { class: 'mono' }, \` \${method} \${path}\`)),
    select,
    el('small', { class: problem === undefined ? undefined : 'bad' }, problem ?? about),
  )
  return { operation, box, line }
}
function idOf(title        )         {
  const name = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 19)
    .replaceAll(/^-+|-+$/g, '')
  return \`http-\${name || 'api'}\`
}
const form = document.querySelector                 ('#own-connector')
if (form !== null) ownConnector(form)
`,
  "page-api.js": `import { el, part } from './dom.js'
export class ApiFault extends Error {
           status
           details
  constructor(status        , message        , details                      = []) {
    super(message)
    this.name = 'ApiFault'
    this.status = status
    this.details = details
  }
}
const page = document.documentElement
export const root = page.dataset.root ?? './'
export async function send   (method        , path        , body          )             {
  for (;;) {
    const headers                         = { 'x-csrf-token': page.dataset.csrf ?? '' }
    if (body !== undefined) headers['content-type'] = 'application/json'
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await fetch(\`\${root}\${path}\`, { method, headers, cache: 'no-store', ...text }).catch(() => undefined)
    if (answer === undefined) throw new ApiFault(0, 'The runtime does not answer. Is it running?')
    const given          = await answer.json().catch(() => undefined)
    if (answer.ok) return given
    const { error, code, details } = (given ?? {})
    if ((answer.status === 401 || code === 'csrf') && (await logInAgain())) continue
    throw new ApiFault(answer.status, error ?? \`The runtime answered \${answer.status} and no words.\`, details)
  }
}
let asking
export function logInAgain()                   {
  asking ??= ask().finally(() => {
    asking = undefined
  })
  return asking
}
function ask()                   {
  const dialog = part                   ('#login-again')
  const form = part                 ('form', dialog)
  const said = part('[role=alert]', form)
  said.replaceChildren()
  dialog.showModal()
  return new Promise(resolve => {
    const end = (done         ) => {
      ended.abort()
      dialog.close()
      resolve(done)
    }
    const ended = new AbortController()
    const { signal } = ended
    part('[value=later]', form).addEventListener('click', () => end(false), { signal })
    dialog.addEventListener('cancel', () => end(false), { signal })
    form.addEventListener(
      'submit',
      async event => {
        event.preventDefault()
        const { email, password } = Object.fromEntries(new FormData(form))
        const answer = await fetch(\`\${root}auth/login\`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ email, password, tenantId: page.dataset.tenant }),
        }).catch(() => undefined)
        const body = (await answer?.json().catch(() => undefined))
        if (answer?.ok && body?.csrfToken !== undefined) {
          page.dataset.csrf = body.csrfToken
          for (const field of document.querySelectorAll                  ('input[name=csrf]'))
            field.value = body.csrfToken
          form.reset()
          end(true)
        } else said.replaceChildren(body?.error ?? 'The runtime does not answer. Is it running?')
      },
      { signal },
    )
  })
}
export function shownOnce(words        , secret        )              {
  const copy = el('button', { type: 'button' }, 'Copy')
  copy.addEventListener('click', async () => {
    const done = await navigator.clipboard?.writeText(secret).then(
      () => true,
      () => false,
    )
    copy.replaceChildren(done ? 'Copied' : 'Select it and copy it')
  })
  return el('div', { class: 'once' }, words, el('code', {}, secret), copy)
}
`,
  "palette.js": `import { el } from './dom.js'
import { visible } from './foreign-text.js'
import { root } from './page-api.js'
const MOST_SHOWN = 12
const QUIET_MS = 150
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
export function palette()       {
  document.querySelector('#open-palette')?.addEventListener('click', openPalette)
}
export function openPalette()       {
  if (document.querySelector('dialog[open]') !== null) return
  const list = el('ul', { id: 'palette-list', role: 'listbox', 'aria-label': 'Places' })
  const field = el('input', {
    type: 'text',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-controls': 'palette-list',
    'aria-label': 'Go to an agent, a run or a page',
    placeholder: 'An agent, a run or a page',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  const dialog = el('dialog', { class: 'palette wide-dialog', 'aria-label': 'Go to' }, field, list)
  let places          = pagesOfMenu()
  let hits                                     = { words: '', places: [] }
  let shown          = []
  let at = 0
  function draw()       {
    const words = field.value.trim()
    const named = matching(places, words)
    const known = new Set(named.map(({ href }) => href))
    const others = hits.words === words ? hits.places.filter(({ href }) => !known.has(href)) : []
    shown = [...named, ...others].slice(0, MOST_SHOWN)
    at = Math.min(at, Math.max(0, shown.length - 1))
    const items = shown.map((place, i) => {
      const item = el(
        'li',
        { id: \`palette-\${i}\`, role: 'option', 'aria-selected': String(i === at) },
        el('span', {}, visible(place.words)),
        el('small', {}, place.kind),
      )
      item.addEventListener('click', () => go(place))
      return item
    })
    list.replaceChildren(...items)
    field.setAttribute('aria-activedescendant', shown.length === 0 ? '' : \`palette-\${at}\`)
  }
  let waiting
  field.addEventListener('input', () => {
    at = 0
    draw()
    clearTimeout(waiting)
    const words = field.value.trim()
    if (words.length < 3) return
    waiting = setTimeout(async () => {
      const found = await runs({ q: words })
      if (field.value.trim() !== words) return
      hits = { words, places: found }
      draw()
    }, QUIET_MS)
  })
  field.addEventListener('keydown', event => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const chosen = shown[at]
    if (event.key === 'Enter' && chosen !== undefined) go(chosen)
    if (by === undefined || shown.length === 0) return
    event.preventDefault()
    at = (at + by + shown.length) % shown.length
    draw()
  })
  dialog.addEventListener('close', () => dialog.remove())
  document.body.append(dialog)
  dialog.showModal()
  draw()
  void Promise.all([agents(), runs()]).then(found => {
    places = [...places, ...found.flat()]
    draw()
  })
}
function go({ href }       )       {
  location.href = href
}
function pagesOfMenu()          {
  return [...document.querySelectorAll                   ('#menu a')].map(link => ({
    words: link.querySelector('span')?.textContent ?? link.textContent ?? '',
    kind: 'Page',
    href: link.href,
  }))
}
async function read   (path        )               {
  const answer = await fetch(\`\${root}ui/api/v1/\${path}\`, { cache: 'no-store' }).catch(() => undefined)
  return answer?.ok ? ((await answer.json())       ) : []
}
async function agents()                   {
  const found = await read                  ('agents?limit=200')
  return found.map(({ name }) => ({ words: name, kind: 'Agent', href: \`\${root}agents/\${encodeURIComponent(name)}\` }))
}
async function runs(asked                         = {})                   {
  const query = new URLSearchParams({ fields: 'title', subRuns: 'folded', limit: '100', ...asked })
  const found = await read                                                   (\`runs?\${query}\`)
  return found.map(({ id, title, agentName }) => ({
    words: title ?? \`\${agentName} …\${id.slice(-12)}\`,
    kind: 'Run',
    href: \`\${root}runs/\${id}\`,
  }))
}
function matching(places                  , words        )          {
  const wanted = words.toLowerCase()
  if (UUID.test(wanted)) return [{ words: \`Run \${wanted}\`, kind: 'Run', href: \`\${root}runs/\${wanted}\` }]
  const place = ({ words: of }       ) => of.toLowerCase().indexOf(wanted)
  const found = places.filter(one => place(one) !== -1)
  return [...found.filter(one => place(one) === 0), ...found.filter(one => place(one) > 0)]
}
`,
  "plain-fields.js": `export function plainFields(editor                     )       {
  const fields = [...document.querySelectorAll                                        ('[data-member]')]
  function read()                                      {
    try {
      const value          = JSON.parse(editor.value)
      return typeof value === 'object' && value !== null && !Array.isArray(value)
        ? (value                           )
        : undefined
    } catch {
      return undefined
    }
  }
  function fill()       {
    const manifest = read()
    for (const field of fields) {
      field.disabled = manifest === undefined
      const value = manifest?.[field.dataset.member ?? '']
      if (manifest !== undefined && document.activeElement !== field)
        field.value = typeof value === 'string' ? value : ''
    }
  }
  for (const field of fields)
    field.addEventListener('input', () => {
      const manifest = read()
      if (manifest === undefined) return
      const name = field.dataset.member ?? ''
      const { [name]: _, ...others } = manifest
      const changed = field.value === '' ? others : { ...manifest, [name]: field.value }
      editor.value = JSON.stringify(changed, null, 2)
      editor.dataset.typed = ''
      editor.dispatchEvent(new Event('input', { bubbles: true }))
    })
  editor.addEventListener('input', fill)
  fill()
}
`,
  "post-open.js": `import { root } from './page-api.js'
export async function postOpen   (path        , body        )                                                         {
  const answer = await fetch(root + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).catch(() => undefined)
  const given          = await answer?.json().catch(() => undefined)
  const none = { error: 'The runtime does not answer. Is it running?' }
  return { ok: answer?.ok === true, body: (given ?? none)                           }
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
  "refresh.js": `import { logInAgain } from './page-api.js'
const policy         = (globalThis                                    ).trustedTypes?.createPolicy('waybill-pages', {
  createHTML: text => text,
}) ?? { createHTML: text => text }
let etag = document.documentElement.dataset.etag ?? ''
async function current(told         )                                {
  const headers = { 'x-look': told ? 'told' : 'now', 'if-none-match': etag }
  const answer = await fetch(location.href, { cache: 'no-store', headers }).catch(() => undefined)
  if (answer === undefined) return undefined
  if (answer.status === 401) return (await logInAgain()) ? current(told) : undefined
  if (!answer.ok) return undefined
  etag = answer.headers.get('etag') ?? ''
  return documentOf(await answer.text())
}
const documentOf = (text        )           => new DOMParser().parseFromString(policy.createHTML(text), 'text/html')
export async function parsed(address        )                                {
  const answer = await fetch(address, { cache: 'no-store' }).catch(() => undefined)
  return answer?.ok ? documentOf(await answer.text()) : undefined
}
let going
let after
export function refresh(told = false)                {
  if (going === undefined) return begin(told)
  if (after === undefined) after = { told, done: going.then(() => begin(after?.told === true)) }
  else after.told &&= told
  return after.done
}
function begin(told         )                {
  after = undefined
  going = swap(told)
    .catch((error         ) => reportError(error))
    .finally(() => {
      going = undefined
    })
  return going
}
const LONGEST_PRESS_MS = 1000
let pressed
document.addEventListener('pointerdown', () => {
  const { promise, resolve } = Promise.withResolvers      ()
  pressed = promise
  for (const name of ['pointerup', 'pointercancel'])
    window.addEventListener(name, () => setTimeout(resolve), { once: true })
  setTimeout(resolve, LONGEST_PRESS_MS)
})
async function swap(told         )                {
  const now = await current(told)
  await pressed
  if (now !== undefined) for (const old of document.querySelectorAll             ('[data-live]')) renew(old, now)
  document.dispatchEvent(new Event('refreshed'))
}
function renew(old             , now          )       {
  const fresh = now.getElementById(old.id)
  if (fresh === null || same(fresh, old)) return
  if (inUse(old)) {
    etag = ''
    return
  }
  const next = document.importNode(fresh, true)
  keepOpen(old, next)
  const at = placeOfFocus(old)
  const scrolled = old.scrollLeft
  old.replaceWith(next)
  next.scrollLeft = scrolled
  if (at !== undefined) next.querySelector             (at)?.focus({ preventScroll: true })
}
function placeOfFocus(part             )                     {
  const { activeElement: at } = document
  if (!(at instanceof HTMLElement) || !part.contains(at)) return undefined
  if (at.id !== '') return \`#\${CSS.escape(at.id)}\`
  if (at.dataset.card !== undefined) return \`[data-card="\${CSS.escape(at.dataset.card)}"]\`
  const href = at.getAttribute('href')
  return href === null ? undefined : \`a[href="\${CSS.escape(href)}"]\`
}
function same(fresh         , old         )          {
  const plain = old.cloneNode(true)
  for (const output of plain.querySelectorAll('output')) output.replaceChildren()
  const given = fresh.cloneNode(true)
  for (const one of [plain, given]) withoutOwn(one)
  return given.isEqualNode(plain)
}
function withoutOwn(part         )       {
  for (const one of part.querySelectorAll('details')) one.removeAttribute('open')
  for (const one of part.querySelectorAll('time')) {
    one.removeAttribute('title')
    one.replaceChildren()
  }
}
function inUse(part             )          {
  if (part.querySelector('[data-typed], [aria-busy=true], .once') !== null) return true
  return part.contains(document.activeElement) && document.activeElement?.matches('input, select, textarea') === true
}
function keepOpen(old             , next             )       {
  const before = old.querySelectorAll('details')
  next.querySelectorAll('details').forEach((one, at) => {
    if (before[at]?.open) one.open = true
  })
  const said = new Map([...old.querySelectorAll('output')].map(one => [placeOf(one), one]))
  for (const output of next.querySelectorAll('output')) {
    const words = said.get(placeOf(output))?.childNodes ?? []
    if (words.length > 0) output.replaceChildren(...words)
  }
}
function placeOf(output                   )         {
  return output.id || (output.closest('form')?.dataset.send ?? '')
}
document.addEventListener('input', event => {
  if (event.target instanceof HTMLElement) event.target.dataset.typed = ''
})
`,
  "relative-time.js": `const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
export function relativeTime(atMs        , nowMs        )         {
  const size = Math.abs(nowMs - atMs)
  if (size < 10_000) return 'now'
  const words = wordsOf(size)
  return atMs < nowMs ? \`\${words} ago\` : \`in \${words}\`
}
function wordsOf(ms        )         {
  if (ms < MINUTE) return \`\${Math.floor(ms / 1000)}\\u00a0s\`
  if (ms < HOUR) return \`\${Math.floor(ms / MINUTE)}\\u00a0min\`
  if (ms < 2 * DAY) return \`\${Math.floor(ms / HOUR)}\\u00a0h\`
  if (ms < 60 * DAY) return \`\${Math.floor(ms / DAY)}\\u00a0days\`
  if (ms < 700 * DAY) return \`\${Math.floor(ms / (30.4 * DAY))}\\u00a0months\`
  return \`\${Math.floor(ms / (365.25 * DAY))}\\u00a0years\`
}
`,
  "run-events.js": `import { root } from './page-api.js'
import { eventNames } from './event-names.js'
const ENDED = new Set(['succeeded', 'failed', 'cancelled'])
export function followRun(id        , { over, begun, failed, event, resumed, ended }           )       {
  const at = \`\${root}ui/api/v1/runs/\${encodeURIComponent(id)}\`
  if (over) {
    void fetch(\`\${at}/journal\`)
      .then(async answer => {
        if (!answer.ok) throw new Error(\`the runtime answered \${answer.status}\`)
        begun(((await answer.json())                               ).events)
      })
      .catch(() => failed?.())
    return
  }
  let broken = false
  let source = open()
  function open()              {
    const stream = new EventSource(\`\${at}/events\`)
    stream.addEventListener('open', () => {
      if (broken) resumed()
      broken = false
    })
    for (const name of eventNames) {
      stream.addEventListener(name, message => event(JSON.parse((message                        ).data)))
    }
    stream.addEventListener('error', async () => {
      broken = true
      const answer = await fetch(\`\${at}?fields=summary\`, { cache: 'no-store' }).catch(() => undefined)
      const run = answer?.ok ? ((await answer.json())                      ) : undefined
      if (run !== undefined && ENDED.has(run.status)) {
        stream.close()
        ended()
      } else if (stream.readyState === EventSource.CLOSED && stream === source) {
        setTimeout(() => {
          source = open()
        }, 3000)
      }
    })
    return stream
  }
}
`,
  "run.js": `import { el, part, svg } from './dom.js'
import { count, duration, money } from './figures.js'
import { root } from './page-api.js'
import { refresh } from './refresh.js'
import { skeleton } from './skeleton.js'
import { tabs } from './tabs.js'
import { across, LANE_PX, lanesOf } from './lanes.js'
import { followRun } from './run-events.js'
import { stepPanel } from './step-panel.js'
import {
  BAR_WIDTH,
  barsOf,
  marksOf,
  spanOf,
  stepName,
  timelineOf,
  tookMs,
} from './timeline.js'
import { verifyButtons } from './verify.js'
import { virtualRows } from './virtual-rows.js'
const ROW_PX = 30
const LETTER_PX = 6.5
const page = part('#run')
const id = page.dataset.run
const stepBox = part('#timeline')
const journalBox = part('#journal')
const firstRows = [...stepBox.querySelectorAll             ('.line[data-step]')]
const steps = virtualRows(stepBox, ROW_PX, part('.line.head', stepBox))
const journal = virtualRows(journalBox, ROW_PX, part('.line.head', journalBox))
const detail = part('#step')
const pages = tabs(part('#run-tabs'))
const long =
  page.dataset.events === undefined
    ? undefined
    : { events: Number(page.dataset.events), steps: Number(page.dataset.steps) }
let isRead = false
let isWanted = false
let events                  = []
let replayed = new Set((page.dataset.replayed ?? '').split(' ').filter(Boolean))
let chosen                     = named()
function draw()       {
  if (long !== undefined && !isRead) {
    drawFirst(long)
    return
  }
  const all = timelineOf(events, replayed)
  const span = spanOf(all, Date.now())
  steps.show({ count: all.length, row: at => stepRow(all[at] , span) })
  drawLanes(all, span)
  journal.show({ count: events.length, row: at => eventRow(events[at] ) })
  part('#journal-count').replaceChildren(count(events.length))
  part('#no-steps').hidden = all.length > 0
  part('#step-count').replaceChildren(count(all.length))
  drawFigures(all, span)
  showStep()
}
function drawFirst(all                                   )       {
  steps.show({ count: all.steps, row: at => (firstRows[at] === undefined ? unread(stepBox) : firstRow(firstRows[at])) })
  journal.show({ count: all.events, row: () => unread(journalBox) })
  showStep()
  performance.mark('run-drawn')
}
function firstRow(line             )              {
  const { step } = line.dataset
  const pressed = String(chosen === step)
  const row = el('button', { type: 'button', class: 'line', title: line.title || undefined, 'aria-pressed': pressed })
  row.append(...line.cloneNode(true).childNodes)
  row.addEventListener('click', () => choose(chosen === step ? undefined : step))
  return row
}
function unread(box             )              {
  if (box.clientHeight > 0) read()
  return el('button', { type: 'button', class: box === journalBox ? 'line event' : 'line' }, el('span', {}, '…'))
}
function drawFigures(all                         , span      )       {
  if (page.dataset.over !== undefined || document.querySelector('#run-over') !== null || all.length === 0) return
  const sum = (of                                ) => all.reduce((total, step) => total + of(step), 0)
  const figures                         = {
    '#strip-time': duration(span.toMs - span.fromMs),
    '#strip-tokens': \`\${count(sum(one => one.tokensIn))} in, \${count(sum(one => one.tokensOut))} out\`,
    '#strip-cost': money(Math.round(sum(one => one.costUsd) * 1e9) / 1e9),
  }
  for (const [selector, words] of Object.entries(figures)) document.querySelector(selector)?.replaceChildren(words)
}
function drawLanes(all                         , span      )       {
  const { count: lines, bars, names } = lanesOf(all, span)
  const picture = svg('svg', { class: 'picture', width: '100%', height: lines * LANE_PX, 'aria-hidden': 'true' })
  for (const { stepId, lane, x, width, className, replayed } of bars) {
    const at = { x: across(x), width: across(width), y: lane * LANE_PX + 15, height: 10 }
    const look = \`\${className}\${replayed ? ' replayed' : ''}\${stepId === chosen ? ' chosen' : ''}\`
    picture.append(svg('rect', { ...at, class: look, 'data-step': stepId }, svg('title', {}, stepId)))
  }
  const room = part('#lanes').clientWidth / BAR_WIDTH
  for (const { words, lane, x, width } of names) {
    const fitting = shortened(words, width * room)
    if (fitting === '') continue
    const at = { x: across(x), width: across(width), y: lane * LANE_PX, height: 15 }
    picture.append(svg('svg', at, svg('text', { x: 0, y: 11 }, fitting)))
  }
  part('#lanes').replaceChildren(picture)
  part('#span').replaceChildren(all.length === 0 ? '' : duration(span.toMs - span.fromMs))
}
function shortened(words        , px        )         {
  const letters = Math.floor(px / LETTER_PX) - 1
  return words.length <= letters ? words : letters < 6 ? '' : \`\${words.slice(0, letters - 1)}…\`
}
let shown = ''
function choose(stepId                    )       {
  chosen = stepId
  if (stepId !== undefined) read()
  const address = stepId === undefined ? location.pathname + location.search : \`#step=\${encodeURIComponent(stepId)}\`
  history.replaceState(null, '', address)
  showStep()
  draw()
  if (stepId === undefined) return
  pages.open('timeline')
  detail.scrollIntoView({ block: 'nearest' })
}
function showStep()       {
  const step = timelineOf(events, replayed).find(one => one.stepId === chosen)
  const isComing = chosen !== undefined && long !== undefined && !isRead
  const now = isComing ? \`reading \${chosen}\` : step === undefined ? '' : \`\${step.stepId} \${step.status} \${step.attempt}\`
  if (now === shown) return
  shown = now
  if (isComing) {
    detail.replaceChildren(el('p', { class: 'unseen' }, 'Reading the journal …'))
    skeleton(detail)
    return
  }
  const close = () => choose(undefined)
  const { router, agent = '', version = '' } = page.dataset
  const deps = { runId: id, events, router, agentName: agent, versionId: version, close }
  detail.replaceChildren(...(step === undefined ? [] : stepPanel(step, deps)))
}
function named()                     {
  const value = /^#step=(.+)$/.exec(location.hash)?.[1]
  try {
    return value === undefined ? undefined : decodeURIComponent(value)
  } catch {
    return undefined
  }
}
window.addEventListener('hashchange', () => choose(named()))
part('#lanes').addEventListener('click', event => {
  const { target } = event
  if (target instanceof SVGElement && target.dataset.step !== undefined) choose(target.dataset.step)
})
function stepRow(step              , span      )              {
  const { stepId, tokensIn, tokensOut, costUsd, error } = step
  const took = tookMs(step)
  const words = [...marksOf(step), ...(error === undefined ? [] : [error])].join(' · ')
  const bars = barsOf(step, span).map(({ x, width, className }) =>
    svg('rect', { x, y: 0, width, height: 10, class: className }),
  )
  const row = el(
    'button',
    { type: 'button', class: 'line', title: words || undefined, 'aria-pressed': String(chosen === stepId) },
    el(
      'span',
      { class: error === undefined ? undefined : 'bad' },
      stepName(step),
      words && el('small', {}, \` \${words}\`),
    ),
    svg(
      'svg',
      { viewBox: \`0 0 \${BAR_WIDTH} 10\`, preserveAspectRatio: 'none', class: 'bar', 'aria-hidden': 'true' },
      ...bars,
    ),
    el('span', { class: 'num' }, took === undefined ? '…' : duration(took)),
    el('span', { class: 'num' }, tokensIn + tokensOut === 0 ? '' : \`\${count(tokensIn)} → \${count(tokensOut)}\`),
    el('span', { class: 'num' }, costUsd === 0 ? '' : money(costUsd)),
  )
  row.addEventListener('click', () => {
    choose(chosen === stepId ? undefined : stepId)
  })
  return row
}
function eventRow({ seq, kind, stepId, at, hash, payload }               )              {
  const row = el(
    'button',
    { type: 'button', class: 'line event', title: JSON.stringify(payload).slice(0, 400) },
    el('span', {}, String(seq)),
    el('span', {}, kind),
    el('span', {}, stepId),
    el('span', {}, at.replace('T', ' ').replace('Z', '')),
    el('span', { class: 'mono' }, hash),
  )
  row.addEventListener('click', () => {
    choose(stepId)
  })
  return row
}
let drawing = false
function soon()       {
  if (drawing) return
  drawing = true
  setTimeout(() => {
    drawing = false
    draw()
  }, 60)
}
async function askReplayed()                {
  const answer = await fetch(\`\${root}ui/api/v1/runs/\${id}/steps\`).catch(() => undefined)
  if (!answer?.ok) return
  const list = (await answer.json())
  const now = new Set(list.filter(step => step.replayed).map(step => step.stepId))
  if (now.size === replayed.size) return
  replayed = now
  soon()
}
function read()       {
  if (isWanted) return
  isWanted = true
  followRun(id, {
    over: page.dataset.over !== undefined,
    begun(all) {
      isRead = true
      events = all
      draw()
      performance.mark('run-drawn')
      if (chosen !== undefined) detail.scrollIntoView({ block: 'nearest' })
      if (long !== undefined) void askReplayed()
    },
    failed() {
      isWanted = false
    },
    event(one) {
      if (one.seq <= (events.at(-1)?.seq ?? 0)) return
      events.push(one)
      soon()
      if (one.kind === 'step_waiting') void refresh()
    },
    resumed: () => void askReplayed(),
    ended: () => void refresh(),
  })
}
if (long !== undefined) drawFirst(long)
if (long === undefined || chosen !== undefined) read()
setInterval(() => {
  if (!document.hidden && page.dataset.over === undefined && document.querySelector('#run-over') === null) draw()
}, 1000)
verifyButtons()
`,
  "runs.js": `import { part } from './dom.js'
import { many } from './figures.js'
import { askFirst } from './ask-first.js'
import { root } from './page-api.js'
import { parsed } from './refresh.js'
import { sendEach } from './send-each.js'
import { localTimes } from './times.js'
import { toast } from './toast.js'
import { newRun } from './new-run.js'
import { olderRows } from './older-rows.js'
import { savedViews } from './saved-views.js'
const boxes = () => [...document.querySelectorAll                  ('[data-choose]')]
const chosen = () => boxes().filter(box => box.checked)
function showBulk()       {
  const all = chosen()
  const of = (state        ) => all.filter(box => box.dataset.state === state).length
  part('#bulk').hidden = all.length === 0
  part('#bulk-count').replaceChildren(\`\${many(all.length, 'run')} chosen\`)
  part                   ('#bulk-cancel').disabled = of('open') === 0
  part                   ('#bulk-retry').disabled = of('over') === 0
  part                   ('#bulk-compare').disabled = all.length !== 2
}
document.addEventListener('change', event => {
  if (!(event.target instanceof HTMLInputElement)) return
  if (event.target.dataset.chooseAll !== undefined) for (const box of boxes()) box.checked = event.target.checked
  if (event.target.dataset.chooseAll !== undefined || event.target.dataset.choose !== undefined) showBulk()
})
document.addEventListener('refreshed', showBulk)
function chooseNone()       {
  for (const box of document.querySelectorAll                  ('[data-choose], [data-choose-all]')) {
    box.checked = false
    delete box.dataset.typed
  }
  showBulk()
}
async function each(state        , verb        , done        , sure        )                {
  const ids = chosen().flatMap(({ dataset }) => (dataset.state === state && dataset.choose ? [dataset.choose] : []))
  if (!(await askFirst(sure.replace('{n}', many(ids.length, 'run'))))) return
  chooseNone()
  await sendEach({ ids, path: id => \`ui/api/v1/runs/\${id}/\${verb}\`, one: 'run', done })
}
part('#bulk-cancel').addEventListener('click', () =>
  each('open', 'cancel', 'cancelled', 'Cancel {n} with their sub-runs? That is final.'),
)
part('#bulk-retry').addEventListener('click', () =>
  each(
    'over',
    'retry',
    'started anew',
    'Retry {n} from their failed steps? Each begins a new run, which costs what it costs.',
  ),
)
part('#bulk-compare').addEventListener('click', () => {
  const [b = '', a = ''] = chosen().map(({ dataset }) => dataset.choose ?? '')
  location.href = \`\${root}compare?\${new URLSearchParams({ a, b })}\`
})
part('#bulk-none').addEventListener('click', () => {
  const ids = new Set(chosen().map(({ dataset }) => dataset.choose))
  chooseNone()
  toast(\`\${many(ids.size, 'run')} no longer chosen.\`, () => {
    for (const box of boxes()) if (ids.has(box.dataset.choose)) box.checked = true
    showBulk()
  })
})
const opened = new Set        ()
async function showBelow(link                   , id        )                {
  link.setAttribute('aria-expanded', 'true')
  link.replaceChildren((link.textContent ?? '').replace(/^./, '▾'))
  const page = await parsed(link.href)
  if (!opened.has(id) || !link.isConnected) return
  hideBelow(id)
  const rows = [...(page?.querySelectorAll                     ('table.runs tbody tr') ?? [])].map(row => {
    const copy = document.importNode(row, true)
    copy.dataset.below = id
    copy.classList.add('below')
    return copy
  })
  link.closest('tr')?.after(...rows)
  localTimes()
}
function hideBelow(id        )       {
  for (const old of document.querySelectorAll(\`tr[data-below="\${id}"]\`)) old.remove()
}
document.addEventListener('click', event => {
  const link = event.target instanceof Element ? event.target.closest                   ('[data-sub-runs]') : null
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  const id = link.dataset.subRuns ?? ''
  if (opened.delete(id)) {
    link.setAttribute('aria-expanded', 'false')
    link.replaceChildren((link.textContent ?? '').replace(/^./, '▸'))
    hideBelow(id)
    return
  }
  opened.add(id)
  void showBelow(link, id)
})
olderRows()
document.addEventListener('refreshed', () => {
  for (const link of document.querySelectorAll                   ('[data-sub-runs]:not([aria-expanded=true])')) {
    const id = link.dataset.subRuns ?? ''
    if (opened.has(id)) void showBelow(link, id)
  }
})
newRun()
savedViews()
`,
  "saved-views.js": `import { el } from './dom.js'
import { toast } from './toast.js'
import { visible } from './foreign-text.js'
const MOST = 20
const key = ()         => \`waybill-views \${document.documentElement.dataset.tenant ?? ''}\`
function stored()         {
  try {
    const all          = JSON.parse(localStorage.getItem(key()) ?? '[]')
    return Array.isArray(all) ? all.filter((one)              => isView(one)).slice(0, MOST) : []
  } catch {
    return []
  }
}
function isView(value         )                {
  const { name, query } = (value ?? {})
  return typeof name === 'string' && typeof query === 'string'
}
export function savedViews()       {
  const box = document.querySelector             ('#views')
  if (box === null) return
  const now = queryOf(location.search)
  function draw()       {
    const views = stored()
    const links = views.map(view => {
      const remove = el('button', { type: 'button', class: 'copy', 'aria-label': \`Forget the view \${view.name}\` }, '×')
      remove.addEventListener('click', () => {
        keep(views.filter(one => one !== view))
        toast(\`The view \${visible(view.name)} is forgotten.\`, () => keep(views))
      })
      const link = el(
        'a',
        { href: \`?\${view.query}\`, 'aria-current': view.query === now ? 'true' : undefined },
        visible(view.name),
      )
      return el('span', { class: 'view' }, link, remove)
    })
    const isNew = box?.dataset.savable !== undefined && !views.some(({ query }) => query === now) && views.length < MOST
    box?.replaceChildren(...links, ...(isNew ? [saveForm(views)] : []))
  }
  function saveForm(views                 )              {
    const name = el('input', {
      required: true,
      maxlength: 60,
      placeholder: 'Name of this view',
      'aria-label': 'Name of this view',
    })
    const form = el('form', { class: 'inline' }, name, el('button', {}, 'Save view'))
    form.addEventListener('submit', event => {
      event.preventDefault()
      keep([...views.filter(view => view.name !== name.value), { name: name.value, query: now }])
    })
    return form
  }
  function keep(views                 )       {
    localStorage.setItem(key(), JSON.stringify(views))
    draw()
  }
  draw()
}
function queryOf(search        )         {
  const asked = new URLSearchParams(search)
  asked.delete('cursor')
  asked.delete('new')
  asked.delete('from')
  return new URLSearchParams([...asked].filter(([, value]) => value !== '')).toString()
}
`,
  "schedule.js": `import { el, part, table } from './dom.js'
import { root } from './page-api.js'
const QUIET_MS = 300
const own = Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const ownZone = own.resolvedOptions().timeZone
let asked = 0
let waiting
async function preview(form                 )                {
  const shown = part('#fires', form)
  const turn = ++asked
  const given = new FormData(form)
  const cronExpr = String(given.get('cronExpr') ?? '').trim()
  if (cronExpr === '') {
    shown.replaceChildren(el('p', { class: 'hint' }, 'Write an expression to see when it fires.'))
    return
  }
  const timezone = String(given.get('timezone') ?? '').trim()
  const query = new URLSearchParams({ cronExpr, count: '10', ...(timezone !== '' && { timezone }) })
  const answer = await fetch(\`\${root}ui/api/v1/schedules/preview?\${query}\`).catch(() => undefined)
  const body          = await answer?.json().catch(() => undefined)
  if (turn !== asked) return
  if (!answer?.ok) {
    const words = (body                                  )?.error ?? 'The runtime does not answer. Is it running?'
    shown.replaceChildren(el('p', { class: 'bad' }, words))
    return
  }
  const fires = body
  const rows = fires.map(({ at, local, offset }, i) => {
    const before = fires[i - 1]
    const moved = before !== undefined && before.offset !== offset
    const word = moved ? \`⚠ the clock is put from \${before.offset} to \${offset} before this\` : ''
    return [
      \`\${local.replace('T', ' ')} \${offset}\`,
      own.format(new Date(at)),
      word && el('span', { class: 'warn' }, word),
    ]
  })
  shown.replaceChildren(
    table('The next ten times', [\`In \${timezone || 'its zone'}\`, \`Here (\${ownZone})\`, 'Clocks'], rows),
  )
}
const form = document.querySelector                 ('#schedule')
if (form !== null) {
  form.addEventListener('input', () => {
    clearTimeout(waiting)
    waiting = setTimeout(() => void preview(form), QUIET_MS)
  })
  void preview(form)
}
`,
  "send-each.js": `import { many } from './figures.js'
import { send } from './page-api.js'
import { refresh } from './refresh.js'
import { toast } from './toast.js'
const AT_ONCE = 4
export async function sendEach({ ids, path, one, done }         )                {
  const left = [...ids]
  const refused           = []
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) {
        toast(\`\${ids.length - left.length} of \${ids.length} …\`)
        try {
          await send('POST', path(id), {})
        } catch (error) {
          refused.push(error instanceof Error ? error.message : String(error))
        }
      }
    }),
  )
  await refresh()
  const words = \`\${many(ids.length - refused.length, one)} \${done}\`
  toast(refused.length === 0 ? \`\${words}.\` : \`\${words}; \${refused.length} refused: \${refused[0]}\`)
}
`,
  "send-form.js": `import { el } from './dom.js'
import { askFirst } from './ask-first.js'
import { bodyOf } from './form-body.js'
import { ApiFault, root, send, shownOnce } from './page-api.js'
import { refresh } from './refresh.js'
import { toast } from './toast.js'
export function sendForms()       {
  document.addEventListener('submit', event => {
    const form = event.target
    if (!(form instanceof HTMLFormElement) || form.dataset.send === undefined) return
    event.preventDefault()
    const button = event instanceof SubmitEvent ? event.submitter : null
    void submit(form, button instanceof HTMLElement ? button : undefined)
  })
}
async function submit(form                 , button                         )                {
  if (form.getAttribute('aria-busy') === 'true') return
  const sure = button?.dataset.confirm ?? form.dataset.confirm
  if (sure !== undefined && !(await askFirst(sure, button?.textContent?.trim() || undefined))) return
  const [method = 'POST', path = ''] = (button?.dataset.send ?? form.dataset.send ?? '').split(' ')
  const said = form.querySelector('output')
  clear(form)
  const done = form.closest('[data-card]') ?? form
  form.setAttribute('aria-busy', 'true')
  done.classList.add('going')
  try {
    const body = method === 'DELETE' ? undefined : bodyOf(form)
    const filled = path.replace(/\\{(\\w+)\\}/g, (_, name        ) => pathPart(form, name))
    const answer = await send        (method, filled.startsWith('/') ? \`ui/api\${filled}\` : filled, body)
    settled(form, done)
    await then(form, button?.dataset.then ?? form.dataset.then ?? 'refresh', answer, said)
  } catch (error) {
    settled(form, done)
    complain(form, said, error)
  }
}
function settled(form                 , done         )       {
  form.removeAttribute('aria-busy')
  done.classList.remove('going')
}
function pathPart(form                 , name        )         {
  const field = form.elements.namedItem(name)
  return encodeURIComponent(field instanceof HTMLInputElement || field instanceof HTMLSelectElement ? field.value : '')
}
async function then(form                 , what        , answer        , said                )                {
  const [verb = '', rest = ''] = what.split(/:(.*)/s)
  for (const field of form.querySelectorAll('[data-typed]')) field.removeAttribute('data-typed')
  if (verb === 'goto') {
    location.href = root + rest.replace(/\\{(\\w+)\\}/g, (_, name        ) => encodeURIComponent(String(answer?.[name])))
    return
  }
  if (verb === 'away') {
    const to = URL.parse(String(answer?.[rest]))
    if (to !== null && /^https?:$/.test(to.protocol)) location.href = to.href
    return
  }
  if (verb === 'say') {
    const { success, message, error, latencyMs } = answer ?? {}
    const words = String(message ?? error ?? (success ? 'It works.' : 'It does not work.'))
    const time = typeof latencyMs === 'number' ? \` (\${Math.round(latencyMs)} ms)\` : ''
    said?.replaceChildren(el('span', { class: success ? 'good' : 'bad' }, (success ? '✓ ' : '✗ ') + words + time))
    await refresh()
    return
  }
  if (verb === 'once' || verb === 'link') {
    form.reset()
    const [member = '', page] = rest.split('@').toReversed()
    const value = String(answer?.[member])
    const shown = page === undefined ? value : new URL(\`\${root}\${page}\${value}\`, location.href).href
    said?.replaceChildren(shownOnce('Shown once; keep it now:', shown))
    await refresh()
    return
  }
  if (verb === 'gone') dealtWith(form.closest             ('[data-card]'))
  if (verb === 'saved') {
    said?.replaceChildren(el('span', { class: 'good' }, rest || 'Saved.'))
    const warnings = answer?.warnings
    if (Array.isArray(warnings)) said?.append(...warnings.map(one => el('p', { class: 'warn' }, String(one))))
  } else {
    if (form.dataset.reset !== undefined) form.reset()
    if (rest) toast(rest, undoOf(form))
  }
  await refresh()
}
function undoOf(form                 )                                    {
  const { undo, undoBody } = form.dataset
  if (undo === undefined) return undefined
  const [method = 'POST', path = ''] = undo.split(' ')
  return async () => {
    try {
      await send(method, \`ui/api\${path}\`, undoBody === undefined ? undefined : JSON.parse(undoBody))
      toast('Taken back.')
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error))
    }
    await refresh()
  }
}
const gone = new Set        ()
function dealtWith(card                    )       {
  if (card === null) return
  gone.add(card.dataset.card ?? '')
  for (const field of card.querySelectorAll('[data-typed]')) field.removeAttribute('data-typed')
  card.remove()
}
document.addEventListener('refreshed', () => {
  if (gone.size === 0) return
  for (const card of document.querySelectorAll             ('[data-card]'))
    if (gone.has(card.dataset.card ?? '')) card.remove()
})
function clear(form                 )       {
  form.querySelector('output')?.replaceChildren()
  for (const problem of form.querySelectorAll('.problem')) problem.remove()
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid')
}
function complain(form                 , said                , error         )       {
  const details = error instanceof ApiFault ? error.details : []
  const left           = []
  let first
  for (const { path, message } of details) {
    const field = fieldOf(form, path)
    if (field === undefined) {
      left.push(\`\${path}: \${message}\`)
      continue
    }
    const [, place] = path.split('#')
    const problem = el('small', { class: 'problem' }, place === undefined ? message : \`#\${place}: \${message}\`)
    field.setAttribute('aria-invalid', 'true')
    const label = isTicked(field) ? field.closest('label') : null
    if (label === null) field.after(problem)
    else label.append(problem)
    for (let at = field.closest('details'); at; at = at.parentElement?.closest('details') ?? null) at.open = true
    first ??= field
  }
  first?.focus()
  const words = details.length === 0 ? (error instanceof Error ? error.message : String(error)) : left.join('; ')
  if (words === '') return
  if (said === null) toast(words)
  else said.replaceChildren(el('span', { class: 'bad', role: 'alert' }, words))
}
const isTicked = (field         )                            =>
  field instanceof HTMLInputElement && field.type === 'checkbox'
function fieldOf(form                 , path        )                          {
  const place = \`\${path.replace('#', '.')}.\`
  const fields = [...form.elements].filter(
    (one)                                        =>
      one instanceof HTMLElement && 'name' in one && one.name !== '' && place.startsWith(\`\${String(one.name)}.\`),
  )
  const nth = Number(place.slice((fields[0]?.name.length ?? 0) + 1).split('.', 1)[0] || Number.NaN)
  const ticked = fields.filter(one => isTicked(one) && one.checked)
  return ticked.length > 1 && Number.isInteger(nth) ? ticked[nth] : (ticked[0] ?? fields[0])
}
`,
  "setup.js": `import { el, part } from './dom.js'
import { demoRun } from './demo-run.js'
import { shownOnce } from './page-api.js'
import { postOpen } from './post-open.js'
const form = part                 ('#setup')
const said = part('#said')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
if (!token) {
  said.replaceChildren('Open the whole setup link that the runtime printed when it started: its token is missing here.')
  part                   ('button', form).disabled = true
}
form.addEventListener('submit', async event => {
  event.preventDefault()
  const { name, email, password } = Object.fromEntries(new FormData(form))
  said.replaceChildren('One moment …')
  const made = await postOpen                                                ('auth/setup', {
    token,
    name,
    email,
    password,
  })
  if (!made.ok) {
    said.replaceChildren(el('span', { class: 'bad' }, made.body.error ?? 'It did not work.'))
    return
  }
  history.replaceState(null, '', location.pathname)
  const { tenantId } = made.body.user
  const login = await postOpen                       ('auth/login', { email, password, tenantId })
  document.documentElement.dataset.csrf = login.body.csrfToken ?? ''
  form.remove()
  said.replaceChildren()
  const done = part('#done')
  done.hidden = false
  part('#first-key').replaceChildren(shownOnce('Your first API key. It is shown once; keep it now:', made.body.rawKey))
  part('h2', done).focus()
})
demoRun()
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
  "skeleton.js": `import { el } from './dom.js'
const AFTER_MS = 300
const LINES = 4
export function skeleton(box             )       {
  const first = box.firstChild
  setTimeout(() => {
    if (box.firstChild !== first) return
    const lines = Array.from({ length: LINES }, () => el('i', {}))
    box.append(el('div', { class: 'skeleton', 'aria-hidden': 'true' }, ...lines))
  }, AFTER_MS)
}
`,
  "step-panel.js": `import { el } from './dom.js'
import { count, duration, usd } from './figures.js'
import { copyButton } from './copy-button.js'
import { root } from './page-api.js'
import { skeleton } from './skeleton.js'
import { visible } from './foreign-text.js'
import { jsonView, lazyFold } from './text-view.js'
import { conversationView } from './conversation-view.js'
import { inputOf, stepName,                                        tookMs } from './timeline.js'
import { tryForm } from './try-step.js'
export function stepPanel(step              , deps               )                {
  const { runId, events, close } = deps
  const { stepId, kind, error } = step
  const back = el('button', { type: 'button' }, 'Back to the run')
  back.addEventListener('click', close)
  const own = events.filter(one => one.stepId === stepId)
  const asksModel = kind === 'model' || kind === 'confidence'
  return [
    el(
      'section',
      { class: 'card', 'aria-label': \`Step \${visible(stepId)}\` },
      el('div', { class: 'row spread' }, el('h2', {}, visible(stepName(step))), back),
      error !== undefined && el('p', { class: 'notice bad' }, visible(error)),
      figures(step, own),
      asksModel ? requestBox(runId, stepId, deps) : plainParts(step, events),
      lazyFold(\`Events (\${own.length})\`, () => [jsonView('the events', own)]),
      /^model-\\d+$/.test(stepId) && tryForm(step, deps),
      forkForm(runId, stepId),
    ),
  ]
}
function figures(step              , own                          )              {
  const { stepId, status, attempt, tokensIn, tokensOut, costUsd, model, inputHash, replayed, copied } = step
  const took = tookMs(step)
  const child = own.find(one => typeof one.meta.childRunId === 'string')?.meta.childRunId
  const { cacheReadTokens, cacheWriteTokens } = own.findLast(one => one.kind === 'step_completed')?.meta ?? {}
  const cached = [
    ...(cacheReadTokens === undefined ? [] : [\`\${count(cacheReadTokens)} read from the cache\`]),
    ...(cacheWriteTokens === undefined ? [] : [\`\${count(cacheWriteTokens)} written to it\`]),
  ].join(', ')
  const marks = [replayed && 'its recorded result was used again', copied && 'copied'].filter(Boolean).join(', ')
  const entries                                                       = [
    ['Status', attempt > 1 ? \`\${status}, attempt \${attempt}\` : status],
    ['Time', took === undefined ? 'not over' : duration(took)],
    ['Model', model !== undefined && visible(model)],
    [
      'Tokens',
      tokensIn + tokensOut > 0 &&
        \`\${count(tokensIn)} in\${cached === '' ? '' : \` (\${cached})\`}, \${count(tokensOut)} out\`,
    ],
    ['Cost', usd(costUsd)],
    ['Run', typeof child === 'string' && el('a', { href: \`\${root}runs/\${encodeURIComponent(child)}\` }, child)],
    ['Marks', marks],
    [
      'Id',
      el(
        'span',
        {},
        el('span', { class: 'mono' }, visible(stepId)),
        ' ',
        copyButton('the id', () => stepId),
      ),
    ],
    ['Digest', inputHash !== undefined && el('span', { class: 'mono' }, \`\${inputHash.slice(0, 16)}…\`)],
  ]
  const shown = entries.flatMap(([name, value]) => (value ? [el('dt', {}, name), el('dd', {}, value)] : []))
  return el('dl', { class: 'facts' }, ...shown)
}
function plainParts(step              , events                          )              {
  const input = inputOf(step.stepId, events)
  return el(
    'div',
    {},
    input !== undefined && lazyFold('Input', () => [jsonView('the input', input)], true),
    step.output !== undefined && lazyFold('Output', () => [jsonView('the output', step.output)], true),
  )
}
function requestBox(runId        , stepId        , { router }               )              {
  const box = el('div', { class: 'conversation' }, el('p', { class: 'unseen' }, 'Reading the conversation …'))
  skeleton(box)
  const run = \`\${root}ui/api/v1/runs/\${encodeURIComponent(runId)}\`
  const read = async (before         )                       => {
    const query = before === undefined ? '' : \`?before=\${before}\`
    const answer = await fetch(\`\${run}/steps/\${encodeURIComponent(stepId)}/request\${query}\`, { cache: 'no-store' })
    const body          = await answer.json()
    if (answer.ok) return body
    throw new Error((body                      ).error ?? \`the runtime answered \${answer.status}\`)
  }
  const links = {
    earlier: read,
    runPage: (id        ) => \`\${root}runs/\${encodeURIComponent(id)}#step=\${encodeURIComponent(stepId)}\`,
    blob: (sha256        ) => \`\${run}/blobs/\${sha256}\`,
  }
  read().then(
    told => {
      const trace = told.routerTraceId
      box.replaceChildren(...(trace === undefined ? [] : [traceLink(trace, router)]), ...conversationView(told, links))
      performance.mark('conversation-drawn')
    },
    (error         ) => {
      const words = error instanceof Error ? error.message : String(error)
      box.replaceChildren(el('p', { class: 'notice bad' }, visible(words)))
    },
  )
  return box
}
function traceLink(trace        , router                    )              {
  const id = el('span', { class: 'mono' }, visible(trace))
  const named = router === undefined ? id : el('a', { href: \`\${router}#trace=\${encodeURIComponent(trace)}\` }, id)
  return el('p', {}, 'Trace of the router: ', named)
}
function forkForm(runId        , stepId        )              {
  return el(
    'form',
    { class: 'row', 'data-send': \`POST /v1/runs/\${runId}/fork\`, 'data-then': 'goto:runs/{id}' },
    el('input', { type: 'hidden', name: 'fromStepId', value: stepId }),
    el('button', { title: 'Starts a new run that reuses the steps before this one' }, 'Fork from here'),
    el('output', { role: 'status' }),
  )
}
`,
  "tabs.js": `export function tabs(list             , opened                         = () => {})                                   {
  const all = [...list.querySelectorAll             ('[role=tab]')]
  function open(name        , focus = false)       {
    for (const tab of all) {
      const isOpen = tab.dataset.tab === name
      tab.setAttribute('aria-selected', String(isOpen))
      tab.tabIndex = isOpen ? 0 : -1
      document.getElementById(\`panel-\${tab.dataset.tab}\`)?.classList.toggle('open', isOpen)
      if (isOpen && focus) tab.focus()
    }
  }
  list.addEventListener('click', event => {
    const tab = event.target instanceof Element ? event.target.closest             ('[role=tab]') : null
    if (tab === null || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    open(tab.dataset.tab ?? '')
    opened(tab.dataset.tab ?? '')
  })
  list.addEventListener('keydown', event => {
    const at = all.findIndex(tab => tab.getAttribute('aria-selected') === 'true')
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key]
    const next = to === undefined ? undefined : all[to % all.length]
    if (next === undefined) return
    event.preventDefault()
    open(next.dataset.tab ?? '', true)
    opened(next.dataset.tab ?? '')
  })
  return { open }
}
export function pageTabs()       {
  const list = document.querySelector             ('[role=tablist][data-tabs]')
  if (list === null) return
  const first = list.querySelector             ('[aria-selected=true]')?.dataset.tab ?? ''
  const { open } = tabs(list, name => {
    const to = new URL(location.href)
    to.searchParams.set('tab', name)
    if (to.href !== location.href) history.pushState(null, '', to)
  })
  window.addEventListener('popstate', () => open(new URLSearchParams(location.search).get('tab') ?? first))
}
`,
  "text-view.js": `import { el } from './dom.js'
import { count } from './figures.js'
import { copyButton } from './copy-button.js'
import { prettyJson, visible } from './foreign-text.js'
import {                          markdownBlocks } from './markdown.js'
const AT_FIRST = 3000
const MORE = 50_000
const MOST_MARKDOWN = 20_000
export function textView(text        , omitted = 0)              {
  const box = el('div', { class: 'text', dir: 'auto' })
  const whole = text.length <= AT_FIRST || (text.length <= MOST_MARKDOWN && text.length < 2 * AT_FIRST)
  const isMarkdown = text.length <= MOST_MARKDOWN
  const first = whole ? text : text.slice(0, AT_FIRST)
  box.append(...(isMarkdown ? markdownNodes(first) : [el('pre', { tabindex: 0 }, visible(first))]))
  if (whole) return withOmitted(box, omitted)
  const words = \`Show all \${count(text.length)} characters\`
  const button = el('button', { type: 'button' }, isMarkdown ? words : \`Show more of \${count(text.length)} characters\`)
  button.addEventListener('click', () => {
    if (isMarkdown) box.replaceChildren(...markdownNodes(text))
    else box.replaceChildren(plainView(text))
    withOmitted(box, omitted)
  })
  box.append(button)
  return box
}
function withOmitted(box             , omitted        )              {
  if (omitted > 0) box.append(el('p', { class: 'hint' }, \`\${count(omitted)} more characters are not in this answer.\`))
  return box
}
export function plainView(text        , first = MORE)              {
  const pre = el('pre', { tabindex: 0 }, visible(text.slice(0, first)))
  const box = el('div', {}, pre)
  let shown = first
  if (text.length <= first) return box
  const left = () => \`Show more (\${count(text.length - shown)} characters left)\`
  const button = el('button', { type: 'button' }, left())
  button.addEventListener('click', () => {
    pre.append(visible(text.slice(shown, shown + MORE)))
    shown += MORE
    if (shown < text.length) button.replaceChildren(left())
    else button.remove()
  })
  box.append(button)
  return box
}
export function jsonView(about        , value         )              {
  const text = prettyJson(value)
  return el(
    'div',
    { class: 'json' },
    plainView(text, 2 * AT_FIRST),
    copyButton(about, () => text),
  )
}
export function lazyFold(summary        , make                       , open = false)                     {
  const box = el('details', { open }, el('summary', {}, summary))
  let isMade = false
  const fill = () => {
    if (isMade || !box.open) return
    isMade = true
    box.append(...make())
  }
  box.addEventListener('toggle', fill)
  fill()
  return box
}
function markdownNodes(text        )                {
  return markdownBlocks(text).map(blockNode)
}
function blockNode(block       )              {
  switch (block.is) {
    case 'heading':
      return el('p', { class: 'heading' }, el('strong', {}, ...inlineNodes(block.inside)))
    case 'code':
      return el('pre', { tabindex: 0 }, visible(block.text))
    case 'list': {
      const items = block.items.map(inside => el('li', {}, ...inlineNodes(inside)))
      return block.ordered ? el('ol', {}, ...items) : el('ul', {}, ...items)
    }
    case 'quote':
      return el('blockquote', {}, ...inlineNodes(block.inside))
    case 'rule':
      return el('hr')
    case 'paragraph':
      return el('p', {}, ...inlineNodes(block.inside))
  }
}
const inlineNodes = (inside                   )                    => inside.map(inlineNode)
function inlineNode(one        )                {
  switch (one.is) {
    case 'text':
      return visible(one.text)
    case 'code':
      return el('code', {}, visible(one.text))
    case 'strong':
    case 'em':
      return el(one.is, {}, ...inlineNodes(one.inside))
    case 'link':
      return el(
        'span',
        {},
        el('a', { href: one.href, rel: 'noopener noreferrer nofollow', target: '_blank' }, ...inlineNodes(one.inside)),
        el('small', {}, \` (\${visible(hostOf(one.href))})\`),
      )
    case 'image':
      return el('small', {}, \`[image \${visible(one.text)}: \${visible(one.href)}]\`)
  }
}
function hostOf(href        )         {
  return URL.canParse(href) ? new URL(href).host : href
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
  "timeline.js": `export function timelineOf(events                         , replayed                      = new Set())                 {
  const steps = new Map                      ()
  for (const { kind, stepId, at, attempt, payload, meta } of events) {
    const atMs = Date.parse(at)
    const known = steps.get(stepId)
    if (kind === 'step_started') {
      const step = known ?? begun(stepId, meta, replayed.has(stepId))
      steps.set(stepId, step)
      end(step, atMs)
      step.status = 'running'
      step.attempt = attempt
      delete step.error
      step.pieces.push({ kind: 'ran', fromMs: atMs })
      continue
    }
    if (known === undefined) continue
    known.attempt = attempt
    known.tokensIn += meta.tokensIn ?? 0
    known.tokensOut += meta.tokensOut ?? 0
    known.costUsd = Math.round((known.costUsd + (meta.costUsd ?? 0)) * 1e9) / 1e9
    switch (kind) {
      case 'step_completed':
        begunAnew(known)
        end(known, atMs)
        known.status = 'completed'
        delete known.error
        known.output = payload.output
        if (meta.model !== undefined) known.model = meta.model
        break
      case 'step_failed':
        begunAnew(known)
        end(known, atMs, 'failed')
        known.status = 'failed'
        known.error = \`\${String(payload.code)}: \${String(payload.error)}\`
        break
      case 'step_retrying':
        end(known, atMs, 'failed')
        known.error = \`\${String(payload.code)}: \${String(payload.error)}\`
        known.pieces.push({ kind: 'delay', fromMs: atMs })
        break
      case 'step_waiting':
        end(known, atMs)
        known.status = 'waiting'
        known.pieces.push({ kind: 'wait', fromMs: atMs })
        break
      default:
        break
    }
  }
  return [...steps.values()]
}
function begun(stepId        , meta                       , replayed         )               {
  return {
    stepId,
    kind: meta.stepKind ?? 'tool',
    name: meta.name ?? '',
    status: 'running',
    attempt: 1,
    pieces: [],
    tokensIn: 0,
    tokensOut: 0,
    costUsd: 0,
    copied: meta.copiedFrom !== undefined,
    replayed,
    ...(meta.inputHash !== undefined && { inputHash: meta.inputHash }),
  }
}
function begunAnew({ pieces }              )       {
  const last = pieces.at(-1)
  if (last?.kind === 'delay' && last.toMs === undefined) last.kind = 'ran'
}
function end({ pieces }              , atMs        , as           )       {
  const last = pieces.at(-1)
  if (last === undefined || last.toMs !== undefined) return
  last.toMs = atMs
  if (as !== undefined && last.kind === 'ran') last.kind = as
}
export function timelineOfSteps(steps                 )                 {
  return steps.map(({ startedAt, finishedAt, ...step }) => ({
    ...step,
    pieces: [
      {
        kind: step.status === 'failed' ? 'failed' : step.status === 'waiting' ? 'wait' : 'ran',
        fromMs: Date.parse(startedAt),
        ...(finishedAt !== undefined && { toMs: Date.parse(finishedAt) }),
      },
    ],
  }))
}
export function inputOf(stepId        , events                          )          {
  const [, turn, call] = /^[a-z]+-(\\d+)-(\\d+)$/.exec(stepId) ?? []
  const asked = events.findLast(one => one.kind === 'step_completed' && one.stepId === \`model-\${turn}\`)?.payload.output
  if (typeof asked !== 'object' || asked === null || !('toolCalls' in asked) || !Array.isArray(asked.toolCalls)) {
    return undefined
  }
  const found          = asked.toolCalls[Number(call) - 1]
  return typeof found === 'object' && found !== null && 'arguments' in found ? found.arguments : undefined
}
export function spanOf(steps                         , nowMs        )       {
  let fromMs = Number.POSITIVE_INFINITY
  let toMs = 0
  for (const { pieces } of steps) {
    for (const piece of pieces) {
      fromMs = Math.min(fromMs, piece.fromMs)
      toMs = Math.max(toMs, piece.toMs ?? nowMs)
    }
  }
  return fromMs > toMs ? { fromMs: nowMs, toMs: nowMs + 1 } : { fromMs, toMs: Math.max(toMs, fromMs + 1) }
}
export const BAR_WIDTH = 1000
const LEAST = 4
export function barsOf({ pieces, kind }              , { fromMs, toMs }      )        {
  const scale = BAR_WIDTH / (toMs - fromMs)
  return pieces.map(piece => {
    const width = Math.min(BAR_WIDTH, Math.max(LEAST, ((piece.toMs ?? toMs) - piece.fromMs) * scale))
    const x = Math.max(0, Math.min((piece.fromMs - fromMs) * scale, BAR_WIDTH - width))
    return { x, width, className: classOf(piece.kind, kind) }
  })
}
function classOf(piece               , step        )         {
  if (piece === 'ran') return step === 'model' ? 'c-model' : step === 'timer' || step === 'signal' ? 'c-rest' : 'c-tool'
  return \`c-\${piece}\`
}
export function tookMs({ pieces, status }              )                     {
  const last = pieces.at(-1)
  if (status === 'running' || status === 'waiting' || last?.toMs === undefined) return undefined
  return last.toMs - pieces[0] .fromMs
}
export function marksOf({ status, attempt, replayed, copied }              )           {
  return [
    ...(status === 'completed' ? [] : [status]),
    ...(attempt > 1 ? [\`attempt \${attempt}\`] : []),
    ...(replayed ? ['replayed'] : []),
    ...(copied ? ['copied'] : []),
  ]
}
export function stepName({ stepId, name }                                       )         {
  return name === '' ? stepId : \`\${stepId} \${name}\`
}
`,
  "times.js": `import { relativeTime } from './relative-time.js'
const RENEW_MS = 30_000
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' })
const forms = {
  hour: new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
  day: new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' }),
  both: new Intl.DateTimeFormat(undefined, {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }),
}
export function localTimes()       {
  for (const one of document.querySelectorAll                 ('time[datetime]')) {
    const at = new Date(one.dateTime)
    if (Number.isNaN(at.getTime())) continue
    const form = one.dataset.clock
    const words =
      form === undefined ? relativeTime(at.getTime(), Date.now()) : forms[form                      ].format(at)
    if (one.textContent !== words) one.replaceChildren(words)
    if (one.title === '') one.title = exact.format(at)
  }
}
export function followTimes()       {
  localTimes()
  document.addEventListener('refreshed', localTimes)
  setInterval(() => {
    if (!document.hidden) localTimes()
  }, RENEW_MS)
}
`,
  "toast.js": `import { el, icon, part } from './dom.js'
const STAYS_MS = 6000
const UNDO_STAYS_MS = 12_000
let timer
export function toast(words        , undo                )       {
  const box = part('#toast')
  clearTimeout(timer)
  const close = () => box.replaceChildren()
  box.replaceChildren(el('span', {}, words), ...(undo === undefined ? [] : [undoButton(undo, close)]))
  const leave = () => {
    if (box.matches(':hover, :focus-within')) timer = setTimeout(leave, STAYS_MS)
    else close()
  }
  timer = setTimeout(leave, undo === undefined ? STAYS_MS : UNDO_STAYS_MS)
}
function undoButton(undo               , close            )              {
  const button = el('button', { type: 'button', class: 'small' }, icon('undo'), ' Undo')
  button.addEventListener('click', () => {
    close()
    undo()
  })
  return button
}
`,
  "try-step.js": `import { el } from './dom.js'
import { money } from './figures.js'
import { root, send } from './page-api.js'
import { visible } from './foreign-text.js'
import { lazyFold } from './text-view.js'
export function tryForm({ stepId, costUsd }              , of           )              {
  return lazyFold('Try again with another model or prompt', () => {
    const box = el('div', {}, el('p', { class: 'hint' }, 'Reading the version …'))
    const path = \`ui/api/v1/agents/\${encodeURIComponent(of.agentName)}/versions\`
    send                          ('GET', \`\${path}/\${of.versionId}\`).then(
      version => box.replaceChildren(formOf(version, { ...of, stepId, costUsd, path })),
      (error         ) => box.replaceChildren(complaint(error)),
    )
    return [box]
  })
}
function formOf(
  { manifest }                          ,
  { runId, stepId, costUsd, path }                                                               ,
)              {
  const model = el('input', { name: 'model', required: true, value: manifest.model, spellcheck: 'false' })
  const prompt = el('textarea', { rows: 8, spellcheck: 'false' })
  prompt.value = manifest.systemPrompt
  const said = el('output', { role: 'status' })
  const button = el('button', { class: 'main' }, 'Ask the model again')
  const form = el(
    'form',
    { class: 'try' },
    el('label', {}, 'Model', model),
    el('label', {}, 'System prompt', prompt),
    el(
      'p',
      { class: 'hint' },
      \`It asks the model once and makes none of the calls that the answer asks for. The step cost \${money(costUsd)}; the trial is a run of its own with a receipt, and counts towards the budget of the agent. What is changed becomes a version of the agent that no run uses until it is promoted.\`,
    ),
    button,
    said,
  )
  form.addEventListener('submit', async event => {
    event.preventDefault()
    button.disabled = true
    said.replaceChildren('Asking …')
    try {
      const changed = { ...manifest, model: model.value, systemPrompt: prompt.value }
      const note = \`tried at \${stepId} of run \${runId}\`
      const version = await send                ('POST', path, { manifest: changed, promote: false, note })
      const trial = { fromStepId: stepId, versionId: version.id, onlyStep: true }
      const { id } = await send                ('POST', \`ui/api/v1/runs/\${runId}/fork\`, trial)
      location.href = \`\${root}compare?\${new URLSearchParams({ a: runId, b: id, step: stepId })}\`
    } catch (error) {
      said.replaceChildren(complaint(error))
      button.disabled = false
    }
  })
  return form
}
const complaint = (error         )              =>
  el('span', { class: 'bad', role: 'alert' }, visible(error instanceof Error ? error.message : String(error)))
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
  "verify-run.js": `import { el } from './dom.js'
import { readProof } from './read-proof.js'
import { verifyReceipt, whyNot } from './verify-receipt.js'
import { root } from './page-api.js'
async function read(path        )                  {
  const answer = await fetch(root + path, { cache: 'no-store' })
  if (!answer.ok) throw new Error(\`the runtime answered \${answer.status} for \${path}\`)
  return answer.text()
}
export async function verifyRun(button             )                {
  const said = button.parentElement?.querySelector('output')
  const run = \`ui/api/v1/runs/\${button.dataset.verify}\`
  said?.replaceChildren('Reading and hashing …')
  try {
    const [receipt, journal, keys] = await Promise.all([
      read(\`\${run}/receipt\`),
      read(\`\${run}/journal\`),
      read('.well-known/platform-receipts'),
    ])
    const named = (readProof(receipt)                                    ).payload?.keyId
    const listed = (readProof(keys)                 ).keys
    const fingerprint = listed.find(({ keyId }) => keyId === named)?.keyFingerprint
    if (fingerprint === undefined) throw new Error('the key of the receipt is not among the published ones')
    const [valid, words] = await verifyReceipt(receipt, journal, fingerprint)
    said?.replaceChildren(
      el('strong', { class: valid ? 'good' : 'bad' }, valid ? '✓ Valid. ' : '✗ Not valid. '),
      words,
      el('br'),
      el('small', {}, \`Signed with the key \${fingerprint}. Compare it with the one that you noted elsewhere.\`),
    )
  } catch (error) {
    said?.replaceChildren(el('span', { class: 'bad' }, whyNot(error)))
  }
}
`,
  "verify.js": `export function verifyButtons()       {
  document.addEventListener('click', async event => {
    const button = event.target instanceof Element ? event.target.closest             ('[data-verify]') : null
    if (button === null) return
    const { verifyRun } = await import('./verify-run.js')
    await verifyRun(button)
  })
}
`,
  "virtual-rows.js": `import { el } from './dom.js'
const AROUND = 10
export function virtualRows(box             , heightPx        , head              ) {
  const spacer = el('div', { class: 'spacer' })
  box.replaceChildren(...(head ? [head] : []), spacer)
  let rows       = { count: 0, row: () => el('div') }
  let shown                                  = { first: 0, last: -1 }
  let waiting = false
  function draw(force = false)       {
    waiting = false
    const first = Math.max(0, Math.floor(box.scrollTop / heightPx) - AROUND)
    const last = Math.min(rows.count - 1, Math.ceil((box.scrollTop + box.clientHeight) / heightPx) + AROUND)
    if (!force && first === shown.first && last === shown.last) return
    shown = { first, last }
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.at : undefined
    const keeps = focused !== undefined && box.contains(document.activeElement)
    const elements                = []
    for (let at = first; at <= last; at++) {
      const row = rows.row(at)
      row.dataset.at = String(at)
      row.style.top = \`\${at * heightPx}px\`
      elements.push(row)
    }
    spacer.replaceChildren(...elements)
    if (keeps) elements.find(row => row.dataset.at === focused)?.focus({ preventScroll: true })
  }
  function to(at        )       {
    const wanted = Math.min(Math.max(at, 0), rows.count - 1)
    const top = wanted * heightPx
    if (top < box.scrollTop) box.scrollTop = top
    else if (top + 2 * heightPx > box.scrollTop + box.clientHeight)
      box.scrollTop = top + 2 * heightPx - box.clientHeight
    draw(true)
    spacer.querySelector             (\`[data-at="\${wanted}"]\`)?.focus({ preventScroll: true })
  }
  box.addEventListener(
    'scroll',
    () => {
      if (waiting) return
      waiting = true
      requestAnimationFrame(() => draw())
    },
    { passive: true },
  )
  box.addEventListener('keydown', event => {
    const at = Number((event.target               ).dataset.at ?? Number.NaN)
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }[event.key]
    const wanted =
      event.key === 'Home' ? 0 : event.key === 'End' ? rows.count - 1 : by === undefined ? undefined : at + by
    if (wanted === undefined || Number.isNaN(at)) return
    event.preventDefault()
    to(wanted)
  })
  new ResizeObserver(() => draw()).observe(box)
  return {
    show(next      )       {
      rows = next
      spacer.style.height = \`\${next.count * heightPx}px\`
      draw(true)
    },
  }
}
`,
}

import { el, part } from '../../../../shared/browser/dom.ts'
import type { Member } from '../../manifest-help.ts'
import { send } from '../shell/page-api.ts'
import { completeNames } from './complete-names.ts'

interface Checked {
  issues: { path: string; message: string }[]
}

const QUIET_MS = 300
const text = part<HTMLTextAreaElement>('#manifest')
const said = part('#manifest-said')
let asked = 0
let waiting: ReturnType<typeof setTimeout> | undefined

/** Where a member stands in the text: the line of its last name that follows the names before it. */
function lineOf(source: string, path: string): number {
  let at = 0
  for (const name of path.split('.')) {
    const found = /^\d+$/.test(name) ? -1 : source.indexOf(`"${name}"`, at)
    if (found >= 0) at = found
  }
  return source.slice(0, at).split('\n').length
}

async function check(): Promise<void> {
  const turn = ++asked
  const source = text.value
  let manifest: unknown
  try {
    manifest = JSON.parse(source)
  } catch (error) {
    show([{ path: '', message: error instanceof Error ? error.message : String(error) }])
    await offerYaml(source, turn)
    return
  }
  try {
    const { issues } = await send<Checked>('POST', 'ui/manifest/check', { manifest })
    if (turn === asked) show(issues)
  } catch (error) {
    if (turn === asked) said.replaceChildren(error instanceof Error ? error.message : String(error))
  }
}

/** A manifest in YAML can be pasted; it is published as JSON. */
async function offerYaml(source: string, turn: number): Promise<void> {
  const read = await send<{ manifest?: object }>('POST', 'ui/manifest/read', { text: source }).catch(() => undefined)
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

function show(issues: Checked['issues']): void {
  text.setAttribute('aria-invalid', String(issues.length > 0))
  if (issues.length === 0) {
    said.replaceChildren(el('span', { class: 'good' }, '✓ This is a valid manifest.'))
    return
  }
  const lines = issues.map(({ path, message }) => {
    if (path === '') return el('li', {}, message)
    const line = lineOf(text.value, path)
    const go = el('button', { type: 'button', class: 'link' }, `Line ${line}, ${path}`)
    go.addEventListener('click', () => {
      const start =
        text.value
          .split('\n')
          .slice(0, line - 1)
          .join('\n').length + (line > 1 ? 1 : 0)
      text.focus()
      text.setSelectionRange(start, start + (text.value.slice(start).split('\n', 1)[0]?.length ?? 0))
    })
    return el('li', {}, go, `: ${message}`)
  })
  said.replaceChildren(el('ul', { class: 'bad' }, ...lines))
}

text.addEventListener('input', () => {
  clearTimeout(waiting)
  waiting = setTimeout(() => void check(), QUIET_MS)
})
// What was published is not typed any more.
window.addEventListener('beforeunload', event => {
  if (text.dataset.typed !== undefined && text.value !== text.defaultValue) event.preventDefault()
})
completeNames(text, JSON.parse(text.dataset.members ?? '[]') as Member[])
plainFields(text)
void check()

/**
 * The members that are read most, as fields of their own beside the text of the manifest: what is typed in one changes the other. A
 * text that is no JSON at the moment is left alone.
 */
function plainFields(editor: HTMLTextAreaElement): void {
  const fields = [...document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('[data-member]')]

  function read(): Record<string, unknown> | undefined {
    try {
      const value: unknown = JSON.parse(editor.value)
      return typeof value === 'object' && value !== null && !Array.isArray(value)
        ? (value as Record<string, unknown>)
        : undefined
    } catch {
      return undefined
    }
  }

  function fill(): void {
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

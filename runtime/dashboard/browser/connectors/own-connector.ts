import { el, part } from '../../../../shared/browser/dom.ts'
import { count } from '../../../../shared/browser/figures.ts'
import { visible } from '../../../../shared/browser/visible-text.ts'
import type { Survey, Surveyed, Surveying } from '../../../connectors/openapi/survey.ts'
import { send } from '../shell/page-api.ts'

const QUIET_MS = 300
/** Operations of one install. */
const MOST = 100
const EFFECTS = [
  ['read', 'only reads'],
  ['idempotent', 'may be repeated'],
  ['once', 'is sent once'],
] as const

interface Row {
  operation: Surveyed
  box: HTMLInputElement
  line: HTMLElement
}

/** Shows what a document has before any of it is installed: operations to choose from, with what a second call of each does. */
function ownConnector(form: HTMLFormElement): void {
  const text = part<HTMLTextAreaElement>('[name=openapi]', form)
  const file = part<HTMLInputElement>('#own-file', form)
  const said = part('#own-said', form)
  const rest = part('#own-rest', form)
  const id = part<HTMLInputElement>('[name=connectorId]', form)
  const address = part<HTMLInputElement>('[name="config.baseUrl"]', form)
  const operations = operationList(form)
  let asked = 0
  let waiting: ReturnType<typeof setTimeout> | undefined

  async function look(): Promise<void> {
    const turn = ++asked
    if (text.value.trim() === '') {
      said.replaceChildren()
      text.removeAttribute('aria-invalid')
      rest.hidden = true
      return
    }
    try {
      const found = await send<Surveying>('POST', 'ui/openapi/look', { openapi: text.value })
      if (turn !== asked) return
      if ('problem' in found) complain(`${found.problem.place}: ${found.problem.message}`)
      else show(found)
    } catch (error) {
      if (turn === asked) complain(error instanceof Error ? error.message : String(error))
    }
  }

  function complain(words: string): void {
    text.setAttribute('aria-invalid', 'true')
    said.replaceChildren(el('span', { class: 'bad' }, words))
  }

  function show({ title, server, operations: found, keys }: Survey): void {
    text.removeAttribute('aria-invalid')
    said.replaceChildren(
      el('span', { class: 'good' }, `✓ ${visible(title || 'An API')}, ${count(found.length)} operations.`),
    )
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
      complain(`${given.name} is larger than ${count(text.maxLength)} bytes, which is the most there can be`)
      return
    }
    text.value = await given.text()
    text.dataset.typed = ''
    void look()
  })
  void look()
}

/** The operations of a document, to be chosen from. */
function operationList(form: HTMLFormElement) {
  const filter = part<HTMLInputElement>('#own-filter', form)
  let rows: Row[] = []

  function show(operations: readonly Surveyed[]): void {
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

  /** How many are chosen, and which credentials these need. */
  function tell(): void {
    const chosen = rows.filter(({ box }) => box.checked)
    const words = `${count(chosen.length)} of ${count(rows.length)} chosen`
    const most = chosen.length > MOST ? `; an install has at most ${MOST}` : ''
    part('#own-count', form).replaceChildren(words + most)
    const needed = new Set(chosen.flatMap(({ operation }) => operation.keys.map(key => `config.${key}`)))
    for (const field of part('#own-keys', form).querySelectorAll('input')) {
      field.disabled = !needed.has(field.name)
      if (field.parentElement) field.parentElement.hidden = field.disabled
    }
  }

  function sift(): void {
    const wanted = filter.value.trim().toLowerCase()
    for (const { operation, line } of rows) {
      const { name, operationId, path, about } = operation
      line.hidden = ![name, operationId, path, about].some(one => one.toLowerCase().includes(wanted))
    }
  }

  function choose(which: (operation: Surveyed) => boolean): void {
    for (const { operation, box } of rows) box.checked = operation.problem === undefined && which(operation)
    tell()
  }

  part('#own-operations', form).addEventListener('change', tell)
  filter.addEventListener('input', sift)
  // Enter in a field sends the form, and this is no field of it.
  filter.addEventListener('keydown', event => {
    if (event.key === 'Enter') event.preventDefault()
  })
  part('#own-reads', form).addEventListener('click', () => choose(({ effect }) => effect === 'read'))
  part('#own-none', form).addEventListener('click', () => choose(() => false))
  return { show, tell }
}

/** What was typed for a credential stays where the document is looked into again. */
function showKeys(form: HTMLFormElement, keys: Survey['keys']): void {
  const box = part('#own-keys', form)
  const before = new Map([...box.querySelectorAll('input')].map(({ name, value }) => [name, value]))
  const fields = keys.map(({ name, secret }) => {
    const field = el('input', {
      name: `config.${name}`,
      type: secret ? 'password' : 'text',
      autocomplete: 'off',
      spellcheck: 'false',
    })
    field.value = before.get(field.name) ?? ''
    return el('label', {}, `${name} `, field)
  })
  box.replaceChildren(...fields)
}

function rowOf(operation: Surveyed): Row {
  const { operationId, name, method, path, about, effect, problem } = operation
  const box = el('input', { type: 'checkbox', name: 'operations', 'data-as': 'many-json' })
  box.disabled = problem !== undefined
  const select = el(
    'select',
    { 'aria-label': `What a second call of ${name} does`, disabled: box.disabled },
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
    el('label', {}, box, el('code', {}, visible(name)), el('small', { class: 'mono' }, visible(` ${method} ${path}`))),
    select,
    el('small', { class: problem === undefined ? undefined : 'bad' }, visible(problem ?? about)),
  )
  return { operation, box, line }
}

/** From the title of an API; every guess may be changed. */
function idOf(title: string): string {
  const name = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 19)
    .replaceAll(/^-+|-+$/g, '')
  return `http-${name || 'api'}`
}

const form = document.querySelector<HTMLFormElement>('#own-connector')
if (form !== null) ownConnector(form)

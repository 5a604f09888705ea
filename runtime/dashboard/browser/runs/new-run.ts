import { el, part } from '../../../../shared/browser/dom.ts'
import type { Agent } from '../../../../shared/wire/runtime/agent.ts'
import { send } from '../shell/page-api.ts'
import { visible } from '../text/foreign-text.ts'

/** The dialog that starts a run: a message, the fields of the agent's schema of inputs, or JSON. */
export function newRun(): void {
  const dialog = document.querySelector<HTMLDialogElement>('#new-run')
  if (dialog === null) return
  const agent = part<HTMLSelectElement>('[name=agentName]', dialog)
  const asJson = part<HTMLInputElement>('#input-as-json')
  let fields: InputField[] | undefined
  let asked = 0
  /** What the reader chose stays, whatever an answer that comes later says. */
  let wantsJson = false

  function show(): void {
    const kind = asJson.checked ? 'json' : fields === undefined ? 'message' : 'fields'
    for (const box of document.querySelectorAll<HTMLElement>('[data-input]')) {
      const isShown = box.dataset.input === kind
      box.hidden = !isShown
      for (const field of box.querySelectorAll<HTMLInputElement>('input, select, textarea')) field.disabled = !isShown
    }
  }

  async function read(): Promise<void> {
    const turn = ++asked
    const path = `ui/api/v1/agents/${encodeURIComponent(agent.value)}`
    const found = await send<Agent>('GET', path).catch(() => undefined)
    if (turn !== asked) return
    const schema = found?.manifest.inputSchema
    fields = inputFields(schema)
    part('#input-fields').replaceChildren(...(fields ?? []).map(fieldView))
    // A schema that no form can draw is met by JSON alone.
    asJson.checked = wantsJson || (schema !== undefined && fields === undefined)
    show()
  }

  function open(): void {
    dialog?.showModal()
    void read()
  }

  document.querySelector('[data-open=new-run]')?.addEventListener('click', open)
  dialog.querySelector('[data-close]')?.addEventListener('click', () => dialog.close())
  agent.addEventListener('change', () => void read())
  asJson.addEventListener('change', () => {
    wantsJson = asJson.checked
    show()
  })
  if (dialog.dataset.openNow !== undefined) open()
}

function fieldView(field: InputField): HTMLElement {
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

function controlOf({ name, look, as, required, value, choices, limits }: InputField): HTMLElement {
  const common = { name: `input.${name}`, 'data-as': as, required }
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

/** One member of an input, as a field of a form asks for it. */
interface InputField {
  name: string
  title: string
  about: string | undefined
  required: boolean
  look: 'line' | 'text' | 'number' | 'choice' | 'json'
  /** How the form reads the field; see form-body.ts. */
  as: '' | 'number' | 'json'
  value: string
  choices: readonly { value: string; words: string }[]
  limits: Readonly<Record<string, string | number>>
}

type Schema = Readonly<Record<string, unknown>>

/** More members than that are typed faster as JSON. */
const MOST_FIELDS = 40
const LONG_TEXT = 200

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The fields that ask for what a schema wants: the required ones first, in the order in which it lists them. Undefined where a form cannot
 * say all that the schema allows to be said; the input is given as JSON then.
 */
export function inputFields(schema: unknown): InputField[] | undefined {
  if (!isObject(schema) || !isObject(schema.properties)) return undefined
  const all = Object.entries(schema.properties)
  if (all.length === 0 || all.length > MOST_FIELDS) return undefined
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  // A name with a dot would be read as a path, and the others as members of every object.
  if (all.some(([name]) => name === '' || name.includes('.') || name in Object.prototype)) return undefined
  const place = (name: string) => (required.includes(name) ? required.indexOf(name) : required.length)
  return all
    .toSorted(([a], [b]) => place(a) - place(b))
    .map(([name, member]) => fieldOf(name, isObject(member) ? member : {}, required.includes(name)))
}

function fieldOf(name: string, schema: Schema, required: boolean): InputField {
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

/** The values of a text go as they are, and all others as JSON. */
function choiceOf(
  field: Omit<InputField, 'look' | 'as' | 'value'>,
  values: readonly unknown[],
  chosen: unknown,
): InputField {
  const isText = values.every(value => typeof value === 'string' && value !== '')
  const written = (value: unknown) => (isText ? String(value) : JSON.stringify(value))
  const choices = values.map(value => ({ value: written(value), words: WORDS.get(value) ?? String(written(value)) }))
  return {
    ...field,
    look: 'choice',
    as: isText ? '' : 'json',
    value: chosen === undefined ? '' : written(chosen),
    choices,
  }
}

const WORDS = new Map<unknown, string>([
  [true, 'yes'],
  [false, 'no'],
])

const TYPES: Readonly<Record<string, string>> = { date: 'date', email: 'email', uri: 'url' }

function textField({ maxLength, minLength, pattern, format }: Schema): Pick<InputField, 'look' | 'limits'> {
  const type = typeof format === 'string' ? TYPES[format] : undefined
  const limits = { ...numbers({ maxlength: maxLength, minlength: minLength }), ...(type && { type }) }
  const isLine =
    type !== undefined || typeof pattern === 'string' || (typeof maxLength === 'number' && maxLength <= LONG_TEXT)
  return { look: isLine ? 'line' : 'text', limits }
}

function numbers(limits: Readonly<Record<string, unknown>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(limits).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  )
}

/** The one type that a value may have beside null. */
function typeOf({ type }: Schema): unknown {
  if (!Array.isArray(type)) return type
  const others = type.filter(one => one !== 'null')
  return others.length === 1 && others.length === type.length ? others[0] : undefined
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

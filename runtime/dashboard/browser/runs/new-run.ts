import { el, part } from '../../../../shared/browser/dom.ts'
import { visible } from '../../../../shared/browser/visible-text.ts'
import type { Agent } from '../../../../shared/wire/runtime/agent.ts'
import { send } from '../shell/page-api.ts'
import { type InputField, inputFields } from './input-fields.ts'

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

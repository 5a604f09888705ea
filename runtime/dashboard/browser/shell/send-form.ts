import { el, part } from '../../../../shared/browser/dom.ts'
import { askFirst } from './ask-first.ts'
import { bodyOf, FieldFault } from './form-body.ts'
import { ApiFault, root, send, shownOnce } from './page-api.ts'
import { refresh } from './refresh.ts'
import { toast } from './toast.ts'

type Answer = Record<string, unknown> | undefined

/**
 * Sends the forms with `data-send` to the API and does with the answer what `data-then` says: `refresh` the live parts, `goto:` a page
 * whose address takes members of the answer, `away:` to the address outside that a member is, `once:` a member that is shown once,
 * `link:` the same as the address of a page here, `say` what a test found, `gone:` that its card has been dealt with.
 */
export function sendForms(): void {
  document.addEventListener('submit', event => {
    const form = event.target
    if (!(form instanceof HTMLFormElement) || form.dataset.send === undefined) return
    event.preventDefault()
    const button = event instanceof SubmitEvent ? event.submitter : null
    void submit(form, button instanceof HTMLElement ? button : undefined)
  })
}

async function submit(form: HTMLFormElement, button: HTMLElement | undefined): Promise<void> {
  if (form.getAttribute('aria-busy') === 'true') return
  const sure = button?.dataset.confirm ?? form.dataset.confirm
  if (sure !== undefined && !(await askFirst(sure, button?.textContent?.trim() || undefined))) return
  const [method = 'POST', path = ''] = (button?.dataset.send ?? form.dataset.send ?? '').split(' ')
  const said = form.querySelector('output')
  clear(form)
  // Shown as done before it is, and taken back where it is refused.
  const done = form.closest('[data-card]') ?? form
  form.setAttribute('aria-busy', 'true')
  done.classList.add('going')
  try {
    const body = method === 'DELETE' ? undefined : bodyOf(form)
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => pathPart(form, name))
    // Operations of the API start with a slash; what belongs to the login itself stands beside it.
    const answer = await send<Answer>(method, filled.startsWith('/') ? `ui/api${filled}` : filled, body)
    settled(form, done)
    await then(form, button?.dataset.then ?? form.dataset.then ?? 'refresh', answer, said)
  } catch (error) {
    settled(form, done)
    complain(form, said, error)
  }
}

function settled(form: HTMLFormElement, done: Element): void {
  form.removeAttribute('aria-busy')
  done.classList.remove('going')
}

function pathPart(form: HTMLFormElement, name: string): string {
  const field = form.elements.namedItem(name)
  return encodeURIComponent(field instanceof HTMLInputElement || field instanceof HTMLSelectElement ? field.value : '')
}

async function then(form: HTMLFormElement, what: string, answer: Answer, said: Element | null): Promise<void> {
  const [verb = '', rest = ''] = what.split(/:(.*)/s)
  for (const field of form.querySelectorAll('[data-typed]')) field.removeAttribute('data-typed')
  if (verb === 'goto') {
    const to = root + rest.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(answer?.[name])))
    const warnings = warningsIn(answer)
    // They are nowhere else, so that the page waits until they are read.
    if (warnings.length > 0) said?.replaceChildren(el('a', { href: to }, 'Saved. Go on'), ...warnings)
    else location.href = to
    return
  }
  if (verb === 'away') {
    const to = String(answer?.[rest])
    // The service says where; an address of another kind would be a script of this page.
    if (/^https?:\/\//i.test(to)) location.href = to
    return
  }
  if (verb === 'say') {
    const { success, message, error, latencyMs } = answer ?? {}
    const words = String(message ?? error ?? (success ? 'It works.' : 'It does not work.'))
    const time = typeof latencyMs === 'number' ? ` (${Math.round(latencyMs)} ms)` : ''
    said?.replaceChildren(el('span', { class: success ? 'good' : 'bad' }, (success ? '✓ ' : '✗ ') + words + time))
    // What a test found also stands on the record.
    await refresh()
    return
  }
  if (verb === 'once' || verb === 'link') {
    form.reset()
    const [member = '', page] = rest.split('@').toReversed()
    const value = String(answer?.[member])
    // Under whatever path this page is, so that the link holds for every recipient.
    const shown = page === undefined ? value : new URL(`${root}${page}${value}`, location.href).href
    said?.replaceChildren(shownOnce('Shown once; keep it now:', shown))
    await refresh()
    return
  }
  if (verb === 'gone') dealtWith(form.closest<HTMLElement>('[data-card]'))
  if (verb === 'saved') {
    said?.replaceChildren(el('span', { class: 'good' }, rest || 'Saved.'), ...warningsIn(answer))
  } else {
    if (form.dataset.reset !== undefined) form.reset()
    if (rest) toast(rest, undoOf(form))
  }
  await refresh()
}

function warningsIn(answer: Answer): Element[] {
  const warnings = answer?.warnings
  return Array.isArray(warnings) ? warnings.map(one => el('p', { class: 'warn' }, String(one))) : []
}

/** The operation that takes back what this form did, with the body that it needs. */
function undoOf(form: HTMLFormElement): (() => Promise<void>) | undefined {
  const { undo, undoBody } = form.dataset
  if (undo === undefined) return undefined
  const [method = 'POST', path = ''] = undo.split(' ')
  return async () => {
    try {
      await send(method, `ui/api${path}`, undoBody === undefined ? undefined : JSON.parse(undoBody))
      toast('Taken back.')
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error))
    }
    await refresh()
  }
}

/** Cards that were dealt with here; a part of the page that is drawn for all may show them for some seconds more. */
const gone = new Set<string>()

function dealtWith(card: HTMLElement | null): void {
  if (card === null) return
  gone.add(card.dataset.card ?? '')
  // What was typed there would hold up the next look at that part.
  for (const field of card.querySelectorAll('[data-typed]')) field.removeAttribute('data-typed')
  const hadFocus = card.contains(document.activeElement)
  const beside = [card.nextElementSibling, card.previousElementSibling].find(one => one?.matches('[data-card]'))
  card.remove()
  // The keyboard goes on with the next decision.
  if (hadFocus) (beside instanceof HTMLElement ? beside : part('#main')).focus({ preventScroll: true })
}

document.addEventListener('refreshed', () => {
  if (gone.size === 0) return
  for (const card of document.querySelectorAll<HTMLElement>('[data-card]'))
    if (gone.has(card.dataset.card ?? '')) card.remove()
})

export function clear(form: HTMLFormElement): void {
  form.querySelector('output')?.replaceChildren()
  for (const problem of form.querySelectorAll('.problem')) problem.remove()
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid')
}

/** Each complaint beside the field that it is about; what is about none stands below. */
export function complain(form: HTMLFormElement, said: Element | null, error: unknown): void {
  const details = error instanceof ApiFault || error instanceof FieldFault ? error.details : []
  const left: string[] = []
  for (const { path, message } of details) {
    const field = fieldOf(form, path, message === 'Required')
    if (field === undefined) {
      left.push(`${path}: ${message}`)
      continue
    }
    const [, place] = path.split('#')
    const problem = el('small', { class: 'problem' }, place === undefined ? message : `#${place}: ${message}`)
    field.setAttribute('aria-invalid', 'true')
    const label = isTicked(field) ? field.closest('label') : null
    if (label === null) field.after(problem)
    else label.append(problem)
    for (let at = field.closest('details'); at; at = at.parentElement?.closest('details') ?? null) at.open = true
  }
  form.querySelector<HTMLElement>('[aria-invalid]')?.focus()
  const words = details.length === 0 ? (error instanceof Error ? error.message : String(error)) : left.join('; ')
  if (words === '') return
  if (said === null) toast(words)
  else said.replaceChildren(el('span', { class: 'bad', role: 'alert' }, words))
}

const isTicked = (field: Element): field is HTMLInputElement =>
  field instanceof HTMLInputElement && field.type === 'checkbox'

/**
 * The field that a place in the body came from: `operations.1` is the second box that is ticked, `openapi#/paths` is in `openapi`, and
 * `config` that is missing is the first of the fields in it.
 */
function fieldOf(form: HTMLFormElement, path: string, isMissing: boolean): HTMLElement | undefined {
  const place = `${path.replace('#', '.')}.`
  const fields = [...form.elements].filter(
    (one): one is HTMLElement & { name: string } =>
      one instanceof HTMLElement &&
      'name' in one &&
      one.name !== '' &&
      !(one as Partial<HTMLInputElement>).disabled &&
      (place.startsWith(`${one.name}.`) || (isMissing && String(one.name).startsWith(place))),
  )
  const nth = Number(place.slice((fields[0]?.name.length ?? 0) + 1).split('.', 1)[0] || Number.NaN)
  const ticked = fields.filter(one => isTicked(one) && one.checked)
  return ticked.length > 1 && Number.isInteger(nth) ? ticked[nth] : (ticked[0] ?? fields[0])
}

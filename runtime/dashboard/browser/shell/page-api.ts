import { el, part } from '../../../../shared/browser/dom.ts'
import type { LoggedIn } from '../../../../shared/wire/runtime/auth.ts'

/** The API did not do what was asked; the message is for the person at the page. */
export class ApiFault extends Error {
  readonly status: number
  readonly details: readonly { path: string; message: string }[]
  constructor(status: number, message: string, details: ApiFault['details'] = []) {
    super(message)
    this.name = 'ApiFault'
    this.status = status
    this.details = details
  }
}

const page = document.documentElement

/** The folder of the dashboard, under whatever path it is. */
export const root = page.dataset.root ?? './'

/**
 * Sends one operation to the API. A login that is over meanwhile is asked for once more, and then the same is sent again: the page,
 * and what was typed into it, stays.
 */
export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  for (;;) {
    const headers: Record<string, string> = { 'x-csrf-token': page.dataset.csrf ?? '' }
    if (body !== undefined) headers['content-type'] = 'application/json'
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await fetch(`${root}${path}`, { method, headers, cache: 'no-store', ...text }).catch(() => undefined)
    if (answer === undefined) throw new ApiFault(0, 'The runtime does not answer. Is it running?')
    const given: unknown = await answer.json().catch(() => undefined)
    if (answer.ok) return given as T
    const { error, code, details } = (given ?? {}) as { error?: string; code?: string; details?: ApiFault['details'] }
    if ((answer.status === 401 || code === 'csrf') && (await renewLogin())) continue
    throw new ApiFault(answer.status, error ?? `The runtime answered ${answer.status} without an explanation.`, details)
  }
}

let asking: Promise<boolean> | undefined

/** Takes the login that another tab has renewed, or asks for one in front of the page; false: not now. */
export function renewLogin(): Promise<boolean> {
  asking ??= takeRenewedLogin()
    .then(taken => taken || ask())
    .finally(() => {
      asking = undefined
    })
  return asking
}

/** The tabs of this browser share a login; each tells the others when it has a new one. */
const logins = new BroadcastChannel('waybill-logins')
if (page.dataset.csrf) logins.postMessage('')

/** Only that of the same person in the same tenant, for whom the page was made, and one that was not refused just now. */
async function takeRenewedLogin(): Promise<boolean> {
  const answer = await fetch(`${root}auth/me`, { cache: 'no-store' }).catch(() => undefined)
  if (!answer?.ok) return false
  const { user, csrfToken } = (await answer.json().catch(() => ({}))) as Partial<LoggedIn>
  const { id, tenantId } = user ?? {}
  if (csrfToken === undefined || id !== page.dataset.user || tenantId !== page.dataset.tenant) return false
  if (csrfToken === page.dataset.csrf) return false
  useToken(csrfToken)
  return true
}

function useToken(csrfToken: string): void {
  page.dataset.csrf = csrfToken
  for (const field of document.querySelectorAll<HTMLInputElement>('input[name=csrf]')) field.value = csrfToken
}

function ask(): Promise<boolean> {
  const dialog = part<HTMLDialogElement>('#login-again')
  const form = part<HTMLFormElement>('form', dialog)
  const said = part('[role=alert]', form)
  said.replaceChildren()
  dialog.showModal()
  return new Promise(resolve => {
    const end = (done: boolean) => {
      ended.abort()
      if (done) form.reset()
      dialog.close()
      resolve(done)
    }
    const ended = new AbortController()
    const { signal } = ended
    part('[value=later]', form).addEventListener('click', () => end(false), { signal })
    dialog.addEventListener('cancel', () => end(false), { signal })
    const look = async () => (await takeRenewedLogin()) && !signal.aborted && end(true)
    logins.addEventListener('message', look, { signal })
    // Another tab may have said so while this one was still being answered that there is no login.
    void look()
    form.addEventListener(
      'submit',
      async event => {
        event.preventDefault()
        const { email, password } = Object.fromEntries(new FormData(form))
        const answer = await fetch(`${root}auth/login`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          // What is sent again was meant for the tenant of this page.
          body: JSON.stringify({ email, password, tenantId: page.dataset.tenant }),
        }).catch(() => undefined)
        const body = (await answer?.json().catch(() => undefined)) as { error?: string; csrfToken?: string } | undefined
        if (answer?.ok && body?.csrfToken !== undefined) {
          useToken(body.csrfToken)
          logins.postMessage('')
          end(true)
        } else said.replaceChildren(body?.error ?? 'The runtime does not answer. Is it running?')
      },
      { signal },
    )
  })
}

/** A text that is shown once, with a button that copies it. */
export function shownOnce(words: string, secret: string): HTMLElement {
  const copy = el('button', { type: 'button' }, 'Copy')
  copy.addEventListener('click', async () => {
    // Without HTTPS a browser gives pages no clipboard; the text is selected by a click on it.
    const done = await navigator.clipboard?.writeText(secret).then(
      () => true,
      () => false,
    )
    copy.replaceChildren(done ? 'Copied' : 'Select it and copy it')
  })
  return el('div', { class: 'once' }, words, el('code', {}, secret), copy)
}

import { ApiFault, root } from '../shell/page-api.ts'
import { clear, complain } from '../shell/send-form.ts'

/** Sends what needs no login: it is how one comes to be. */
export async function postOpen<T>(path: string, body: object): Promise<T> {
  const answer = await fetch(root + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).catch(() => undefined)
  const given = (await answer?.json().catch(() => undefined)) as
    | (T & Partial<ApiFault> & { error?: string })
    | undefined
  if (answer?.ok && given !== undefined) return given
  throw new ApiFault(answer?.status ?? 0, given?.error ?? 'The runtime does not answer. Is it running?', given?.details)
}

/** What a form does, once at a time; each complaint stands beside its field. */
export function onSubmit(form: HTMLFormElement, said: HTMLElement, act: () => Promise<void>): void {
  form.addEventListener('submit', async event => {
    event.preventDefault()
    if (form.getAttribute('aria-busy') === 'true') return
    form.setAttribute('aria-busy', 'true')
    clear(form)
    said.replaceChildren('One moment …')
    try {
      await act()
    } catch (error) {
      said.replaceChildren()
      complain(form, said, error)
    } finally {
      form.removeAttribute('aria-busy')
    }
  })
}

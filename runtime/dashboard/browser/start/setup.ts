import { part } from '../../../../shared/browser/dom.ts'
import { demoRun } from '../overview/demo-run.ts'
import { shownOnce } from '../shell/page-api.ts'
import { onSubmit, postOpen } from './post-open.ts'

const form = part<HTMLFormElement>('#setup')
const said = part('#said')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
if (!token) {
  const field = document.querySelector<HTMLElement>('#bootstrap')
  if (field) {
    field.hidden = false
    part<HTMLInputElement>('input', field).required = true
  } else {
    form.hidden = true
    part('#no-link').hidden = false
  }
}

onSubmit(form, said, async () => {
  const { name, email, password, bootstrapKey } = Object.fromEntries(new FormData(form))
  const made = await postOpen<{ rawKey: string; user: { tenantId: string } }>('auth/setup', {
    token: token || bootstrapKey,
    name,
    email,
    password,
  })
  // The token is used up; a reload must not offer it again.
  history.replaceState(null, '', location.pathname)
  const { tenantId } = made.user
  // The key is shown whatever becomes of the login: it comes only once.
  const login = await postOpen<{ csrfToken: string }>('auth/login', { email, password, tenantId }).catch(
    () => undefined,
  )
  document.documentElement.dataset.csrf = login?.csrfToken ?? ''
  form.remove()
  said.replaceChildren()
  const done = part('#done')
  done.hidden = false
  part('#first-key').replaceChildren(shownOnce('Your first API key. It is shown once; keep it now:', made.rawKey))
  part('h2', done).focus()
})

demoRun()

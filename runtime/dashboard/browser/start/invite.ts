import { el, part } from '../../../../shared/browser/dom.ts'
import { root } from '../shell/page-api.ts'
import { postOpen } from './post-open.ts'

const form = part<HTMLFormElement>('#invite')
const said = part('#said')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
const say = (words: string) => said.replaceChildren(el('span', { class: 'bad', role: 'alert' }, words))
if (!token) {
  say('Open the whole link that you were sent: its token is missing here.')
  part<HTMLButtonElement>('button', form).disabled = true
}

form.addEventListener('submit', async event => {
  event.preventDefault()
  const { password, again } = Object.fromEntries(new FormData(form))
  if (password !== again) {
    say('The two passwords are not the same.')
    return
  }
  said.replaceChildren('One moment …')
  const set = await postOpen<{ user: { email: string; tenantId: string } }>('auth/invitation', { token, password })
  if (!set.ok) {
    say(set.body.error ?? 'It did not work.')
    return
  }
  // The token is used up; a reload must not offer it again.
  history.replaceState(null, '', location.pathname)
  const { email, tenantId } = set.body.user
  const login = await postOpen('auth/login', { email, password, tenantId })
  location.href = login.ok ? root : `${root}login`
})

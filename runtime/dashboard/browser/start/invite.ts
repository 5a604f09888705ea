import { el, part } from '../../../../shared/browser/dom.ts'
import { FieldFault } from '../shell/form-body.ts'
import { root } from '../shell/page-api.ts'
import { onSubmit, postOpen } from './post-open.ts'

const form = part<HTMLFormElement>('#invite')
const said = part('#said')
const token = new URLSearchParams(location.hash.slice(1)).get('token')
if (!token) {
  const words = 'Open the whole link that you were sent: its token is missing here.'
  said.replaceChildren(el('span', { class: 'bad', role: 'alert' }, words))
  part<HTMLButtonElement>('button', form).disabled = true
}

onSubmit(form, said, async () => {
  const { password, again } = Object.fromEntries(new FormData(form))
  if (password !== again) throw new FieldFault('again', 'The two passwords are not the same.')
  const set = await postOpen<{ user: { email: string; tenantId: string } }>('auth/invitation', { token, password })
  // The token is used up; a reload must not offer it again.
  history.replaceState(null, '', location.pathname)
  const { email, tenantId } = set.user
  const isIn = await postOpen('auth/login', { email, password, tenantId }).then(
    () => true,
    () => false,
  )
  location.href = isIn ? root : `${root}login`
})

import { part } from '../../../../shared/browser/dom.ts'
import { many } from '../../../../shared/browser/figures.ts'
import { askFirst, sendEach } from '../shell/ask-first.ts'

const boxes = () => [...document.querySelectorAll<HTMLInputElement>('[data-choose]')]
const chosen = () => boxes().filter(box => box.checked)

function showBulk(): void {
  const all = chosen()
  part('#bulk').hidden = all.length === 0
  part('#bulk-count').replaceChildren(`${many(all.length, 'decision')} chosen`)
}

function chooseNone(): void {
  for (const box of boxes()) {
    box.checked = false
    delete box.dataset.typed
  }
  showBulk()
}

async function decide(verb: 'approve' | 'reject', done: string, sure: string): Promise<void> {
  const ids = chosen().map(({ dataset }) => dataset.choose ?? '')
  if (!(await askFirst(sure.replace('{n}', many(ids.length, 'decision'))))) return
  chooseNone()
  await sendEach({ ids, path: id => `ui/api/v1/approvals/${id}/${verb}`, one: 'decision', done })
}

document.addEventListener('change', event => {
  if (event.target instanceof HTMLInputElement && event.target.dataset.choose !== undefined) showBulk()
})
document.addEventListener('refreshed', showBulk)
part('#bulk-approve').addEventListener('click', () =>
  decide('approve', 'approved', 'Approve {n}? What each of them asks for happens at once.'),
)
part('#bulk-reject').addEventListener('click', () => decide('reject', 'rejected', 'Reject {n}? Most runs then fail.'))
part('#bulk-none').addEventListener('click', chooseNone)

import { el } from '../../../../shared/browser/dom.ts'
import { many } from '../../../../shared/browser/figures.ts'
import { send } from './page-api.ts'
import { refresh } from './refresh.ts'
import { toast } from './toast.ts'

/** Asks in a dialog of the page itself; false: rather not. */
export function askFirst(words: string, yes = 'Yes, do it'): Promise<boolean> {
  const sure = el('button', { class: 'main', value: 'yes' }, yes)
  const dialog = el(
    'dialog',
    { class: 'ask', 'aria-labelledby': 'ask-words' },
    el(
      'form',
      { method: 'dialog' },
      el('p', { id: 'ask-words' }, words),
      el('div', { class: 'row' }, sure, el('button', { value: 'no' }, 'Rather not')),
    ),
  )
  document.body.append(dialog)
  dialog.showModal()
  sure.focus()
  return new Promise(resolve => {
    dialog.addEventListener('close', () => {
      resolve(dialog.returnValue === 'yes')
      dialog.remove()
    })
  })
}

const AT_ONCE = 4

interface Several {
  ids: readonly string[]
  /** The operation for one of them. */
  path: (id: string) => string
  /** One of them in a word, and what has become of it. */
  one: string
  done: string
}

/** One operation for each of several; what is refused is counted and said, and the rest goes on. */
export async function sendEach({ ids, path, one, done }: Several): Promise<void> {
  const left = [...ids]
  const refused: string[] = []
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) {
        toast(`${ids.length - left.length} of ${ids.length} …`)
        try {
          await send('POST', path(id), {})
        } catch (error) {
          refused.push(error instanceof Error ? error.message : String(error))
        }
      }
    }),
  )
  await refresh()
  const words = `${many(ids.length - refused.length, one)} ${done}`
  toast(refused.length === 0 ? `${words}.` : `${words}; ${refused.length} refused: ${refused[0]}`)
}

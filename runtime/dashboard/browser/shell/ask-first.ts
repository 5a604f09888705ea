import { el } from '../../../../shared/browser/dom.ts'

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

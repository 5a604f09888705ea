import { el } from '../../../../shared/browser/dom.ts'
import type { Member } from '../../manifest-help.ts'
import { type Completion, completionAt } from './completion.ts'

const MOST = 12

/** Offers names and values of a manifest below its editor: Ctrl+Space asks for them, and what is typed narrows them down. */
export function completeNames(editor: HTMLTextAreaElement, members: readonly Member[]): void {
  const list = el('ul', {
    class: 'completion plain',
    id: 'completion',
    role: 'listbox',
    tabindex: 0,
    'aria-label': 'What can stand here',
    hidden: true,
  })
  editor.after(list)
  let found: Completion | undefined
  let at = 0

  function close(): void {
    found = undefined
    list.hidden = true
    editor.removeAttribute('aria-activedescendant')
  }

  function draw(): void {
    found = completionAt(editor.value, editor.selectionStart, members)
    if (found === undefined) {
      close()
      return
    }
    const options = found.options.slice(0, MOST)
    at = Math.min(at, options.length - 1)
    list.replaceChildren(
      ...options.map(({ words, about }, i) => {
        const item = el(
          'li',
          { id: `completion-${i}`, role: 'option', 'aria-selected': String(i === at) },
          el('code', {}, words),
          ' ',
          el('small', {}, about),
        )
        // Before the editor loses the focus, and with it the place.
        item.addEventListener('mousedown', event => {
          event.preventDefault()
          take(i)
        })
        return item
      }),
    )
    list.hidden = false
    editor.setAttribute('aria-controls', list.id)
    editor.setAttribute('aria-activedescendant', `completion-${at}`)
  }

  function take(nth: number): void {
    const option = found?.options[nth]
    if (found === undefined || option === undefined) return
    editor.setRangeText(option.text, found.from, found.to, 'end')
    close()
    editor.dispatchEvent(new Event('input', { bubbles: true }))
  }

  editor.addEventListener('input', event => {
    // A change that no key made, such as a completion that was taken, opens nothing.
    if (!(event instanceof InputEvent)) return
    at = 0
    const isBegun = /"[\w-]*$/.test(editor.value.slice(0, editor.selectionStart))
    if (isBegun || found !== undefined) draw()
  })
  editor.addEventListener('keydown', event => {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault()
      at = 0
      draw()
      return
    }
    if (found === undefined) return
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) at = (at + by + list.children.length) % list.children.length
    else if (event.key === 'Enter') take(at)
    else if (event.key === 'Escape') close()
    else return
    event.preventDefault()
    if (by !== undefined) draw()
  })
  editor.addEventListener('blur', close)
}

import { el, icon, part } from '../../../../shared/browser/dom.ts'

const STAYS_MS = 6000
/** Long enough to be reached by the keyboard. */
const UNDO_STAYS_MS = 12_000

let timer: ReturnType<typeof setTimeout> | undefined

/** Words at the edge of the page, with a button that takes back what they say, where there is a way back. */
export function toast(words: string, undo?: () => unknown): void {
  const box = part('#toast')
  clearTimeout(timer)
  const close = () => box.replaceChildren()
  box.replaceChildren(el('span', {}, words), ...(undo === undefined ? [] : [undoButton(undo, close)]))
  const leave = () => {
    // Who points at it or has the focus there is about to use it.
    if (box.matches(':hover, :focus-within')) timer = setTimeout(leave, STAYS_MS)
    else close()
  }
  timer = setTimeout(leave, undo === undefined ? STAYS_MS : UNDO_STAYS_MS)
}

function undoButton(undo: () => unknown, close: () => void): HTMLElement {
  const button = el('button', { type: 'button', class: 'small' }, icon('undo'), ' Undo')
  button.addEventListener('click', () => {
    close()
    // The button is gone: the keyboard goes on from the content of the page.
    part('#main').focus({ preventScroll: true })
    undo()
  })
  return button
}

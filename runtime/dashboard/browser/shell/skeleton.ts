import { el } from '../../../../shared/browser/dom.ts'

/** What is there sooner needs no stand-in: one that flashes by is worse than none. */
const AFTER_MS = 300
const LINES = 4

/** Grey lines where a text will be, if it is not there by then; the text replaces them. */
export function skeleton(box: HTMLElement): void {
  const first = box.firstChild
  setTimeout(() => {
    if (box.firstChild !== first) return
    const lines = Array.from({ length: LINES }, () => el('i', {}))
    box.append(el('div', { class: 'skeleton', 'aria-hidden': 'true' }, ...lines))
  }, AFTER_MS)
}

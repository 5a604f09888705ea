import { el } from '../../../../shared/browser/dom.ts'
import { toast } from './toast.ts'

/** Copies a text; where a browser gives pages no clipboard, as without HTTPS, it says so. */
export function copyButton(about: string, text: () => string): HTMLButtonElement {
  const button = el('button', { type: 'button', class: 'copy', 'aria-label': `Copy ${about}` }, 'Copy')
  button.addEventListener('click', () => void copy(text()))
  return button
}

/** Buttons of the page that were made by the service: `data-copy` is what they copy. */
export function copyButtons(): void {
  document.addEventListener('click', event => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-copy]') : null
    if (button !== null) void copy(button.dataset.copy ?? '')
  })
}

async function copy(text: string): Promise<void> {
  const done = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  )
  toast(done ? 'Copied.' : 'The browser does not let this page use the clipboard: select the text and copy it.')
}

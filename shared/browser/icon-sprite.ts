import { html } from 'hono/html'
import { ICONS, type IconName } from './icons.ts'

/** Every icon once, unseen: what shows one refers to it. */
export const ICON_SPRITE = html`<svg class="unseen" aria-hidden="true" focusable="false">${Object.entries(ICONS).map(
  ([name, path]) => html`<symbol id="i-${name}" viewBox="0 0 20 20"><path d="${path}"></path></symbol>`,
)}</svg>`

/** Beside words that say the same. */
export function icon(name: IconName) {
  return html`<svg class="icon" aria-hidden="true"><use href="#i-${name}"></use></svg>`
}

import { html } from 'hono/html'
import type { Html } from './page.ts'

const HUES = 6

/** Two letters and a hue by which a service is found in a list; the logos of services are their owners' marks. */
export function monogramOf(name: string): { letters: string; hue: number } {
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? []
  const [first = '', second] = words
  const letters = second === undefined ? [...first].slice(0, 2) : [[...first][0], [...second][0]]
  const sum = [...name].reduce((total, letter) => (total * 31 + (letter.codePointAt(0) ?? 0)) % 9973, 7)
  return { letters: letters.join('').toLocaleUpperCase('en') || '?', hue: sum % HUES }
}

/** Beside the name of the service. */
export function monogram(name: string): Html {
  const { letters, hue } = monogramOf(name)
  return html`<span class="monogram m-${hue}" aria-hidden="true">${letters}</span>`
}

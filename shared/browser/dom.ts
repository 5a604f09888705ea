import type { IconName } from './icons.ts'

type Child = Node | string | number | undefined | false | readonly Child[]
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

const SVG = 'http://www.w3.org/2000/svg'

/** An element with its attributes and children. Texts become text nodes, so nothing that is shown can become markup. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(withAttributes(document.createElement(tag), attributes), children)
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(withAttributes(document.createElementNS(SVG, tag), attributes), children)
}

/** An icon of the page's sprite, beside words that say the same. */
export function icon(name: IconName): SVGElement {
  return svg('svg', { class: 'icon', 'aria-hidden': 'true' }, svg('use', { href: `#i-${name}` }))
}

/** The key is of a text that is being composed, such as a Japanese word. Safari ends that before the key that ends it, and leaves its code alone. */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === 229

/** The element of the page with this selector; it is part of the page, so its absence is a mistake. */
export function part<T extends Element = HTMLElement>(selector: string, within: ParentNode = document): T {
  const found = within.querySelector<T>(selector)
  if (found === null) throw new Error(`the page has no ${selector}`)
  return found
}

/** A column by its name, or one of numbers, which stand below each other by their digits. */
export type Column = string | { num: string }

/** The words of a heading and a table below it, whose cells carry their column's name for narrow screens. */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Child[])[]): HTMLElement {
  const names = columns.map(one => (typeof one === 'string' ? one : one.num))
  const look = columns.map(one => (typeof one === 'string' ? undefined : 'num'))
  return el(
    'div',
    // A keyboard can only scroll what it can reach.
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Table: ${caption}` },
    el(
      'table',
      {},
      el('caption', { class: 'unseen' }, caption),
      el('thead', {}, el('tr', {}, ...names.map((name, i) => el('th', { scope: 'col', class: look[i] }, name)))),
      el(
        'tbody',
        {},
        ...rows.map(cells =>
          el('tr', {}, ...cells.map((cell, i) => el('td', { 'data-label': names[i], class: look[i] }, cell))),
        ),
      ),
    ),
  )
}

function withAttributes<T extends Element>(element: T, attributes: Attributes): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    element.setAttribute(name, value === true ? '' : String(value))
  }
  return element
}

function fill<T extends Element>(element: T, children: readonly Child[]): T {
  for (const child of children) {
    if (child === undefined || child === false) continue
    if (typeof child === 'string' || typeof child === 'number') element.append(String(child))
    else if (child instanceof Node) element.append(child)
    else fill(element, child)
  }
  return element
}

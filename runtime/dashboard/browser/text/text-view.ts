import { el } from '../../../../shared/browser/dom.ts'
import { count } from '../../../../shared/browser/figures.ts'
import { prettyJson, visible } from '../../../../shared/browser/visible-text.ts'
import { copyButton } from '../shell/copy-button.ts'
import { type Block, type Inline, markdownBlocks } from './markdown.ts'

/** A text is shown in parts, so that a prompt of megabytes costs no more than what is read of it. */
const AT_FIRST = 3000
const MORE = 50_000
/** Longer texts are not read as Markdown. */
const MOST_MARKDOWN = 20_000

/** A text of a person or a model: Markdown, of which a long one shows its beginning. */
export function textView(text: string, omitted = 0): HTMLElement {
  const box = el('div', { class: 'text', dir: 'auto' })
  const whole = text.length <= AT_FIRST || (text.length <= MOST_MARKDOWN && text.length < 2 * AT_FIRST)
  const isMarkdown = text.length <= MOST_MARKDOWN
  const first = whole ? text : text.slice(0, AT_FIRST)
  box.append(...(isMarkdown ? markdownNodes(first) : [el('pre', { tabindex: 0 }, visible(first))]))
  if (whole) return withOmitted(box, omitted)
  const words = `Show all ${count(text.length)} characters`
  const button = el('button', { type: 'button' }, isMarkdown ? words : `Show more of ${count(text.length)} characters`)
  button.addEventListener('click', () => {
    if (isMarkdown) box.replaceChildren(...markdownNodes(text))
    else box.replaceChildren(plainView(text))
    withOmitted(box, omitted)
  })
  box.append(button)
  return box
}

function withOmitted(box: HTMLElement, omitted: number): HTMLElement {
  if (omitted > 0) box.append(el('p', { class: 'hint' }, `${count(omitted)} more characters are not in this answer.`))
  return box
}

/** A text as it is, as much of it at a time as is asked for. */
export function plainView(text: string, first = MORE): HTMLElement {
  const pre = el('pre', { tabindex: 0 }, visible(text.slice(0, first)))
  const box = el('div', {}, pre)
  let shown = first
  if (text.length <= first) return box
  const left = () => `Show more (${count(text.length - shown)} characters left)`
  const button = el('button', { type: 'button' }, left())
  button.addEventListener('click', () => {
    pre.append(visible(text.slice(shown, shown + MORE)))
    shown += MORE
    if (shown < text.length) button.replaceChildren(left())
    else button.remove()
  })
  box.append(button)
  return box
}

/** JSON that can be copied. */
export function jsonView(about: string, value: unknown): HTMLElement {
  const text = prettyJson(value)
  return el(
    'div',
    { class: 'json' },
    plainView(text, 2 * AT_FIRST),
    copyButton(about, () => text),
  )
}

/** What is made when it is first opened. */
export function lazyFold(summary: string, make: () => readonly Node[], open = false): HTMLDetailsElement {
  const box = el('details', { open }, el('summary', {}, summary))
  let isMade = false
  const fill = () => {
    if (isMade || !box.open) return
    isMade = true
    box.append(...make())
  }
  box.addEventListener('toggle', fill)
  fill()
  return box
}

function markdownNodes(text: string): HTMLElement[] {
  return markdownBlocks(text).map(blockNode)
}

function blockNode(block: Block): HTMLElement {
  switch (block.is) {
    case 'heading':
      // The headings of the page are its own.
      return el('p', { class: 'heading' }, el('strong', {}, ...inlineNodes(block.inside)))
    case 'code':
      return el('pre', { tabindex: 0 }, visible(block.text))
    case 'list': {
      const items = block.items.map(inside => el('li', {}, ...inlineNodes(inside)))
      return block.ordered ? el('ol', {}, ...items) : el('ul', {}, ...items)
    }
    case 'quote':
      return el('blockquote', {}, ...inlineNodes(block.inside))
    case 'rule':
      return el('hr')
    case 'paragraph':
      return el('p', {}, ...inlineNodes(block.inside))
  }
}

const inlineNodes = (inside: readonly Inline[]): (Node | string)[] => inside.map(inlineNode)

function inlineNode(one: Inline): Node | string {
  switch (one.is) {
    case 'text':
      return visible(one.text)
    case 'code':
      return el('code', {}, visible(one.text))
    case 'strong':
    case 'em':
      return el(one.is, {}, ...inlineNodes(one.inside))
    case 'link':
      // Where it leads is said, as its words may say something else.
      return el(
        'span',
        {},
        el('a', { href: one.href, rel: 'noopener noreferrer nofollow', target: '_blank' }, ...inlineNodes(one.inside)),
        el('small', {}, ` (${visible(hostOf(one.href))})`),
      )
    case 'image':
      // Nothing is loaded from elsewhere: it would say who reads this, and when.
      return el('small', {}, `[image ${visible(one.text)}: ${visible(one.href)}]`)
  }
}

function hostOf(href: string): string {
  return URL.canParse(href) ? new URL(href).host : href
}

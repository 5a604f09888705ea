import { html } from 'hono/html'
import { visible } from './browser/text/foreign-text.ts'
import { type Block, type Inline, markdownBlocks } from './browser/text/markdown.ts'
import type { Html, Shown } from './page.ts'

/** Longer texts are shown as they are. */
const MOST_MARKDOWN = 20_000

/** A text of a person or a model as markup that holds nothing of theirs but its words; see browser/text/text-view.ts. */
export function markdownHtml(text: string): Html {
  const inside =
    text.length > MOST_MARKDOWN ? html`<pre tabindex="0">${visible(text)}</pre>` : markdownBlocks(text).map(blockHtml)
  return html`<div class="text" dir="auto">${inside}</div>`
}

function blockHtml(block: Block): Html {
  switch (block.is) {
    case 'heading':
      // The headings of the page are its own.
      return html`<p class="heading"><strong>${inlineHtml(block.inside)}</strong></p>`
    case 'code':
      return html`<pre tabindex="0">${visible(block.text)}</pre>`
    case 'list': {
      const items = block.items.map(inside => html`<li>${inlineHtml(inside)}</li>`)
      return block.ordered ? html`<ol>${items}</ol>` : html`<ul>${items}</ul>`
    }
    case 'quote':
      return html`<blockquote>${inlineHtml(block.inside)}</blockquote>`
    case 'rule':
      return html`<hr>`
    case 'paragraph':
      return html`<p>${inlineHtml(block.inside)}</p>`
  }
}

const inlineHtml = (inside: readonly Inline[]): Shown[] => inside.map(oneHtml)

function oneHtml(one: Inline): Shown {
  switch (one.is) {
    case 'text':
      return visible(one.text)
    case 'code':
      return html`<code>${visible(one.text)}</code>`
    case 'strong':
      return html`<strong>${inlineHtml(one.inside)}</strong>`
    case 'em':
      return html`<em>${inlineHtml(one.inside)}</em>`
    case 'link':
      // Where it leads is said, as its words may say something else.
      return html`<span><a href="${one.href}" rel="noopener noreferrer nofollow" target="_blank">${inlineHtml(one.inside)}</a><small> (${visible(URL.parse(one.href)?.host ?? one.href)})</small></span>`
    case 'image':
      // Nothing is loaded from elsewhere: it would say who reads this, and when.
      return html`<small>[image ${visible(one.text)}: ${visible(one.href)}]</small>`
  }
}

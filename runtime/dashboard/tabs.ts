import { html } from 'hono/html'
import type { Html, Shown } from './page.ts'

export interface Tab {
  /** As the address names it: `?tab=people`. */
  id: string
  words: string
  body: Shown
}

/** Parts of a page of which one is seen: a link each, so that the address names it, and without a script each leads to its part. */
export function tabbed(label: string, path: string, all: readonly Tab[], asked: string | undefined): Html {
  const open = all.some(({ id }) => id === asked) ? asked : all[0]?.id
  return html`<div class="tabs" role="tablist" aria-label="${label}" data-tabs>${all.map(
    ({ id, words }) =>
      html`<a role="tab" id="tab-${id}" data-tab="${id}" href="${path}?tab=${id}" aria-controls="panel-${id}" aria-selected="${id === open ? 'true' : 'false'}"${id === open ? '' : html` tabindex="-1"`}>${words}</a>`,
  )}</div>
${all.map(
  ({ id, body }) =>
    html`<div id="panel-${id}" class="panel${id === open ? ' open' : ''}" role="tabpanel" aria-labelledby="tab-${id}">${body}</div>`,
)}`
}

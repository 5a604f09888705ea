import { html } from 'hono/html'
import { many, moment, money, usd } from '../../shared/browser/figures.ts'
import { type IconName, icon } from '../../shared/browser/icons.ts'
import { visible } from '../../shared/browser/visible-text.ts'
import type { Html, Shown } from './page.ts'

/** A time as it stands on the record, the same in every zone. */
export function when(iso: string | undefined | null): Shown {
  return iso ? html`<time datetime="${iso}">${moment(iso)}</time>` : '–'
}

/** A name that a person gave, with what is not seen in it made visible; `otherwise` where it says nothing. */
export const nameShown = (name: string | undefined, otherwise = ''): string => visible(name?.trim() || otherwise)

/** Dollars to be compared at a glance, with the exact amount where they are pointed at, and the calls that they leave out. */
export function price(value: number, unpriced = 0): Html {
  if (unpriced === 0) return html`<span title="${usd(value)}">${money(value)}</span>`
  const without = `${many(unpriced, 'call')} without a price`
  return html`<span title="${usd(value)} and ${without}">${money(value)} <small>+ ${without}</small></span>`
}

const GOOD = new Set(['succeeded', 'approved', 'active', 'started', 'delivered', 'online', 'installed', 'granted'])
const BAD = new Set(['failed', 'rejected', 'expired', 'revoked', 'refused', 'lost'])
const OPEN = new Set(['waiting', 'pending', 'uncertain', 'retrying', 'draining'])

/** A state in a word, which also says it without its colour. */
export function badge(word: string): Html {
  const kind = GOOD.has(word) ? 'good' : BAD.has(word) ? 'bad' : OPEN.has(word) ? 'warn' : 'plain'
  return html`<span class="badge ${kind}">${word}</span>`
}

/** A column by its name, or one of numbers, which stand below each other by their digits. */
export type Column = string | { num: string }

/** A table whose cells carry their column's name, for narrow screens; the keyboard can reach what scrolls. */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Shown[])[]): Html {
  const names = columns.map(one => (typeof one === 'string' ? one : one.num))
  const look = columns.map(one => (typeof one === 'string' ? '' : html` class="num"`))
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table: ${caption}"><table>
<caption class="unseen">${caption}</caption>
<thead><tr>${names.map((name, at) => html`<th scope="col"${look[at]!}>${name}</th>`)}</tr></thead>
<tbody>${rows.map(cells => html`<tr>${cells.map((cell, at) => html`<td data-label="${names[at] ?? ''}"${look[at] ?? ''}><div>${cell}</div></td>`)}</tr>`)}</tbody>
</table></div>`
}

export function facts(entries: readonly (readonly [string, Shown])[]): Html {
  return html`<dl class="facts">${entries.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}

/** What stands where there is nothing yet: what would stand there, and how it comes to be. */
export function nothing(words: Shown, doing: Shown = ''): Html {
  return html`<div class="nothing"><p>${words}</p>${doing}</div>`
}

/** JSON that can be folded away. */
export function folded(name: string, value: unknown, open = false): Html {
  const text = JSON.stringify(value, null, 2) ?? 'nothing'
  return html`<details${open ? html` open` : ''}><summary>${visible(name)}</summary><pre tabindex="0">${visible(text)}</pre></details>`
}

/** A part that the browser replaces by the same part of the page as it is now. */
export function live(id: string, body: Shown): Html {
  return html`<div id="${id}" data-live>${body}</div>`
}

export function card(title: string, body: Shown, more = ''): Html {
  const id = `card-${title.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`
  return html`<section class="card ${more}" aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${body}</section>`
}

export interface Sending {
  /** The operation, such as `POST /v1/agents`. */
  send: string
  /** What the browser does with the answer; see browser/send-form.ts. */
  after?: string
  confirm?: string
  label?: string
  className?: string
  id?: string
  /** The operation that takes it back, and its body: a toast offers it. */
  undo?: { send: string; body?: unknown } | undefined
}

/** A form that a module sends to the API as JSON, with the token against forged requests. */
export function form(
  { send, after = 'refresh', confirm, label, className = '', id, undo }: Sending,
  body: Shown,
): Html {
  return html`<form data-send="${send}" data-then="${after}" class="${className}" method="post"${
    confirm === undefined ? '' : html` data-confirm="${confirm}"`
  }${label === undefined ? '' : html` aria-label="${label}"`}${id === undefined ? '' : html` id="${id}"`}${undo === undefined ? '' : html` data-undo="${undo.send}"`}${undo?.body === undefined ? '' : html` data-undo-body="${JSON.stringify(undo.body)}"`}>${body}<output role="status"></output></form>`
}

/** By the verb that a button begins with: the same act looks the same everywhere. */
const ICON_OF: Readonly<Record<string, IconName>> = {
  Cancel: 'close',
  Chat: 'chat',
  Compare: 'compare',
  Delete: 'remove',
  Disconnect: 'close',
  Forget: 'remove',
  Fork: 'router',
  Remove: 'remove',
  Retry: 'again',
  Revoke: 'close',
  Test: 'done',
}

/** The words of a button, behind the icon of its verb where it has one. */
export function buttonWords(words: string): Shown {
  const name = ICON_OF[words.split(' ', 1)[0] ?? '']
  return name === undefined ? words : html`${icon(name)} ${words}`
}

/** One button that sends one operation. */
export function action(words: string, sending: Sending & { about?: string }, fields: Shown = ''): Html {
  const name = sending.about === undefined ? '' : html` aria-label="${`${words}: ${sending.about}`}"`
  return form({ className: 'inline', ...sending }, html`${fields}<button${name}>${buttonWords(words)}</button>`)
}

export function agentChoice(names: readonly string[], chosen = ''): Html {
  return html`<select name="agentName" required>${names.map(
    name => html`<option${name === chosen ? html` selected` : ''}>${name}</option>`,
  )}</select>`
}

/** Links to the next page of a list and back to its first. */
export function pager(root: string, path: string, query: Readonly<Record<string, string | undefined>>, next?: string) {
  const { cursor, ...filters } = query
  const to = (more: Record<string, string>) => {
    const given = Object.entries({ ...filters, ...more }).filter((entry): entry is [string, string] => !!entry[1])
    return `${root}${path}?${new URLSearchParams(given)}`
  }
  if (next === undefined && cursor === undefined) return ''
  return html`<p class="row pages">${cursor === undefined ? '' : html`<a href="${to({})}">Newest</a>`}
${next === undefined ? '' : html`<a rel="next" href="${to({ cursor: next })}">Older</a>`}</p>`
}

export interface Tab {
  /** As the address names it: `?tab=people`. */
  id: string
  words: string
  body: Shown
}

/** Parts of a page of which one is seen: a link each, so that the address names it, and without a script each leads to its part. */
export function tabPanels(label: string, path: string, all: readonly Tab[], asked: string | undefined): Html {
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

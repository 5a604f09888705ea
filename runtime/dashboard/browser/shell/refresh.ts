import { logInAgain, root } from './page-api.ts'

interface Policy {
  createHTML(text: string): string
}
interface PolicyFactory {
  createPolicy(name: string, rules: Policy): Policy
}

/**
 * The one place where text becomes markup: this service's own pages, fetched again. The browser refuses it anywhere else, and a
 * document that is parsed runs nothing.
 */
const policy: Policy = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes?.createPolicy('waybill-pages', {
  createHTML: text => text,
}) ?? { createHTML: text => text }

/** A page may name where the one part of it that changes is drawn for all who look at it. */
const partOfPage = (): string | undefined => document.querySelector<HTMLElement>('[data-live][data-from]')?.dataset.from

let seenTag = ''

async function current(): Promise<Document | undefined> {
  const from = partOfPage()
  const headers: HeadersInit = from === undefined ? {} : { 'if-none-match': seenTag }
  const address = from === undefined ? location.href : root + from
  const answer = await fetch(address, { cache: 'no-store', headers }).catch(() => undefined)
  if (answer === undefined) return undefined
  if (answer.redirected && /\/login$/.test(new URL(answer.url).pathname)) {
    return (await logInAgain()) ? current() : undefined
  }
  if (answer.status === 401) return (await logInAgain()) ? current() : undefined
  if (!answer.ok) return undefined
  seenTag = answer.headers.get('etag') ?? ''
  return documentOf(await answer.text())
}

const documentOf = (text: string): Document => new DOMParser().parseFromString(policy.createHTML(text), 'text/html')

/** Another page of this service, to take rows from. */
export async function parsed(address: string): Promise<Document | undefined> {
  const answer = await fetch(address, { cache: 'no-store' }).catch(() => undefined)
  return answer?.ok ? documentOf(await answer.text()) : undefined
}

let going: Promise<void> | undefined
let again = false

/** Brings the live parts of the page up to date. Calls that come meanwhile share the next round. */
export function refresh(): Promise<void> {
  if (going !== undefined) {
    again = true
    return going
  }
  going = swap().finally(() => {
    going = undefined
    if (again) {
      again = false
      void refresh()
    }
  })
  return going
}

async function swap(): Promise<void> {
  const now = await current()
  if (now === undefined) return
  for (const old of document.querySelectorAll<HTMLElement>('[data-live]')) {
    const fresh = now.getElementById(old.id)
    if (fresh === null || same(fresh, old) || inUse(old)) continue
    const next = document.importNode(fresh, true)
    keepOpen(old, next)
    old.replaceWith(next)
  }
  document.dispatchEvent(new Event('refreshed'))
}

/** What only this browser has put there is no difference. */
function same(fresh: Element, old: Element): boolean {
  const plain = old.cloneNode(true) as Element
  for (const output of plain.querySelectorAll('output')) output.replaceChildren()
  const given = fresh.cloneNode(true) as Element
  for (const one of [plain, given]) withoutOwn(one)
  return given.isEqualNode(plain)
}

/** Without what is folded, and how this browser says times. */
function withoutOwn(part: Element): void {
  for (const one of part.querySelectorAll('details')) one.removeAttribute('open')
  for (const one of part.querySelectorAll('time')) {
    one.removeAttribute('title')
    one.replaceChildren()
  }
}

/** The reader is typing there, or was: the text is worth more than an update. */
function inUse(part: HTMLElement): boolean {
  if (part.querySelector('[data-typed], [aria-busy=true], .once') !== null) return true
  return part.contains(document.activeElement) && document.activeElement?.matches('input, select, textarea') === true
}

/** What the reader opened stays open, and an answer that they got stays to be read. */
function keepOpen(old: HTMLElement, next: HTMLElement): void {
  const before = old.querySelectorAll('details')
  next.querySelectorAll('details').forEach((one, at) => {
    if (before[at]?.open) one.open = true
  })
  const said = new Map([...old.querySelectorAll('output')].map(one => [placeOf(one), one]))
  for (const output of next.querySelectorAll('output')) {
    const words = said.get(placeOf(output))?.childNodes ?? []
    if (words.length > 0) output.replaceChildren(...words)
  }
}

/** An answer belongs to what asked for it. */
function placeOf(output: HTMLOutputElement): string {
  return output.id || (output.closest('form')?.dataset.send ?? '')
}

document.addEventListener('input', event => {
  if (event.target instanceof HTMLElement) event.target.dataset.typed = ''
})

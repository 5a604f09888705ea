import { renewLogin } from './page-api.ts'

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

/** Of what the page shows. */
let etag = document.documentElement.dataset.etag ?? ''

/** The page as it is now without its frame, where that is another. */
async function current(told: boolean): Promise<Document | undefined> {
  const headers = { 'x-look': told ? 'told' : 'now', 'if-none-match': etag }
  const answer = await fetch(location.href, { cache: 'no-store', headers }).catch(() => undefined)
  if (answer === undefined) return undefined
  if (answer.status === 401) return (await renewLogin()) ? current(told) : undefined
  if (!answer.ok) return undefined
  const text = await textOf(answer)
  if (text === undefined) return undefined
  etag = answer.headers.get('etag') ?? ''
  return documentOf(text)
}

/** Nothing where it breaks off, as when the page is left meanwhile. */
const textOf = (answer: Response): Promise<string | undefined> => answer.text().catch(() => undefined)

const documentOf = (text: string): Document => new DOMParser().parseFromString(policy.createHTML(text), 'text/html')

/** Another page of this service, to take rows from. */
export async function parsed(address: string): Promise<Document | undefined> {
  const answer = await fetch(address, { cache: 'no-store' }).catch(() => undefined)
  const text = answer?.ok ? await textOf(answer) : undefined
  return text === undefined ? undefined : documentOf(text)
}

let going: Promise<void> | undefined
let after: { told: boolean; done: Promise<void> } | undefined

/** Brings the live parts of the page up to date; `told` of a change, or after an act of the reader. Calls that come meanwhile share the next round. */
export function refresh(told = false): Promise<void> {
  if (going === undefined) return begin(told)
  if (after === undefined) after = { told, done: going.then(() => begin(after?.told === true)) }
  else after.told &&= told
  return after.done
}

function begin(told: boolean): Promise<void> {
  after = undefined
  going = swap(told)
    .catch((error: unknown) => reportError(error))
    .finally(() => {
      going = undefined
    })
  return going
}

const LONGEST_PRESS_MS = 1000
/** A press that is not over yet: its click is of what stands under the pointer, which must not be replaced meanwhile. */
let pressed: Promise<void> | undefined

document.addEventListener('pointerdown', () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  pressed = promise
  // The click comes behind this event.
  for (const name of ['pointerup', 'pointercancel'])
    window.addEventListener(name, () => setTimeout(resolve), { once: true })
  setTimeout(resolve, LONGEST_PRESS_MS)
})

async function swap(told: boolean): Promise<void> {
  const now = await current(told)
  await pressed
  if (now !== undefined) for (const old of document.querySelectorAll<HTMLElement>('[data-live]')) renew(old, now)
  document.dispatchEvent(new Event('refreshed'))
}

function renew(old: HTMLElement, now: Document): void {
  const fresh = now.getElementById(old.id)
  if (fresh === null || same(fresh, old)) return
  if (inUse(old)) {
    // The next look gets this part once more.
    etag = ''
    return
  }
  const next = document.importNode(fresh, true)
  keepOpen(old, next)
  const { activeElement: at } = document
  const place = at instanceof HTMLElement && old.contains(at) ? { tag: at.localName, name: nameOf(at) } : undefined
  const scrolled = old.scrollLeft
  old.replaceWith(next)
  next.scrollLeft = scrolled
  if (place === undefined) return
  const again = [...next.querySelectorAll<HTMLElement>(place.tag)].find(one => nameOf(one) === place.name)
  // Where it is gone, the keyboard goes on from the part that it was in.
  if (again === undefined) next.tabIndex = -1
  ;(again ?? next).focus({ preventScroll: true })
}

/** What an element is found by in the part as it is now, so that the keyboard goes on from the same place. */
function nameOf(one: HTMLElement): string {
  const own = one.id || one.dataset.card || one.getAttribute('href')
  if (own) return own
  const sends = one.dataset.send ?? one.closest<HTMLElement>('form')?.dataset.send ?? ''
  return `${sends} ${one.getAttribute('aria-label') ?? one.textContent}`
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
  const said = new Map([...old.querySelectorAll('output')].map(one => [outputKey(one), one]))
  for (const output of next.querySelectorAll('output')) {
    const words = said.get(outputKey(output))?.childNodes ?? []
    if (words.length > 0) output.replaceChildren(...words)
  }
}

/** An answer belongs to what asked for it. */
function outputKey(output: HTMLOutputElement): string {
  return output.id || (output.closest('form')?.dataset.send ?? '')
}

document.addEventListener('input', event => {
  if (event.target instanceof HTMLElement) event.target.dataset.typed = ''
})

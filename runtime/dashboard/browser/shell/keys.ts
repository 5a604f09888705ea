import { el } from '../../../../shared/browser/dom.ts'
import { root } from './page-api.ts'
import { openPalette } from './palette.ts'

/** Single keys would fire where a voice or a stray finger types, so that they can be switched off (WCAG 2.1.4). */
const OFF = 'waybill-keys-off'

const HELP: readonly [key: string, words: string][] = [
  ['Ctrl K', 'go to an agent, a run or a page'],
  ['/', 'filter or search'],
  ['j, k', 'next and previous run or decision'],
  ['Enter', 'open the run'],
  ['x', 'choose the run'],
  ['a, r', 'approve or reject the decision'],
  ['g then o, r, a, s', 'go to overview, runs, approvals, sessions'],
  ['?', 'this help'],
]
const PAGES: Readonly<Record<string, string>> = { o: '', r: 'runs', a: 'approvals', s: 'sessions' }

/** What `j` and `k` go through. */
const STOPS = '.row-link, [data-card]'

export function keys(): void {
  let going = false
  document.addEventListener('keydown', event => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      openPalette()
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    if (document.querySelector('dialog[open]') !== null || localStorage.getItem(OFF) !== null) return
    const wasGoing = going
    going = event.key === 'g' && !wasGoing
    const page = PAGES[event.key]
    if (wasGoing && page !== undefined) {
      location.href = root + page
      return
    }
    // A key that is held goes through rows, and decides nothing but what it was pressed for.
    if (event.repeat && event.key !== 'j' && event.key !== 'k') return
    if (ACTS[event.key]?.()) event.preventDefault()
  })
}

/** Each says whether the key did something. */
const ACTS: Readonly<Record<string, () => boolean>> = {
  j: () => move(1),
  k: () => move(-1),
  '/': () => focus(document.querySelector<HTMLElement>('[data-search]')),
  '?': () => showHelp(),
  x: () => press(stop()?.closest('tr')?.querySelector('[data-choose]')),
  a: () => press(decision()?.querySelector('button.main')),
  r: () => press(decision()?.querySelector('button.danger')),
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches('input:not([type=checkbox]), select, textarea'))

const stop = (): HTMLElement | null => document.activeElement?.closest<HTMLElement>(STOPS) ?? null
const decision = (): HTMLElement | null => document.activeElement?.closest<HTMLElement>('[data-card]') ?? null

function focus(one: HTMLElement | null | undefined): boolean {
  one?.focus()
  return one != null
}

function press(one: Element | null | undefined): boolean {
  if (!(one instanceof HTMLElement)) return false
  one.click()
  return true
}

function move(by: number): boolean {
  const all = [...document.querySelectorAll<HTMLElement>(STOPS)]
  const now = stop()
  const at = now === null ? -1 : all.indexOf(now)
  const next = all[at === -1 ? (by > 0 ? 0 : all.length - 1) : at + by]
  next?.scrollIntoView({ block: 'nearest' })
  return focus(next)
}

function showHelp(): boolean {
  const off = el('input', { type: 'checkbox' })
  off.checked = localStorage.getItem(OFF) !== null
  off.addEventListener('change', () => {
    if (off.checked) localStorage.setItem(OFF, '1')
    else localStorage.removeItem(OFF)
  })
  const dialog = el(
    'dialog',
    { 'aria-labelledby': 'keys-title' },
    el('h2', { id: 'keys-title' }, 'Keys'),
    el(
      'dl',
      { class: 'facts' },
      ...HELP.flatMap(([key, words]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, words)]),
    ),
    el('label', {}, off, 'Single keys do nothing'),
    el('form', { method: 'dialog' }, el('button', { class: 'main' }, 'Close')),
  )
  document.body.append(dialog)
  dialog.addEventListener('close', () => dialog.remove())
  dialog.showModal()
  return true
}

import { el, isComposing } from '../../../../shared/browser/dom.ts'
import { visible } from '../../../../shared/browser/visible-text.ts'
import { root } from './page-api.ts'

interface PaletteEntry {
  words: string
  kind: 'Page' | 'Agent' | 'Run'
  href: string
}

const MOST_SHOWN = 12
const QUIET_MS = 150
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function palette(): void {
  document.querySelector('#open-palette')?.addEventListener('click', openPalette)
}

/** One line that leads to a page, an agent, or a run by its title or id. */
export function openPalette(): void {
  if (document.querySelector('dialog[open]') !== null) return
  const list = el('ul', { id: 'palette-list', role: 'listbox', 'aria-label': 'Places' })
  const field = el('input', {
    type: 'text',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-controls': 'palette-list',
    'aria-label': 'Go to an agent, a run or a page',
    placeholder: 'An agent, a run or a page',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  const dialog = el('dialog', { class: 'palette wide-dialog', 'aria-label': 'Go to' }, field, list)
  let places: PaletteEntry[] = pagesOfMenu()
  let hits: { words: string; places: PaletteEntry[] } = { words: '', places: [] }
  let shown: PaletteEntry[] = []
  let at = 0

  function draw(): void {
    const words = field.value.trim()
    const named = matching(places, words)
    const known = new Set(named.map(({ href }) => href))
    // What the search found has its words elsewhere than in its title.
    const others = hits.words === words ? hits.places.filter(({ href }) => !known.has(href)) : []
    shown = [...named, ...others].slice(0, MOST_SHOWN)
    at = Math.min(at, Math.max(0, shown.length - 1))
    const items = shown.map((place, i) => {
      const item = el(
        'li',
        { id: `palette-${i}`, role: 'option', 'aria-selected': String(i === at) },
        el('span', {}, visible(place.words)),
        el('small', {}, place.kind),
      )
      item.addEventListener('click', () => go(place))
      return item
    })
    list.replaceChildren(...items)
    field.setAttribute('aria-activedescendant', shown.length === 0 ? '' : `palette-${at}`)
  }

  let waiting: ReturnType<typeof setTimeout> | undefined
  field.addEventListener('input', () => {
    at = 0
    draw()
    clearTimeout(waiting)
    const words = field.value.trim()
    if (words.length < 3) return
    waiting = setTimeout(async () => {
      const found = await runs({ q: words })
      if (field.value.trim() !== words) return
      hits = { words, places: found }
      draw()
    }, QUIET_MS)
  })
  field.addEventListener('keydown', event => {
    if (isComposing(event)) return
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const chosen = shown[at]
    if (event.key === 'Enter' && chosen !== undefined) go(chosen)
    if (by === undefined || shown.length === 0) return
    event.preventDefault()
    at = (at + by + shown.length) % shown.length
    draw()
  })
  dialog.addEventListener('close', () => dialog.remove())
  document.body.append(dialog)
  dialog.showModal()
  draw()
  void Promise.all([agents(), runs()]).then(found => {
    places = [...places, ...found.flat()]
    draw()
  })
}

function go({ href }: PaletteEntry): void {
  location.href = href
}

function pagesOfMenu(): PaletteEntry[] {
  return [...document.querySelectorAll<HTMLAnchorElement>('#menu a')].map(link => ({
    words: link.querySelector('span')?.textContent ?? link.textContent ?? '',
    kind: 'Page',
    href: link.href,
  }))
}

async function read<T>(path: string): Promise<T[]> {
  const answer = await fetch(`${root}ui/api/v1/${path}`, { cache: 'no-store' }).catch(() => undefined)
  return answer?.ok ? ((await answer.json()) as T[]) : []
}

async function agents(): Promise<PaletteEntry[]> {
  const found = await read<{ name: string }>('agents?limit=200')
  return found.map(({ name }) => ({ words: name, kind: 'Agent', href: `${root}agents/${encodeURIComponent(name)}` }))
}

async function runs(asked: Record<string, string> = {}): Promise<PaletteEntry[]> {
  const query = new URLSearchParams({ fields: 'title', subRuns: 'folded', limit: '100', ...asked })
  const found = await read<{ id: string; title?: string; agentName: string }>(`runs?${query}`)
  return found.map(({ id, title, agentName }) => ({
    words: title ?? `${agentName} …${id.slice(-12)}`,
    kind: 'Run',
    href: `${root}runs/${id}`,
  }))
}

/** Those that begin with the words first, then those that have them. */
function matching(places: readonly PaletteEntry[], words: string): PaletteEntry[] {
  const wanted = words.toLowerCase()
  if (UUID.test(wanted)) return [{ words: `Run ${wanted}`, kind: 'Run', href: `${root}runs/${wanted}` }]
  const place = ({ words: of }: PaletteEntry) => of.toLowerCase().indexOf(wanted)
  const found = places.filter(one => place(one) !== -1)
  return [...found.filter(one => place(one) === 0), ...found.filter(one => place(one) > 0)]
}

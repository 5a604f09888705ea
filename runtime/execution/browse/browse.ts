import { z } from 'zod'
import { fromBase64 } from '../../../shared/sign/bytes.ts'
import { StepFailure } from '../failure.ts'
import type { RunSandbox, SandboxPipe } from '../sandbox/sandboxes.ts'
import type { BrowseAction, BrowseInput } from './browse-input.ts'
import { Declined, devtools } from './devtools.ts'
import { openPage, type Page } from './page.ts'

/** What a model is shown of one page, and of all that it had extracted. */
const MAX_TEXT = 32_768
const MAX_ITEMS = 200
const POLL_MS = 100

export interface BrowseDeps {
  browser: SandboxPipe
  /** Rejects with a StepFailure where the egress rules do not name the address. */
  allowed: (url: URL) => Promise<void>
  /** Why the way out may have refused an address, in words. */
  hint: (url: URL) => string | undefined
  writeFile: RunSandbox['writeFile']
  /** Aborted with the reported reason: the deadline, or the end of the run. */
  signal: AbortSignal
  /** Of the whole call. */
  deadlineMs: number
}

export interface Browsed {
  url: string
  status?: number
  title: string
  text: string
  truncated?: true
  /** False: the page was still loading, and is reported as it was. */
  loaded: boolean
  actions: Record<string, unknown>[]
  /** Of the actions, those that were not made because one before them failed. */
  notMade?: number
}

const read = z.object({
  url: z.string().max(2048),
  title: z.string().max(500),
  text: z.string().max(MAX_TEXT),
  cut: z.boolean(),
})
const located = z.object({
  found: z.boolean(),
  seen: z.boolean().optional(),
  x: z.number().optional(),
  y: z.number().optional(),
})
const focused = z.object({ found: z.boolean(), chosen: z.boolean().optional(), focused: z.boolean().optional() })
const extracted = z.object({ count: z.int(), cut: z.boolean(), items: z.array(z.string()).max(MAX_ITEMS) })

/** Opens a page, does what is asked on it, and tells what it then says. The first action that fails is the last. */
export async function browse(deps: BrowseDeps, { url, actions }: BrowseInput): Promise<Browsed> {
  const { browser: pipe, signal, deadlineMs } = deps
  const until = performance.now() + deadlineMs
  /** What loads forever must leave time to be looked at. */
  const patience = () => Math.max(100, (until - performance.now()) / 2)
  const browser = devtools(pipe, signal)
  try {
    const page = await openPage(browser)
    const visit = visitor(deps, page, patience)
    let loaded = await visit.goto(url)
    const results: Record<string, unknown>[] = []
    for (const action of actions) {
      try {
        results.push({ action: action.action, ...(await visit.act(action)) })
        loaded = await page.settled(patience())
      } catch (error) {
        if (signal.aborted || !(error instanceof Declined || isOfAction(error))) throw error
        results.push({ action: action.action, error: error.message })
        break
      }
    }
    const { cut, ...seen } = await steady(() => page.call(read, READ, MAX_TEXT), page, patience)
    const status = page.status()
    const notMade = actions.length - results.length
    return {
      url: seen.url,
      ...(status !== undefined && { status }),
      title: seen.title,
      text: seen.text,
      ...(cut && { truncated: true as const }),
      loaded,
      actions: results,
      ...(notMade > 0 && { notMade }),
    }
  } finally {
    await browser.close()
  }
}

const OF_ACTION: ReadonlySet<string> = new Set([
  'egress_denied',
  'unreachable',
  'action_failed',
  'file_failed',
  'limit_disk',
])
const isOfAction = (error: unknown): error is StepFailure => error instanceof StepFailure && OF_ACTION.has(error.code)

/** A page that goes elsewhere by itself takes away what was being looked at; so it is looked at again. */
async function steady<T>(look: () => Promise<T>, page: Page, patience: () => number): Promise<T> {
  for (let left = 5; ; left--) {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof Declined) || left === 0) throw error
      await page.settled(patience())
    }
  }
}

function visitor({ allowed, hint, writeFile, signal }: BrowseDeps, page: Page, patience: () => number) {
  let textLeft = MAX_TEXT

  async function goto(address: string): Promise<boolean> {
    const url = new URL(address)
    await allowed(url)
    const trouble = await page.goto(url.href)
    if (trouble !== undefined) {
      const why = hint(url)
      throw new StepFailure('unreachable', `${url.host}: ${trouble}${why === undefined ? '' : `: ${why}`}`)
    }
    return page.settled(patience())
  }

  const missing = (selector: string) => new StepFailure('action_failed', `nothing on the page is ${selector}`)

  async function act(action: BrowseAction): Promise<Record<string, unknown>> {
    switch (action.action) {
      case 'goto':
        await goto(action.url)
        return { url: action.url }
      case 'click': {
        const { found, seen, x = 0, y = 0 } = await page.call(located, LOCATE, action.selector)
        if (!found) throw missing(action.selector)
        if (!seen) throw new StepFailure('action_failed', `${action.selector} is there, but not to be seen`)
        await page.click(x, y)
        return { selector: action.selector }
      }
      case 'type': {
        const { selector, text, submit } = action
        const field = await page.call(focused, FOCUS, selector, text)
        if (!field.found) throw missing(selector)
        if (field.chosen === false)
          throw new StepFailure('action_failed', `${selector} has no option ${text.slice(0, 100)}`)
        if (field.focused === false) throw new StepFailure('action_failed', `${selector} is nothing to type into`)
        if (field.chosen === undefined) await page.insert(text)
        if (submit) await page.enter()
        return { selector }
      }
      case 'wait': {
        const end = performance.now() + action.seconds * 1000
        const look = () => page.call(extracted, EXTRACT, action.selector, undefined, 0, 0)
        while ((await steady(look, page, patience)).count === 0) {
          if (performance.now() > end) {
            throw new StepFailure('action_failed', `nothing was ${action.selector} within ${action.seconds} s`)
          }
          await new Promise(resolve => setTimeout(resolve, POLL_MS))
          signal.throwIfAborted()
        }
        return { selector: action.selector }
      }
      case 'extract': {
        const { selector, attribute } = action
        const { count, items, cut } = await page.call(extracted, EXTRACT, selector, attribute, MAX_ITEMS, textLeft)
        textLeft -= items.reduce((sum, item) => sum + item.length, 0)
        if (textLeft < 0) throw new StepFailure('sandbox_failed', 'the browser gave more than it was asked for')
        return { selector, count, items, ...(cut && { truncated: true }) }
      }
      case 'screenshot': {
        const picture = fromBase64(await page.picture(action.fullPage ?? false))
        await writeFile(action.path, picture)
        return { path: action.path, bytes: picture.length }
      }
    }
  }

  return { goto, act }
}

/**
 * What is run inside of pages, in a world of its own: the page's scripts cannot change what these see of the language and the
 * document's methods. Each is a function, by its source. What comes back is bounded here and read with a schema there.
 */
const READ = `function (most) {
  const text = document.body ? document.body.innerText : ''
  return { url: location.href.slice(0, 2048), title: document.title.slice(0, 500), text: text.slice(0, most), cut: text.length > most }
}`

/** Where a click lands: in the middle of what is seen of the element. A link opens here and not in a window that does not exist. */
const LOCATE = `function (selector) {
  const element = document.querySelector(selector)
  if (!element) return { found: false }
  element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })
  for (const one of [element.closest('a'), element.form]) if (one) one.removeAttribute('target')
  const box = element.getBoundingClientRect()
  return { found: true, seen: box.width > 0 && box.height > 0, x: box.left + box.width / 2, y: box.top + box.height / 2 }
}`

/** Ready to be typed into, with what stands in it selected; a list is set to the option of that value or text. */
const FOCUS = `function (selector, text) {
  const element = document.querySelector(selector)
  if (!element) return { found: false }
  element.scrollIntoView({ block: 'center', behavior: 'instant' })
  if (element instanceof HTMLSelectElement) {
    const option = [...element.options].find(one => one.value === text || one.text.trim() === text)
    if (!option) return { found: true, chosen: false }
    element.value = option.value
    element.dispatchEvent(new Event('input', { bubbles: true }))
    element.dispatchEvent(new Event('change', { bubbles: true }))
    return { found: true, chosen: true }
  }
  if (element.form) element.form.removeAttribute('target')
  element.focus()
  if (element.select) element.select()
  return { found: true, focused: document.activeElement === element }
}`

const EXTRACT = `function (selector, attribute, mostItems, mostText) {
  const all = [...document.querySelectorAll(selector)]
  const items = []
  let left = mostText
  for (const element of all.slice(0, mostItems)) {
    const absolute = attribute === 'href' || attribute === 'src' ? element[attribute] : undefined
    const value = attribute ? (typeof absolute === 'string' ? absolute : element.getAttribute(attribute)) : element.innerText
    const text = String(value ?? element.textContent ?? '')
    items.push(text.slice(0, left))
    left -= text.length
    if (left <= 0) break
  }
  return { count: all.length, items, cut: left < 0 || items.length < all.length }
}`

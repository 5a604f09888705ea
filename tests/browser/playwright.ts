import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { isOfMachine, QUIET } from './chromium.ts'

export interface Seen {
  context: BrowserContext
  page: Page
  /** Addresses that its pages asked for since the last time this was asked. */
  requests: () => string[]
  /** What the browser complained about: a breach of the page's policy, an uncaught error. */
  complaints: () => string[]
  close: () => Promise<void>
}

export interface Room {
  timezoneId?: string
  javaScriptEnabled?: boolean
}

export interface Opened extends Seen {
  /** Another person, in a browser that knows nothing of this one's logins. */
  another: (fixture?: Room) => Promise<Seen>
}

/** The system's Chromium; in a zone of its own, or without scripts, where that matters. */
export async function openPlaywright(fixture: Room = {}): Promise<Opened> {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: QUIET })
  return {
    ...(await seenIn(browser, fixture)),
    another: other => seenIn(browser, other),
    close: () => browser.close(),
  }
}

async function seenIn(browser: Browser, fixture: Room = {}): Promise<Seen> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...fixture })
  const asked: string[] = []
  const said: string[] = []
  const take = (list: string[]) => list.splice(0)
  // Of every tab that a test opens.
  context.on('request', request => asked.push(request.url()))
  context.on('console', message => {
    const isComplaint = message.type() === 'error' || message.type() === 'warning'
    if (isComplaint && !isOfMachine(message.text())) said.push(message.text())
  })
  context.on('weberror', error => said.push(String(error.error())))
  return {
    context,
    page: await context.newPage(),
    requests: () => take(asked),
    complaints: () => take(said),
    close: () => context.close(),
  }
}

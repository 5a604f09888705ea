import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'

/** Nothing of the browser's own may ask the network. */
const QUIET = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export interface Seen {
  context: BrowserContext
  page: Page
  /** Addresses that its pages asked for since the last time this was asked. */
  requests: () => string[]
  /** What the browser complained about: a breach of the page's policy, an error nobody caught. */
  complaints: () => string[]
  close: () => Promise<void>
}

/** The system's Chromium with a profile of its own; in a zone of its own, or without scripts, where that matters. */
export async function openPlaywright(
  options: { timezoneId?: string; javaScriptEnabled?: boolean } = {},
): Promise<Seen> {
  const profile = await mkdtemp(join(tmpdir(), 'waybill-playwright-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: '/usr/bin/chromium',
    args: QUIET,
    viewport: { width: 1280, height: 900 },
    ...options,
  })
  const asked: string[] = []
  const said: string[] = []
  const take = (list: string[]) => list.splice(0)
  // Of every tab that a test opens.
  context.on('request', request => asked.push(request.url()))
  context.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') said.push(message.text())
  })
  context.on('weberror', error => said.push(String(error.error())))
  context.on('dialog', dialog => void dialog.accept())
  const page = context.pages()[0] ?? (await context.newPage())
  return {
    context,
    page,
    requests: () => take(asked),
    complaints: () => take(said),
    async close() {
      await context.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

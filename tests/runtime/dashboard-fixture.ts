import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { type RuntimeParts, type RuntimeService, serveRuntime } from '../../runtime/host/node.ts'
import type { SetupDone } from '../../shared/wire/runtime/auth.ts'
import { type Opened, openPlaywright, type Room } from '../browser/playwright.ts'

export const OWNER = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
/** Markup where a person, an agent or a model can put any text. */
export const HOSTILE = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`

export interface DashboardFixture {
  service: RuntimeService
  origin: string
  folder: string
  /** Makes the owner over HTTP; the answer is the first key. */
  setUp: () => Promise<string>
  /** The key that `call` sends from now on. */
  use: (rawKey: string) => void
  call: <T>(method: string, path: string, body?: unknown) => Promise<T>
  close: () => Promise<void>
}

/** A runtime on a socket, with its files in a folder of its own. */
export async function dashboardFixture(
  vars: Record<string, string> = {},
  parts: RuntimeParts = {},
): Promise<DashboardFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-dashboard-'))
  const own = { PLATFORM_BIND: '127.0.0.1:0', PLATFORM_DATA_DIR: folder, PLATFORM_LOG_LEVEL: 'off' }
  const service = await serveRuntime({ ...own, ...vars }, parts)
  let key = ''

  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(service.origin + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return (text === '' || (!text.startsWith('{') && !text.startsWith('[')) ? text : JSON.parse(text)) as T
  }

  return {
    service,
    origin: service.origin,
    folder,
    call,
    use(rawKey) {
      key = rawKey
    },
    async setUp() {
      const token = new URLSearchParams(new URL(service.setupLink!).hash.slice(1)).get('token')
      const answer = await fetch(`${service.origin}/auth/setup`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token, ...OWNER }),
      })
      key = ((await answer.json()) as SetupDone).rawKey
      return key
    },
    async close() {
      await service.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Answers the question of the page whether something is meant. */
export const confirmed = (page: Page): Promise<void> => page.click('dialog.ask button.main')

/** Through the login page, which must be shown. */
export async function logIn(page: Page, person = OWNER): Promise<void> {
  await page.fill('[name=email]', person.email)
  await page.fill('[name=password]', person.password)
  await page.click('text=Log in >> nth=-1')
  await page.waitForSelector('nav')
}

/** A browser in which the owner is logged in. */
export async function openAsOwner({ origin }: DashboardFixture, room?: Room): Promise<Opened> {
  const seen = await openPlaywright(room)
  seen.page.setDefaultTimeout(10_000)
  await seen.page.goto(`${origin}/login`)
  await logIn(seen.page)
  return seen
}

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasChromium } from '../browser/chromium.ts'
import { type Opened, openPlaywright } from '../browser/playwright.ts'
import { type DashboardFixture, dashboardFixture, logIn } from './dashboard-fixture.ts'

if (hasChromium()) {
  describe('pages behind others', () => {
    let fixture: DashboardFixture
    let seen: Opened
    beforeAll(async () => {
      fixture = await dashboardFixture()
      await fixture.setUp()
      seen = await openPlaywright()
      await seen.page.goto(`${fixture.origin}/login`)
      await logIn(seen.page)
      await seen.page.goto('about:blank')
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    /** As a browser does with a tab that another one covers. */
    const hide = (page: Page, hidden: boolean) =>
      page.evaluate(value => {
        Object.defineProperty(document, 'hidden', { value, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      }, hidden)

    /** Eight tabs of one address, of which the first is seen. */
    async function eight(path: string, isThere: (page: Page) => Promise<unknown>): Promise<Page> {
      const opened = []
      for (let n = 0; n < 8; n++) {
        const page = await seen.context.newPage()
        page.setDefaultTimeout(10_000)
        await page.goto(`${fixture.origin}/${path}`)
        await page.waitForSelector('text=● live')
        await isThere(page)
        await hide(page, true)
        opened.push(page)
      }
      await hide(opened[0]!, false)
      return opened[0]!
    }

    it('keep no connection: an eighth page of a run comes, and the first follows it again when it is seen', async () => {
      await fixture.call('POST', '/v1/agents', { name: 'waiter', manifest: { tools: ['wait_signal'] } })
      const input = { prompt: '/call wait_signal {"name":"go"}' }
      const { id } = await fixture.call<{ id: string }>('POST', '/v1/runs', { agentName: 'waiter', input })
      const first = await eight(`runs/${id}`, page => page.waitForSelector('#timeline >> text=wait_signal'))
      await fixture.call('POST', `/v1/runs/${id}/signals/go`, {})
      await first.waitForSelector('#run-over', { state: 'attached' })
      await expect.poll(() => first.locator('#timeline .line').count()).toBeGreaterThan(3)
    }, 60_000)

    it('the same of a conversation, which goes on where it is seen', async () => {
      await fixture.call('POST', '/v1/agents', { name: 'talker', manifest: {} })
      const { id } = await fixture.call<{ id: string }>('POST', '/v1/sessions', { agentName: 'talker' })
      const first = await eight(`sessions/${id}`, page => page.waitForSelector('#say textarea'))
      await first.fill('#say textarea', 'Anybody there?')
      await first.press('#say textarea', 'Enter')
      await first.waitForSelector('#talk >> text=You said: Anybody there?')
    }, 60_000)
  })
}

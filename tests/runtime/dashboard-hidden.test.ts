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
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    it('keep no connection: an eighth page comes, and each follows again when it is seen', async () => {
      await fixture.call('POST', '/v1/agents', { name: 'waiter', manifest: { tools: ['wait_signal'] } })
      const input = { prompt: '/call wait_signal {"name":"go"}' }
      const { id } = await fixture.call<{ id: string }>('POST', '/v1/runs', { agentName: 'waiter', input })
      await seen.page.goto(`${fixture.origin}/login`)
      await logIn(seen.page)
      await seen.page.goto('about:blank')
      const opened = []
      for (let n = 0; n < 8; n++) {
        const page = await seen.context.newPage()
        page.setDefaultTimeout(10_000)
        await page.goto(`${fixture.origin}/runs/${id}`)
        await page.waitForSelector('text=● live')
        await page.waitForSelector('#timeline >> text=wait_signal')
        // As a browser does with a tab that another one covers.
        await page.evaluate(() => {
          Object.defineProperty(document, 'hidden', { value: true, configurable: true })
          document.dispatchEvent(new Event('visibilitychange'))
        })
        opened.push(page)
      }
      const first = opened[0]!
      await first.evaluate(() => {
        Object.defineProperty(document, 'hidden', { value: false, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      })
      await fixture.call('POST', `/v1/runs/${id}/signals/go`, {})
      await first.waitForSelector('#run-over', { state: 'attached' })
      await expect.poll(() => first.locator('#timeline .line').count()).toBeGreaterThan(3)
    }, 60_000)
  })
}

import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasChromium } from '../browser/chromium.ts'
import { type Opened, openPlaywright } from '../browser/playwright.ts'
import { type DashboardFixture, dashboardFixture, logIn, OWNER } from './dashboard-fixture.ts'

if (hasChromium()) {
  describe('two tabs of one browser', () => {
    const GUEST = { ...OWNER, name: 'Grace', email: 'grace@example.com' }
    let fixture: DashboardFixture
    let seen: Opened
    let page: Page
    let other: Page
    const at = (path: string) => `${fixture.origin}/${path}`

    beforeAll(async () => {
      fixture = await dashboardFixture()
      await fixture.setUp()
      const invited = { email: GUEST.email, name: GUEST.name, role: 'member' }
      const { linkToken } = await fixture.call<{ linkToken: string }>('POST', '/v1/users', invited)
      await fixture.call('POST', '/auth/invitation', { token: linkToken, password: GUEST.password })
      seen = await openPlaywright()
      page = seen.page
      page.setDefaultTimeout(10_000)
      other = await seen.context.newPage()
      other.setDefaultTimeout(10_000)
      await logInElsewhere()
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    async function logInElsewhere(person = OWNER): Promise<void> {
      await seen.context.clearCookies()
      await other.goto(at('login'))
      await logIn(other, person)
    }

    async function typeAgent(name: string): Promise<void> {
      await page.goto(at('agents'))
      await page.fill('[name=name]', name)
      await page.fill('#manifest', '{ "model": "demo/echo" }')
    }
    // By the page itself: news may make it ask for the login before a pointer is there.
    const sendIt = () => page.locator('text=Make the agent').evaluate((button: HTMLElement) => button.click())
    const asked = () => page.locator('#login-again[open]')

    it('the first goes on with the login that the second renewed before it sends', async () => {
      await typeAgent('before')
      await logInElsewhere()
      await sendIt()
      await page.waitForURL(at('agents/before'))
    })

    it('the first goes on with a login that the second renewed while it was being answered that there is none', async () => {
      await typeAgent('meanwhile')
      await seen.context.clearCookies()
      const asked = Promise.withResolvers<void>()
      const renewed = Promise.withResolvers<void>()
      const late = async (route: Route) => {
        const response = await route.fetch()
        expect(response.status()).toBe(401)
        asked.resolve()
        await renewed.promise
        await route.fulfill({ response })
      }
      await page.route('**/auth/me', late, { times: 1 })
      await sendIt()
      await asked.promise
      await logInElsewhere()
      renewed.resolve()
      await page.waitForURL(at('agents/meanwhile'))
    })

    it('the first, which asks for a login, goes on with the one of the second, but never as another person', async () => {
      await typeAgent('behind')
      await seen.context.clearCookies()
      await sendIt()
      await asked().waitFor()
      await logInElsewhere(GUEST)
      await other.waitForTimeout(300)
      expect(await asked().count()).toBe(1)
      await logInElsewhere()
      await page.waitForURL(at('agents/behind'))
    })

    it('the first asks where the second has become another person', async () => {
      await typeAgent('beside')
      await logInElsewhere(GUEST)
      await sendIt()
      await asked().waitFor()
      await page.click('#login-again >> text=Not now')
      await expect(fixture.call('GET', '/v1/agents/beside')).rejects.toThrow('404')
    })
  })
}

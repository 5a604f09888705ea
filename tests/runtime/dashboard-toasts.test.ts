import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Agent } from '../../shared/wire/runtime/agent.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Person } from '../../shared/wire/runtime/user.ts'
import { hasChromium } from '../browser/chromium.ts'
import type { Seen } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { confirmed, type DashboardFixture, dashboardFixture, openAsOwner } from './dashboard-fixture.ts'

const GRACE = 'grace@example.com'

if (hasChromium()) {
  describe('what a page says in passing', () => {
    let fixture: DashboardFixture
    let seen: Seen
    let page: Page
    let run: string
    const at = (path: string) => `${fixture.origin}/${path}`

    beforeAll(async () => {
      fixture = await dashboardFixture()
      await fixture.setUp()
      const { call } = fixture
      for (const systemPrompt of ['old', 'new'])
        await call('POST', '/v1/agents', { name: 'echo', manifest: { systemPrompt, model: 'demo/echo' } })
      await call('POST', '/v1/users', { name: 'Grace', email: GRACE, role: 'viewer' })
      for (const prompt of ['one', 'two']) {
        run = (await call<Run>('POST', '/v1/runs', { agentName: 'echo', input: { prompt } })).id
        await call('GET', `/v1/runs/${run}/events`)
      }
      seen = await openAsOwner(fixture)
      page = seen.page
    }, 30_000)
    afterEach(async () => {
      await page.unrouteAll({ behavior: 'ignoreErrors' })
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    const undo = () => page.click('#toast button:has-text("Undo")')
    const grace = async () => {
      const people = await fixture.call<Person[]>('GET', '/v1/users')
      return people.find(({ email }) => email === GRACE)!
    }

    it('takes a promoted version back', async () => {
      const active = async () => (await fixture.call<Agent>('GET', '/v1/agents/echo')).manifest.systemPrompt
      expect(await active()).toBe('new')
      await page.goto(at('agents/echo?tab=versions'))
      await page.click('#agent-versions >> text=Promote >> nth=-1')
      await page.waitForSelector('#toast button:has-text("Undo")')
      expect(await active()).toBe('old')
      await undo()
      await page.waitForSelector('#toast:has-text("Taken back.")')
      expect(await active()).toBe('new')
    })

    it('takes a changed role and a disabled person back', async () => {
      await page.goto(at('settings?tab=people'))
      const row = page.locator('#panel-people tr', { hasText: GRACE })
      await row.locator('select').selectOption('member')
      await row.locator('form:has(select) button').click()
      await page.waitForSelector('#toast button:has-text("Undo")')
      expect((await grace()).role).toBe('member')
      await undo()
      await eventually(async () => expect((await grace()).role).toBe('viewer'))
      await page.waitForSelector('#toast:has-text("Taken back.")')
      await row.locator('text=Disable').click()
      await confirmed(page)
      await page.waitForSelector('#toast button:has-text("Undo")')
      expect((await grace()).status).toBe('disabled')
      await undo()
      await eventually(async () => expect((await grace()).status).toBe('invited'))
    })

    it('takes a forgotten view and a cleared choice of runs back, by the keyboard as well', async () => {
      await page.goto(at('runs?status=succeeded'))
      await page.fill('#views input', 'Good ones')
      await page.click('text=Save view')
      await page.click('[aria-label="Forget the view Good ones"]')
      await page.waitForSelector('.view', { state: 'detached' })
      await page.focus('#toast button')
      await page.keyboard.press('Enter')
      await page.waitForSelector('.view a:has-text("Good ones")')
      await page.check('table.runs tbody [data-choose] >> nth=0')
      await page.waitForSelector('#bulk-count:has-text("1 run chosen")')
      await page.click('#bulk-none')
      await page.waitForSelector('#bulk', { state: 'hidden' })
      await undo()
      await page.waitForSelector('#bulk-count:has-text("1 run chosen")')
      expect(await page.isChecked('table.runs tbody [data-choose] >> nth=0')).toBe(true)
    })

    it('goes after some seconds, and stays while someone points at it', async () => {
      await page.clock.install()
      await page.goto(at('runs'))
      await page.check('table.runs tbody [data-choose] >> nth=0')
      await page.click('#bulk-none')
      await page.hover('#toast button')
      await page.clock.runFor(30_000)
      expect(await page.isVisible('#toast button')).toBe(true)
      await page.mouse.move(5, 500)
      await page.clock.runFor(7000)
      expect(await page.locator('#toast > *').count()).toBe(0)
    })

    it.each([
      { takes: 1200, stands: true },
      { takes: 0, stands: false },
    ])(
      'puts lines where a conversation will be only where it takes over 0.3 s: $takes ms',
      async ({ takes, stands }) => {
        await page.goto(at('runs'))
        await page.route('**/steps/model-1/request', async route => {
          if (takes > 0) await new Promise(resolve => setTimeout(resolve, takes))
          await route.continue()
        })
        await page.goto(at(`runs/${run}`))
        await page.evaluate(() => {
          const times: { skeleton?: number; asked?: number } = {}
          Object.assign(globalThis, { times })
          new MutationObserver(() => {
            if (document.querySelector('.skeleton') !== null) times.skeleton ??= performance.now()
          }).observe(document.body, { childList: true, subtree: true })
        })
        const line = page.locator('#timeline button:has-text("model-1")')
        await line.waitFor()
        const asked = await line.evaluate((button: HTMLElement) => {
          const now = performance.now()
          button.click()
          return now
        })
        await page.waitForSelector('#step .message.answer')
        expect(await page.locator('.skeleton').count()).toBe(0)
        const { skeleton } = await page.evaluate(
          () => (globalThis as unknown as { times: { skeleton?: number } }).times,
        )
        if (stands) expect((skeleton ?? 0) - asked).toBeGreaterThanOrEqual(299)
        else expect(skeleton).toBe(undefined)
      },
    )
  })
}

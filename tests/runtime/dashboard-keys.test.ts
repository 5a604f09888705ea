import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { hasChromium } from '../browser/chromium.ts'
import type { Seen } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { confirmed, type DashboardFixture, dashboardFixture, openAsOwner } from './dashboard-fixture.ts'

if (hasChromium()) {
  describe('the dashboard by keys, and in the colours that are wanted', () => {
    let fixture: DashboardFixture
    let seen: Seen
    let page: Page
    const at = (path: string) => `${fixture.origin}/${path}`
    const start = (prompt: string) => fixture.call<Run>('POST', '/v1/runs', { agentName: 'asker', input: { prompt } })

    beforeAll(async () => {
      fixture = await dashboardFixture()
      await fixture.setUp()
      await fixture.call('POST', '/v1/agents', {
        name: 'asker',
        manifest: { model: 'demo/echo', tools: ['ask_human'] },
      })
      seen = await openAsOwner(fixture)
      page = seen.page
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    it('goes to an agent, a page and a run by their names', async () => {
      const { id } = await start('A run with a title')
      await page.goto(at(''))
      await page.keyboard.press('Control+k')
      await page.keyboard.type('aske')
      await page.waitForSelector('#palette-0:has-text("asker")')
      await page.keyboard.press('Enter')
      await page.waitForURL(at('agents/asker'))
      await page.click('#open-palette')
      await page.keyboard.type('with a title')
      await page.waitForSelector('#palette-0:has-text("A run with a title")')
      await page.keyboard.press('Enter')
      await page.waitForURL(at(`runs/${id}`))
      await page.keyboard.press('Control+k')
      await page.keyboard.type('sched')
      await page.click('#palette-0')
      await page.waitForURL(at('schedules'))
      await page.keyboard.press('Control+k')
      await page.keyboard.type(id)
      await page.keyboard.press('Enter')
      await page.waitForURL(at(`runs/${id}`))
    })

    it('goes through rows and decides, with keys that stand in the help and can be switched off', async () => {
      for (const words of ['one?', 'two?']) await start(`/call ask_human {"prompt":"${words}"}`)
      await eventually(async () =>
        expect(await fixture.call<Approval[]>('GET', '/v1/approvals?status=pending')).toHaveLength(2),
      )
      await page.goto(at('runs'))
      await page.keyboard.press('/')
      expect(await page.evaluate(() => document.activeElement?.getAttribute('name'))).toBe('q')
      await page.keyboard.press('Tab')
      await page.evaluate(() => (document.activeElement as HTMLElement).blur())
      await page.keyboard.press('j')
      await page.keyboard.press('j')
      await page.keyboard.press('x')
      expect(await page.locator('[data-choose]:checked').count()).toBe(1)
      expect(await page.isChecked('[data-choose] >> nth=1')).toBe(true)
      await page.keyboard.press('g')
      await page.keyboard.press('a')
      await page.waitForURL(at('approvals'))
      await page.keyboard.press('j')
      await page.keyboard.press('r')
      await confirmed(page)
      await eventually(async () =>
        expect(await fixture.call<Approval[]>('GET', '/v1/approvals?status=rejected')).toHaveLength(1),
      )
      await eventually(async () => expect(await page.locator('[data-card]').count()).toBe(1))
      await page.keyboard.press('?')
      await page.check('text=Single keys do nothing')
      await page.click('dialog >> text=Close')
      // After a decision the next one has the focus.
      expect(await page.evaluate(() => document.activeElement?.matches('[data-card]'))).toBe(true)
      await page.evaluate(() => (document.activeElement as HTMLElement).blur())
      await page.keyboard.press('g')
      await page.keyboard.press('o')
      await page.keyboard.press('j')
      expect(page.url()).toBe(at('approvals'))
      expect(await page.evaluate(() => document.activeElement?.matches('[data-card]'))).toBe(false)
    })

    it('leaves the Enter that ends a composed word to the word: Safari says so by the code of the key alone', async () => {
      const { id } = await fixture.call<{ id: string }>('POST', '/v1/sessions', { agentName: 'asker' })
      const enter = (selector: string) =>
        page.locator(selector).evaluate(field => {
          const of = { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }
          return field.dispatchEvent(new KeyboardEvent('keydown', of))
        })
      await page.goto(at(`sessions/${id}`))
      await page.fill('#say textarea', 'にほん')
      expect(await enter('#say textarea')).toBe(true)
      expect(await page.inputValue('#say textarea')).toBe('にほん')
      await page.fill('#say textarea', '')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('aske')
      await page.waitForSelector('#palette-0:has-text("asker")')
      await enter('dialog [role=combobox]')
      await page.waitForTimeout(300)
      expect(page.url()).toBe(at(`sessions/${id}`))
      await page.keyboard.press('Escape')
    })

    it('leaves the keyboard where a person has gone while a message is on its way', async () => {
      const { id } = await fixture.call<{ id: string }>('POST', '/v1/sessions', { agentName: 'asker' })
      await page.goto(at(`sessions/${id}`))
      // The question is there before the answer to what was sent.
      const held = Promise.withResolvers<void>()
      await page.route('**/messages', async route => {
        const response = await route.fetch()
        await held.promise
        await route.fulfill({ response })
      })
      await page.fill('#say textarea', '/call ask_human {"prompt":"Which one?"}')
      const answered = page.waitForResponse('**/messages')
      await page.keyboard.press('Enter')
      await page.focus('#turn [name=comment]')
      await page.keyboard.type('The ')
      held.resolve()
      await answered
      await page.waitForTimeout(300)
      await page.keyboard.type('second')
      expect(await page.inputValue('#turn [name=comment]')).toBe('The second')
      expect(await page.inputValue('#say textarea')).toBe('')
      await page.unroute('**/messages')
    })

    it('decides once by a key that is held down', async () => {
      const manifest = { model: 'demo/echo', tools: ['wait'], approvals: { tools: ['wait'] } }
      await fixture.call('POST', '/v1/agents', { name: 'waiter', manifest })
      const run = { agentName: 'waiter', input: { prompt: '/call wait {"seconds":0.01}' } }
      for (let i = 0; i < 3; i++) await fixture.call('POST', '/v1/runs', run)
      const pending = () => fixture.call<Approval[]>('GET', '/v1/approvals?status=pending')
      await eventually(async () =>
        expect((await pending()).filter(({ agentName }) => agentName === 'waiter')).toHaveLength(3),
      )
      const before = await pending()
      await page.goto(at('approvals'))
      await page.evaluate(() => localStorage.clear())
      await page.locator('[data-card]:has-text("waiter") >> nth=0').focus()
      await page.keyboard.down('a')
      await eventually(async () => expect(await pending()).toHaveLength(before.length - 1))
      // As a keyboard repeats it.
      for (let i = 0; i < 5; i++) {
        await page.keyboard.down('a')
        await page.waitForTimeout(100)
      }
      await page.keyboard.up('a')
      expect(await pending()).toHaveLength(before.length - 1)
    })

    it('shows the chosen place and the open tab where the system gives the colours', async () => {
      await page.emulateMedia({ forcedColors: 'active' })
      await page.goto(at('settings'))
      const lines = await page
        .locator('[role=tab]')
        .evaluateAll(all => all.map(one => getComputedStyle(one).borderBottomColor))
      expect(lines.filter(line => line === lines[0])).toHaveLength(1)
      await page.keyboard.press('Control+k')
      const chosen = page.locator('#palette-0')
      expect(await chosen.evaluate(one => getComputedStyle(one).outlineStyle)).toBe('solid')
      await page.keyboard.press('Escape')
      await page.emulateMedia({ forcedColors: 'none' })
    })

    it('is drawn in the colours that the reader chose, from the first moment of the next page', async () => {
      await page.emulateMedia({ colorScheme: 'light' })
      await page.goto(at(''))
      const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
      const light = await colour()
      await page.selectOption('#theme', 'dark')
      const dark = await colour()
      expect(dark).not.toBe(light)
      await page.goto(at('runs'))
      expect(await page.getAttribute('html', 'data-theme')).toBe('dark')
      expect(await colour()).toBe(dark)
      await page.selectOption('#theme', '')
      expect(await colour()).toBe(light)
      await page.goto(at(''))
      expect(await page.getAttribute('html', 'data-theme')).toBe(null)
      expect(seen.complaints()).toEqual([])
    })
  })
}

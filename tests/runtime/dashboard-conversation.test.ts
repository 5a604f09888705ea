import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { wrongIn } from '../browser/axe.ts'
import { hasChromium } from '../browser/chromium.ts'
import type { Seen } from '../browser/playwright.ts'
import { expectWithin } from '../crowding.ts'
import { type DashboardFixture, dashboardFixture, HOSTILE, openAsOwner } from './dashboard-fixture.ts'

const PANEL = 'http://127.0.0.1:9/panel'

/** What a stranger may write into a prompt: markup, a picture that tells who looks, a script as a link, a line that is turned around. */
const FOREIGN = [
  '# A heading',
  HOSTILE,
  '![pixel](https://tracker.invalid/pixel.png) [run](javascript:alert(1)) [good](https://example.com/a)',
  'to\u202eeman.exe and **bold**',
  '- one',
  '- two',
  'x'.repeat(5000),
].join('\n')

if (hasChromium()) {
  describe('the conversation of a model step on the page of its run', () => {
    let fixture: DashboardFixture
    let seen: Seen
    let page: Page
    const at = (path: string) => `${fixture.origin}/${path}`
    const shot = async (name: string) => {
      const folder = process.env.WAYBILL_DASHBOARD_SHOTS
      if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
    }

    async function ended(agentName: string, prompt: string): Promise<string> {
      const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName, input: { prompt } })
      await fixture.call('GET', `/v1/runs/${id}/events`)
      return id
    }

    beforeAll(async () => {
      fixture = await dashboardFixture({ PLATFORM_MAX_BODY_BYTES: '8000000' }, { routerPanel: () => PANEL })
      await fixture.setUp()
      const echo = { systemPrompt: `Be careful.\n\n${HOSTILE}`, model: 'demo/echo', tools: ['wait', 'http_request'] }
      await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: echo })
      const boss = { model: 'demo/echo', subAgents: [{ name: 'echo' }] }
      await fixture.call('POST', '/v1/agents', { name: 'boss', manifest: boss })
      await fixture.call('POST', '/v1/agents', { name: 'broken', manifest: { model: 'openai-compatible:far/none' } })
      const quiet = { model: 'demo/echo', privacy: { storePrompts: false } }
      await fixture.call('POST', '/v1/agents', { name: 'quiet', manifest: quiet })
      seen = await openAsOwner(fixture)
      page = seen.page
    }, 40_000)
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    it('is beside the timeline, is named by the address, survives a reload, and leads from step to step', async () => {
      const id = await ended('echo', '/call*2 wait {"seconds":0}')
      await page.goto(at(`runs/${id}`))
      await page.click('#timeline button:has-text("model-3")')
      await page.waitForSelector('#step .answer')
      expect(page.url()).toBe(at(`runs/${id}#step=model-3`))
      await page.reload()
      await page.waitForSelector('#step .answer')
      const roles = await page.locator('#step .message').evaluateAll(all => all.map(one => one.className))
      expect(roles.map(name => name.split(' ')[1])).toEqual([
        'user',
        'assistant',
        'tool',
        'assistant',
        'tool',
        'assistant',
      ])
      expect(await page.textContent('#step .call >> nth=0')).toContain('"seconds": 0')
      await shot('conversation-light')
      await page.click('#step .message.tool a >> nth=0')
      await page.waitForSelector('#step h2:has-text("timer-1-1")')
      expect(page.url()).toBe(at(`runs/${id}#step=timer-1-1`))
      await page.click('text=Back to the run')
      await page.waitForSelector('#run-result >> text=Input and output')
      expect(page.url()).toBe(at(`runs/${id}`))
      expect(await page.textContent('.strip')).toMatch(/Version1Model/)
      expect(seen.complaints()).toEqual([])
    })

    it('shows what a stranger wrote as text: nothing runs, nothing is loaded, nothing is turned around', async () => {
      const id = await ended('echo', FOREIGN)
      seen.requests()
      await page.goto(at(`runs/${id}#step=model-1`))
      await page.waitForSelector('#step .answer')
      for (const button of await page.locator('#step button:has-text("Show all")').all()) await button.click()
      expect(await page.title()).toMatch(/ · Waybill$/)
      expect(await page.evaluate(() => document.querySelectorAll('main img, main script').length)).toBe(0)
      expect(seen.requests().filter(url => !url.startsWith(`${fixture.origin}/`))).toEqual([])
      const links = await page.locator('#step .text a').evaluateAll(all => all.map(one => one.getAttribute('href')))
      expect(new Set(links)).toEqual(new Set(['https://example.com/a']))
      const text = (await page.textContent('#step .message.user')) ?? ''
      expect(text).toContain('<script>document.title')
      expect(text).toContain('to⟨U+202E⟩eman.exe')
      expect(text).toContain('[image pixel: https://tracker.invalid/pixel.png]')
      expect(await page.textContent('#step .message.user strong >> nth=1')).toBe('A heading')
      await shot('conversation-foreign')
      expect(seen.complaints()).toEqual([])
    })

    it('leads to the trace of the router where the call went through one', async () => {
      const id = await ended('echo', 'hello')
      await page.route('**/steps/model-1/request', async route => {
        const answer = await route.fetch()
        await route.fulfill({ response: answer, json: { ...(await answer.json()), routerTraceId: '<b>t/1' } })
      })
      await page.goto(at(`runs/${id}#step=model-1`))
      const link = page.locator(`#step .conversation a[href^="${PANEL}"]`)
      expect(await link.getAttribute('href')).toBe(`${PANEL}#trace=%3Cb%3Et%2F1`)
      expect(await link.textContent()).toBe('<b>t/1')
      await page.unrouteAll()
    })

    it('is as good in the dark and on a phone', async () => {
      const id = await ended('echo', FOREIGN)
      await page.goto(at(`runs/${id}#step=model-1`))
      await page.waitForSelector('#step .answer')
      await page.evaluate(() => {
        for (const one of document.querySelectorAll('main details')) (one as HTMLDetailsElement).open = true
      })
      expect(await wrongIn(page, name => shot(`conversation-${name}`))).toEqual([])
      await page.setViewportSize({ width: 1280, height: 900 })
      await page.emulateMedia({ colorScheme: 'light' })
    }, 60_000)

    it('opens a prompt of two megabytes at once, and shows as much of it as is asked for', async () => {
      const id = await ended('echo', 'word '.repeat(400_000))
      await page.goto(at(`runs/${id}`))
      await page.waitForSelector('#timeline button:has-text("model-1")')
      const before = await page.evaluate(() => performance.now())
      await page.click('#timeline button:has-text("model-1")')
      await page.waitForSelector('#step .answer')
      const drawn = await page.evaluate(
        () => performance.getEntriesByName('conversation-drawn')[0]?.startTime ?? Number.NaN,
      )
      process.stderr.write(`a prompt of 2 MB is drawn after ${Math.round(drawn - before)} ms\n`)
      expectWithin(drawn - before, 1000)
      expect((await page.textContent('#step .message.user'))?.length).toBeLessThan(10_000)
      await page.click('#step .message.user button:has-text("Show more")')
      await page.click('#step .message.user button:has-text("characters left")')
      expect((await page.textContent('#step .message.user'))?.length).toBeGreaterThan(90_000)
    })

    it('leads from the error to its step, shows the runs below, and says where prompts are not stored', async () => {
      const failed = await ended('broken', 'hello')
      await page.goto(at(`runs/${failed}`))
      expect(await page.textContent('#run-head .notice.bad')).toContain('model')
      const parent = await ended('boss', '/call agent__echo {"prompt":"hello below"}')
      await page.goto(at(`runs/${parent}#step=subagent-1-1`))
      await page.waitForSelector('#run-children .tree a:text("echo")')
      await page.click('#step dd a[href*="/runs/"], #step dd a')
      await page.waitForURL(url => url.pathname !== `/runs/${parent}`)
      expect(await page.textContent('#run-result')).toContain('hello below')
      const quiet = await ended('quiet', 'a secret of mine')
      await page.goto(at(`runs/${quiet}#step=model-1`))
      await page.waitForSelector('#step >> text=stores no prompts')
      expect(await page.textContent('#step')).not.toContain('a secret of mine')
    })
  })
}

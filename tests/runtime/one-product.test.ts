import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import type { Service } from '../../shared/host/serve.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { hasChromium } from '../browser/chromium.ts'
import type { Seen } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type DashboardFixture, dashboardFixture, openAsOwner } from './dashboard-fixture.ts'

if (hasChromium()) {
  describe('the runtime and the router of one process in a browser', () => {
    let upstream: ScriptedUpstream
    let router: Service
    let alone: Service
    let fixture: DashboardFixture
    let folder: string
    let seen: Seen
    let page: Page
    const at = (path: string) => `${fixture.origin}/${path}`

    beforeAll(async () => {
      upstream = await scriptedUpstream()
      const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello.' } }]
      const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
      const body = { id: 'x', object: 'chat.completion', created: 1, model: 'tiny', choices, usage }
      upstream.always(answer(200, JSON.stringify(body)))
      folder = await mkdtemp(join(tmpdir(), 'waybill-product-'))
      const config = join(folder, 'routing.toml')
      await writeFile(
        config,
        `version = 1
price = [{ model = "small/tiny", input_per_mtok = 1, output_per_mtok = 2 }]
provider = [{ id = "small", dialect = "chat", base_url = "${upstream.origin}/v1", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["small/tiny"]
gates = ["non-empty"]
`,
      )
      const vars = { ROUTER_BIND: '127.0.0.1:0', ROUTER_LOG: 'off', ROUTER_CONFIG: config }
      router = await serveRouter({ ...vars, ROUTER_DB: join(folder, 'router.db') }, { dashboard: () => fixture.origin })
      alone = await serveRouter({ ...vars, ROUTER_DB: ':memory:' })
      const toRouter = (request: Request) => {
        const { pathname, search } = new URL(request.url)
        return fetch(new Request(router.origin + pathname + search, request))
      }
      fixture = await dashboardFixture({}, { routerPanel: () => `${router.origin}/panel`, routerFetch: toRouter })
      await fixture.setUp()
      seen = await openAsOwner(fixture)
      page = seen.page
    })
    afterAll(async () => {
      await seen?.close()
      await Promise.all([fixture?.close(), router?.close(), alone?.close(), upstream?.close()])
      if (folder) await rm(folder, { recursive: true, force: true })
    })

    it('has one menu and one choice of colours, whichever of the two is looked at', async () => {
      const entries = () => page.locator('#menu a:not(.within) > .icon + span').allTextContents()
      await page.goto(at(''))
      const own = await entries()
      expect(own.at(-1)).toBe('Router')
      await page.selectOption('#theme', 'dark')
      await page.click('#menu >> text=Router')
      await page.waitForURL(`${router.origin}/panel`)
      expect(await entries()).toEqual(own)
      expect(await page.getAttribute('html', 'data-theme')).toBe('dark')
      expect(await page.inputValue('#theme')).toBe('dark')
      await page.click('#menu >> text=Approvals')
      await page.waitForURL(at('approvals'))
      await page.selectOption('#theme', '')
      await page.goto(`${alone.origin}/panel`)
      expect(await entries()).toEqual(['Router'])
      expect(await page.textContent('#menu')).toContain('No dashboard here')
      await page.goto(`${alone.origin}/nothing`)
      await page.click('nav >> text=Router')
      await page.waitForURL(`${alone.origin}/panel`)
      expect(seen.complaints().filter(words => !words.includes('404'))).toEqual([])
    })

    it('leads from a step to its trace and back to the step', async () => {
      await fixture.call('POST', '/v1/agents', { name: 'routed', manifest: { model: 'auto' } })
      const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'routed', input: { prompt: 'Hi' } })
      await eventually(async () => {
        const run = await fixture.call<Run>('GET', `/v1/runs/${id}`)
        expect(run.error).toBe(undefined)
        expect(run.status).toBe('succeeded')
      })
      await page.goto(at(`runs/${id}#step=model-1`))
      await page.click('#step a[href*="#trace="]')
      await page.waitForURL(url => url.origin === router.origin)
      await page.click('#detail >> text=model-1 of run')
      await page.waitForURL(at(`runs/${id}#step=model-1`))
      await page.waitForSelector('#step h2:has-text("model-1")')
    })
  })
}

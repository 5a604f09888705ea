import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { scopesOfRole } from '../../runtime/auth/dashboard/login-access.ts'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import type { PersonLink } from '../../shared/wire/runtime/user.ts'
import { hasChromium } from '../browser/chromium.ts'
import { type Opened, openPlaywright } from '../browser/playwright.ts'
import { type DashboardFixture, dashboardFixture, OWNER } from './dashboard-fixture.ts'

/** Whether a person of this role may send what a form says: `POST /v1/runs/{…}/cancel`. */
function isAllowed(send: string, role: 'member' | 'viewer'): boolean {
  const [method, path = ''] = send.split(' ')
  if (path.startsWith('auth/')) return true
  const parts = path.split('?')[0]!.split('/')
  const endpoint = runtimeEndpoints.find(
    one =>
      one.method === method &&
      one.path.split('/').length === parts.length &&
      one.path.split('/').every((part, at) => part.startsWith('{') || part === parts[at]),
  )
  if (!endpoint) throw new Error(`a form sends ${send}, which is no operation`)
  return allows(scopesOfRole[role], endpoint.scopes ?? [])
}

if (hasChromium()) {
  describe.each(['viewer', 'member'] as const)('a %s', role => {
    let fixture: DashboardFixture
    let seen: Opened
    let page: Page
    let paths: string[]
    const at = (path: string) => `${fixture.origin}/${path}`

    beforeAll(async () => {
      fixture = await dashboardFixture()
      await fixture.setUp()
      const { call } = fixture
      const manifest = { model: 'demo/echo', tools: ['ask_human'] }
      for (const systemPrompt of ['one', 'two']) {
        await call('POST', '/v1/agents', { name: 'clerk', manifest: { ...manifest, systemPrompt } })
      }
      const start = (prompt: string) => call<Run>('POST', '/v1/runs', { agentName: 'clerk', input: { prompt } })
      const [done, waiting] = [await start('hello'), await start('/call ask_human {"prompt":"well?"}')]
      const session = await call<{ id: string }>('POST', '/v1/sessions', { agentName: 'clerk' })
      const plan = { agentName: 'clerk', cronExpr: '0 3 * * *', config: { input: { prompt: 'hello' } } }
      const schedule = await call<{ id: string }>('POST', '/v1/schedules', plan)
      await call('PUT', '/v1/secrets/one', { value: 'x' })
      await call('POST', '/v1/webhooks', { url: 'https://example.com/hook', events: ['run.succeeded'] })
      const tabs = ['overview', 'versions', 'manifest', 'budget'].map(tab => `agents/clerk?tab=${tab}`)
      const ofSettings = ['providers', 'models', 'keys', 'people', 'webhooks', 'secrets', 'audit', 'you', 'api']
      paths = [
        ...['', 'runs?new=1', 'agents', 'approvals', 'sessions', 'schedules', 'connectors', 'nodes'],
        ...[`runs/${done.id}`, `runs/${waiting.id}`, `sessions/${session.id}`, `schedules/${schedule.id}`],
        ...tabs,
        ...ofSettings.map(tab => `settings?tab=${tab}`),
      ]
      const { link } = await call<PersonLink>('POST', '/v1/users', { email: 'eve@example.com', name: 'Eve', role })
      seen = await openPlaywright()
      page = seen.page
      page.setDefaultTimeout(10_000)
      await page.goto(link!)
      for (const name of ['password', 'again']) await page.fill(`[name=${name}]`, OWNER.password)
      await page.click('text=Set it and log in')
      await page.waitForSelector('nav')
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    it('is shown nothing to press that is refused', async () => {
      const wrong: string[] = []
      let forms = 0
      for (const path of paths) {
        await page.goto(at(path))
        const sends = await page.evaluate(() => {
          for (const one of document.querySelectorAll('main details')) (one as HTMLDetailsElement).open = true
          const shown = [...document.querySelectorAll('main form[data-send]')].filter(one => one.checkVisibility())
          return shown.map(one => (one as HTMLElement).dataset.send!)
        })
        forms += sends.length
        wrong.push(...sends.filter(send => !isAllowed(send, role)).map(send => `/${path}: ${send}`))
      }
      expect(wrong).toEqual([])
      // Who may only look changes a password, and no more.
      if (role === 'viewer') expect(forms).toBeLessThan(5)
      else expect(forms).toBeGreaterThan(20)
    })

    it('is offered a run where one can be started', async () => {
      for (const path of ['runs', 'agents/clerk']) {
        await page.goto(at(path))
        expect(await page.isVisible('main >> text=New run'), path).toBe(role === 'member')
      }
      await page.goto(at('runs'))
      await page.check('#runs input[type=checkbox] >> nth=1')
      expect(await page.isVisible('#bulk-compare')).toBe(true)
      expect(await page.isVisible('#bulk-cancel')).toBe(role === 'member')
    })
  })
}

import { join } from 'node:path'
import type { Dialog, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { wrongIn } from '../browser/axe.ts'
import { hasChromium } from '../browser/chromium.ts'
import { openPlaywright, type Seen } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { confirmed, type DashboardFixture, dashboardFixture, HOSTILE, OWNER } from './dashboard-fixture.ts'
import { pathProxy } from './path-proxy.ts'

if (hasChromium()) {
  describe('the dashboard in a browser', () => {
    let fixture: DashboardFixture
    let seen: Seen
    let page: Page
    const at = (path: string) => `${fixture.origin}/${path}`

    beforeAll(async () => {
      fixture = await dashboardFixture()
      seen = await openPlaywright()
      page = seen.page
      page.setDefaultTimeout(10_000)
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    /** For a change of the design: the folder of WAYBILL_DASHBOARD_SHOTS has every page afterwards. */
    const shot = async (name: string, of = page) => {
      const folder = process.env.WAYBILL_DASHBOARD_SHOTS
      // The reference of the API is longer than a picture can be.
      const fullPage = !name.startsWith('docs')
      if (folder) await of.screenshot({ path: join(folder, `${name}.png`), fullPage })
    }

    /** Opens each page once and sees it in each look, two at a time in tabs of their own; answers what is wrong with them. */
    async function walk(visits: Record<string, string>): Promise<string[]> {
      const found: string[] = []
      const left = Object.entries(visits)
      await Promise.all(
        ['one', 'another'].map(async () => {
          const tab = await seen.context.newPage()
          for (let next = left.shift(); next; next = left.shift()) found.push(...(await look(tab, ...next)))
          await tab.close()
        }),
      )
      return found
    }

    async function look(tab: Page, title: string, path: string): Promise<string[]> {
      const found: string[] = []
      await tab.goto(at(path))
      if (path.startsWith('runs/') && title !== 'nothing')
        await tab.waitForSelector('#journal-count:not(:empty)', { state: 'attached' })
      // What is folded away must be as good as the rest.
      await tab.evaluate(() => {
        for (const one of document.querySelectorAll('main details')) (one as HTMLDetailsElement).open = true
      })
      found.push(...(await wrongIn(tab, name => shot(`${title}-${name}`, tab))).map(one => `${title} in ${one}`))
      expect(await tab.title(), title).toMatch(title === 'docs' ? /Waybill/ : / · Waybill$/)
      expect(await tab.evaluate(() => document.querySelectorAll('main img, main script').length), title).toBe(0)
      return found
    }

    it('before there is anything: setup, login, invitation', async () => {
      expect(
        await walk({ setup: 'setup#token=x', 'setup without its link': 'setup', invite: 'invite#token=x' }),
      ).toEqual([])
      expect(seen.complaints()).toEqual([])
    })

    it('says where the setup link is, and asks for nothing, where the page was opened without it', async () => {
      const tab = await seen.context.newPage()
      try {
        await tab.goto(at(''))
        await tab.waitForSelector('#no-link:visible')
        expect(await tab.textContent('#no-link')).toContain('Restart the runtime for a new one')
        expect(await tab.isVisible('#setup')).toBe(false)
        expect(await tab.content()).not.toContain('BOOTSTRAP')
      } finally {
        await tab.close()
      }
    })

    it('makes the owner of a runtime that was started with a bootstrap key, for that key', async () => {
      const key = `wb_live_${'k'.repeat(43)}`
      const keyed = await dashboardFixture({ PLATFORM_BOOTSTRAP_KEY: key })
      const tab = await seen.context.newPage()
      try {
        await tab.goto(`${keyed.origin}/`)
        await tab.fill('[name=name]', OWNER.name)
        await tab.fill('[name=email]', OWNER.email)
        await tab.fill('[name=password]', OWNER.password)
        await tab.fill('[name=bootstrapKey]', `${key}x`)
        await tab.click('text=Create the owner')
        await tab.waitForSelector('#said:has-text("PLATFORM_BOOTSTRAP_KEY")')
        await tab.fill('[name=bootstrapKey]', key)
        await tab.click('text=Create the owner')
        await tab.waitForSelector('#first-key code')
        expect(seen.complaints().filter(words => !/status of 401/.test(words))).toEqual([])
      } finally {
        await tab.close()
        await keyed.close()
      }
    })

    it('tells the whole story from the setup link to a receipt that verifies', async () => {
      await page.goto(fixture.service.setupLink!)
      await page.fill('[name=name]', OWNER.name)
      await page.fill('[name=email]', OWNER.email)
      await page.fill('[name=password]', OWNER.password)
      await page.click('text=Create the owner')
      await page.waitForSelector('#first-key code')
      const key = (await page.textContent('#first-key code')) ?? ''
      expect(key).toMatch(/^wb_live_[\w-]{43}$/)
      fixture.use(key)
      expect(page.url()).toBe(at('setup'))
      await page.click('#demo-run')
      await page.waitForSelector('#demo-shown li:nth-child(3)')
      await page.waitForSelector('text=The run has succeeded')
      await shot('setup-done')
      await page.click('text=Look at the run')
      await page.waitForSelector('#timeline button.line')
      await page.click('[role=tab]:text("Receipt")')
      await page.click('text=Verify in this browser')
      await page.waitForSelector('text=✓ Valid.')
      expect(await page.textContent('#verified')).toMatch(/All \d+ events are the ones that were signed/)
      await page.click('[role=tab]:text("Timeline")')
      await page.click('#timeline button.line >> nth=1')
      await page.waitForSelector('#step >> text=Fork from here')
      expect(await page.textContent('#step details[open] pre')).toContain('"seconds": 1')
      await shot('run-verified')
      expect(seen.complaints()).toEqual([])
    })

    it('says on each page that is empty what comes next', async () => {
      const empty = {
        overview: '',
        runs: 'runs?status=failed',
        approvals: 'approvals',
        agents: 'agents',
        sessions: 'sessions',
        schedules: 'schedules',
        connectors: 'connectors',
        nodes: 'nodes',
        settings: 'settings',
      }
      expect(
        await walk(Object.fromEntries(Object.entries(empty).map(([name, path]) => [`empty-${name}`, path]))),
      ).toEqual([])
      for (const path of ['approvals', 'sessions', 'schedules', 'connectors', 'nodes', 'settings']) {
        await page.goto(at(path))
        // Words alone leave a person standing: each says what to do, or where.
        const bare = await page.evaluate(() =>
          [...document.querySelectorAll('main .nothing')]
            .filter(one => one.children.length < 2)
            .map(one => one.textContent),
        )
        expect(bare, path).toEqual([])
        expect(await page.locator('main .nothing').count(), path).toBeGreaterThan(0)
      }
    }, 120_000)

    describe('with texts of all kinds', () => {
      let visits: Record<string, string>

      beforeAll(async () => {
        visits = await fill(fixture)
      })

      it('shows every page in light and dark, wide and on a phone: no wider than the screen, and axe finds nothing', async () => {
        seen.requests()
        expect(await walk(visits)).toEqual([])
        // The browser notes the answer 404 of the page that is not there.
        expect(seen.complaints().filter(words => !words.includes('404'))).toEqual([])
        expect(seen.requests().filter(url => !url.startsWith(`${fixture.origin}/`))).toEqual([])
      }, 240_000)

      it('a decision is made in place, and the run goes on while one looks', async () => {
        await page.goto(at(visits.waiting!))
        await page.fill('#run-approvals textarea[name=comment]', 'forty-two')
        await page.click('#run-approvals >> text=Answer >> nth=-1')
        await page.waitForSelector('#run-head .badge:text("succeeded")')
        await page.waitForSelector('#run-approvals:empty', { state: 'attached' })
        await page.click('[role=tab]:text("Receipt")')
        await page.click('text=Verify in this browser')
        await page.waitForSelector('text=✓ Valid.')
        expect(await page.textContent('#run-result')).toContain('forty-two')
        await page.click('[role=tab]:text("Timeline")')
        await page.click('#timeline button.line >> nth=1')
        await page.click('#step >> text=Fork from here')
        await page.waitForURL(url => url.pathname !== `/${visits.waiting}` && url.pathname.startsWith('/runs/'))
        await page.waitForSelector('text=Forked from')
        await page.click('text=Cancel')
        await confirmed(page)
        await page.waitForSelector('#run-head .badge:text("cancelled")')
      })

      it('a refused form says why beside its field and changes nothing', async () => {
        await page.goto(at('agents/echo?tab=budget'))
        await page.fill('[name=notifyAtPct]', '80')
        await page.fill('[name=maxRunsPerDay]', '700')
        await page.evaluate(() => document.querySelector('[name=notifyAtPct]')?.setAttribute('value', '500'))
        await page.evaluate(() => {
          for (const form of document.forms) form.noValidate = true
          const field = document.querySelector<HTMLInputElement>('[name=notifyAtPct]')
          if (field) field.value = '500'
        })
        await page.click('text=Save the budget')
        await page.waitForSelector('.problem')
        expect(await page.textContent('.problem')).toMatch(/1 to 100/)
        expect((await fixture.call<{ maxRunsPerDay: number }>('GET', '/v1/agents/echo/budget')).maxRunsPerDay).toBe(100)
        await page.fill('[name=notifyAtPct]', '70')
        await page.click('text=Save the budget')
        await page.waitForSelector('text=It holds from now on.')
        expect(await fixture.call('GET', '/v1/agents/echo/budget')).toMatchObject({
          maxRunsPerDay: 700,
          notifyAtPct: 70,
        })
        await page.click('#forecast')
        await page.waitForSelector('#forecast-said:has-text("About")')
      })

      it('loses nothing that was typed when the login is over in between', async () => {
        await page.goto(at('agents'))
        await page.fill('[name=name]', 'typed-before')
        await page.fill('#manifest', '{ "model": "demo/echo", "tols": [] }')
        await page.waitForSelector('#manifest-said >> text=Line 1, tols')
        await page.fill('#manifest', '{ "model": "demo/echo" }')
        await seen.context.clearCookies()
        // By the page itself: news may make it ask for the login before a pointer is there.
        await page.locator('text=Make the agent').evaluate((button: HTMLElement) => button.click())
        await page.waitForSelector('#login-again[open]')
        await page.fill('#login-again [name=email]', OWNER.email)
        await page.fill('#login-again [name=password]', 'not the password')
        await page.click('#login-again button.main')
        await page.waitForSelector('#login-again >> text=not right')
        await page.fill('#login-again [name=password]', OWNER.password)
        await page.click('#login-again button.main')
        await page.waitForURL(at('agents/typed-before'))
        expect(await fixture.call('GET', '/v1/agents/typed-before')).toMatchObject({ manifest: { model: 'demo/echo' } })
      })

      it('asks before a half-written manifest is left, and not once it is published', async () => {
        const asked: string[] = []
        const answer = async (dialog: Dialog) => {
          asked.push(dialog.type())
          await dialog.dismiss()
        }
        await page.goto(at('agents'))
        page.on('dialog', answer)
        await page.click('#manifest')
        await page.keyboard.type(' ')
        await page.evaluate(() => setTimeout(() => location.reload()))
        await expect.poll(() => asked).toEqual(['beforeunload'])
        await page.fill('[name=name]', 'half-written')
        await page.fill('#manifest', '{ "model": "demo/echo" }')
        await page.click('text=Make the agent')
        await page.waitForURL(at('agents/half-written'))
        expect(asked).toEqual(['beforeunload'])
        page.off('dialog', answer)
      })

      it('talks in a session, by the keyboard', async () => {
        await page.goto(at(visits.session!))
        await page.focus('#say textarea')
        await page.keyboard.type('Is anybody there?')
        await page.keyboard.press('Enter')
        await page.waitForSelector('#talk li:nth-child(4)')
        expect(await page.textContent('#talk')).toContain('You said: Is anybody there?')
        expect(await page.textContent('#pending')).toBe('')
        expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('TEXTAREA')
      })

      it('warns of clocks that are put before a schedule fires', async () => {
        await page.goto(at('schedules'))
        await page.fill('[name=cronExpr]', '30 2 1 * *')
        await page.fill('[name=timezone]', 'Europe/Berlin')
        await page.waitForSelector('#fires >> text=the clock is put from')
        await page.fill('[name=cronExpr]', 'whenever')
        await page.waitForSelector('#fires .bad')
      })

      it('works under a path of a proxy', async () => {
        const proxy = await pathProxy('/deep/waybill', () => fixture.origin)
        const base = `${proxy.base}/`
        await seen.context.clearCookies()
        seen.requests()
        await page.goto(`${base}${visits.run}`)
        expect(page.url()).toMatch(/\/deep\/waybill\/login\?next=/)
        await page.fill('[name=email]', OWNER.email)
        await page.fill('[name=password]', OWNER.password)
        await page.click('text=Log in >> nth=-1')
        await page.waitForSelector('#timeline button.line')
        expect(page.url()).toBe(`${base}${visits.run}`)
        await page.click('[role=tab]:text("Receipt")')
        await page.click('text=Verify in this browser')
        await page.waitForSelector('text=✓ Valid.')
        await page.click('nav >> text=Overview')
        await page.waitForSelector('text=● live')
        expect(seen.requests().filter(url => !url.startsWith(base))).toEqual([])
        await page.goto('about:blank')
        await proxy.close()
      })
    })
  })
}

/** Something on every page, with markup wherever the API takes any text; answers the pages to visit by name. */
async function fill({ call }: DashboardFixture): Promise<Record<string, string>> {
  const start = (agentName: string, prompt: string) =>
    call<Run>('POST', '/v1/runs', { agentName, input: { prompt }, labels: { note: HOSTILE } })
  const ended = async ({ id }: Run) => {
    await call('GET', `/v1/runs/${id}/events`)
    return id
  }
  const hostile = { description: HOSTILE, labels: { team: HOSTILE } }
  const echo = { systemPrompt: HOSTILE, model: 'demo/echo', tools: ['wait', 'ask_human'] }
  await call('POST', '/v1/agents', { name: 'echo', manifest: { ...echo, systemPrompt: 'old' }, ...hostile })
  await call('POST', '/v1/agents', { name: 'echo', manifest: echo })
  const model = `openai-compatible:far/<img/src=x/onerror=document.title='taken'>`
  await call('POST', '/v1/agents', { name: 'broken', manifest: { model } })
  await call('PUT', '/v1/agents/echo/budget', { maxCostUsdPerDay: 5, maxRunsPerDay: 100 })
  const done = await ended(await start('echo', HOSTILE))
  const failed = await ended(await start('broken', HOSTILE))
  for (let i = 0; i < 8; i++) await start(i % 3 === 0 ? 'broken' : 'echo', `message ${i}`)
  const waiting = await start('echo', `/call ask_human ${JSON.stringify({ prompt: HOSTILE })}`)
  const asked = await eventually(async () => {
    const [one] = await call<Approval[]>('GET', `/v1/runs/${waiting.id}/approvals`)
    if (one === undefined) throw new Error('it does not wait yet')
    return one
  })
  expect(asked.prompt).toBe(HOSTILE)
  const session = await call<Session>('POST', '/v1/sessions', { agentName: 'echo', title: HOSTILE })
  await call('POST', `/v1/sessions/${session.id}/messages`, { content: HOSTILE })
  const cron = { agentName: 'echo', name: HOSTILE, cronExpr: '30 2 * * *', timezone: 'Europe/Berlin' }
  const schedule = await call<Schedule>('POST', '/v1/schedules', { ...cron, config: { input: { prompt: HOSTILE } } })
  const hook = { url: 'https://hook.invalid/?x=%3Cimg%3E', events: ['run.failed'] }
  const { id: hookId } = await call<{ id: string }>('POST', '/v1/webhooks', hook)
  await call('POST', '/v1/users', {
    name: HOSTILE,
    email: `<b>${'a'.repeat(50)}@${'b'.repeat(80)}.example`,
    role: 'viewer',
  })
  await call('POST', '/v1/users', { name: 'Grace', email: 'grace@example.com' })
  await call('POST', '/v1/nodes', { name: HOSTILE })
  await call('POST', '/v1/api-keys', { name: HOSTILE, scopes: ['runs:read'] })
  await call('PUT', '/v1/secrets/token', { value: 'hidden' })
  const hosts = [
    { host: 'api.example.com' },
    { host: `*.${'a'.repeat(60)}.${'b'.repeat(60)}.example`, ports: [443, 8443] },
  ]
  await call('PUT', `/v1/secrets/${'bound-'.repeat(15)}`, { value: 'hidden', hosts, tools: ['mcp'] })
  await call('POST', '/v1/connectors/install', { connectorId: 'slack', config: { token: 'x' }, displayName: HOSTILE })
  const [version] = (await call<{ id: string }[]>('GET', '/v1/agents/echo/versions')).slice(-1)
  return {
    overview: '',
    runs: 'runs',
    filtered: 'runs?status=cancelled',
    run: `runs/${done}`,
    failed: `runs/${failed}`,
    compare: `compare?a=${done}&b=${failed}`,
    waiting: `runs/${waiting.id}`,
    approvals: 'approvals',
    agents: 'agents',
    agent: 'agents/echo',
    versions: `agents/echo?diff=${version!.id}`,
    manifest: 'agents/echo?tab=manifest',
    budget: 'agents/echo?tab=budget',
    calls: 'agents/echo?tab=api',
    sessions: 'sessions',
    session: `sessions/${session.id}`,
    schedules: 'schedules',
    schedule: `schedules/${schedule.id}`,
    connectors: 'connectors',
    nodes: 'nodes',
    ...Object.fromEntries(
      ['providers', 'models', 'keys', 'people', 'secrets', 'audit', 'you', 'api'].map(tab => [
        `settings-${tab}`,
        `settings?tab=${tab}`,
      ]),
    ),
    settings: `settings?webhook=${hookId}`,
    nothing: 'runs/01900000-0000-7000-8000-000000000000',
    nowhere: 'nowhere',
    docs: 'docs',
  }
}

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { hasChromium } from '../browser/chromium.ts'
import { openPlaywright, type Seen } from '../browser/playwright.ts'
import { type DashboardRoom, dashboardRoom, HOSTILE, OWNER } from './dashboard-room.ts'

if (hasChromium()) {
  describe('the dashboard in a browser', () => {
    let room: DashboardRoom
    let seen: Seen
    let page: Page
    let shots: string
    const at = (path: string) => `${room.origin}/${path}`

    beforeAll(async () => {
      room = await dashboardRoom()
      seen = await openPlaywright()
      page = seen.page
      page.setDefaultTimeout(10_000)
      shots = process.env.WAYBILL_DASHBOARD_SHOTS ?? (await mkdtemp(join(tmpdir(), 'waybill-shots-')))
    })
    afterAll(async () => {
      await seen?.close()
      await room?.close()
      if (process.env.WAYBILL_DASHBOARD_SHOTS === undefined && shots) await rm(shots, { recursive: true, force: true })
    })

    const shot = (name: string) => page.screenshot({ path: join(shots, `${name}.png`), fullPage: true })

    it('tells the whole story from the setup link to a receipt that verifies', async () => {
      await page.goto(room.service.setupLink!)
      await shot('setup')
      await page.fill('[name=name]', OWNER.name)
      await page.fill('[name=email]', OWNER.email)
      await page.fill('[name=password]', OWNER.password)
      await page.click('text=Create the owner')
      await page.waitForSelector('#first-key code')
      const key = (await page.textContent('#first-key code')) ?? ''
      expect(key).toMatch(/^wb_live_[\w-]{43}$/)
      room.use(key)
      expect(page.url()).toBe(at('setup'))
      await page.click('#demo-run')
      await page.waitForSelector('#demo-shown li:nth-child(3)')
      await page.waitForSelector('text=The run has succeeded')
      await shot('setup-done')
      await page.click('text=Look at the run')
      await page.waitForSelector('#timeline button.line')
      await page.click('text=Verify in this browser')
      await page.waitForSelector('text=✓ Valid.')
      expect(await page.textContent('#verified')).toMatch(/All \d+ events are the ones that were signed/)
      await page.click('#timeline button.line >> nth=1')
      await page.waitForSelector('#step >> text=Fork from here')
      await shot('run-verified')
      expect(seen.complaints()).toEqual([])
    })

    describe('with texts of all kinds', () => {
      let visits: Record<string, string>

      beforeAll(async () => {
        visits = await fill(room)
      })

      it('shows every page in light, dark and on a phone: no wider than the screen, and axe finds nothing serious', async () => {
        const looks = [
          { name: 'light', width: 1280, height: 900, scheme: 'light' },
          { name: 'dark', width: 1280, height: 900, scheme: 'dark' },
          { name: 'phone', width: 390, height: 800, scheme: 'light' },
        ] as const
        seen.requests()
        const found: string[] = []
        for (const { name, width, height, scheme } of looks) {
          await page.setViewportSize({ width, height })
          await page.emulateMedia({ colorScheme: scheme })
          for (const [title, path] of Object.entries(visits)) {
            await page.goto(at(path))
            if (path.startsWith('runs/') && title !== 'nothing')
              await page.waitForSelector('#journal-count:not(:empty)')
            const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
            if (over > 0) found.push(`${title} in ${name} is ${over} px too wide`)
            // Elements are the same in each look; only colours differ in the dark, and nothing but places on a phone.
            const rules = { light: undefined, dark: ['color-contrast'], phone: [] }[name]
            found.push(...(await serious(page, rules)).map(one => `${title} in ${name}: ${one}`))
            await shot(`${title}-${name}`)
            expect(await page.title(), title).toMatch(/ · Waybill$/)
            expect(await page.evaluate(() => document.querySelectorAll('main img, main script').length), title).toBe(0)
          }
        }
        await page.setViewportSize({ width: 1280, height: 900 })
        await page.emulateMedia({ colorScheme: 'light' })
        expect(found).toEqual([])
        // The browser notes the answer 404 of the page that is not there.
        expect(seen.complaints().filter(words => !words.includes('404'))).toEqual([])
        expect(seen.requests().filter(url => !url.startsWith(`${room.origin}/`))).toEqual([])
      }, 90_000)
    })
  })
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** What axe calls serious or critical; it is put in over the protocol, which the page's policy does not concern. */
async function serious(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (rules?.length === 0) return []
  await page.evaluate(await readFile(AXE, 'utf8'))
  return page.evaluate(async only => {
    interface Result {
      id: string
      impact?: string
      nodes: { html: string }[]
    }
    const { axe } = globalThis as unknown as { axe: { run: (options: object) => Promise<{ violations: Result[] }> } }
    const { violations } = await axe.run(only === undefined ? {} : { runOnly: only })
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 160)).join(' | ')}`)
  }, rules)
}

/** Something on every page, with markup wherever the API takes any text; answers the pages to visit by name. */
async function fill({ call }: DashboardRoom): Promise<Record<string, string>> {
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
  const asked = await vi.waitFor(async () => {
    const [one] = await call<Approval[]>('GET', `/v1/runs/${waiting.id}/approvals`)
    if (one === undefined) throw new Error('it does not wait yet')
    return one
  })
  expect(asked.prompt).toBe(HOSTILE)
  const session = await call<Session>('POST', '/v1/sessions', { agentName: 'echo', title: HOSTILE })
  await call('POST', `/v1/sessions/${session.id}/messages`, { content: HOSTILE })
  const cron = { agentName: 'echo', name: HOSTILE, cronExpr: '30 2 * * *', timezone: 'Europe/Berlin' }
  const schedule = await call<Schedule>('POST', '/v1/schedules', { ...cron, config: { input: { prompt: HOSTILE } } })
  await call('POST', '/v1/webhooks', { url: 'http://127.0.0.1:9/hook?x=<img>', events: ['run.failed'] }).catch(() => 0)
  await call('POST', '/v1/api-keys', { name: HOSTILE, scopes: ['runs:read'] })
  await call('PUT', '/v1/secrets/token', { value: 'hidden' })
  await call('POST', '/v1/connectors/install', { connectorId: 'slack', config: { token: 'x' }, displayName: HOSTILE })
  const [version] = (await call<{ id: string }[]>('GET', '/v1/agents/echo/versions')).slice(-1)
  return {
    overview: '',
    runs: 'runs',
    filtered: 'runs?status=cancelled',
    run: `runs/${done}`,
    failed: `runs/${failed}`,
    waiting: `runs/${waiting.id}`,
    approvals: 'approvals',
    agents: 'agents',
    agent: `agents/echo?diff=${version!.id}`,
    sessions: 'sessions',
    session: `sessions/${session.id}`,
    schedules: 'schedules',
    schedule: `schedules/${schedule.id}`,
    connectors: 'connectors',
    nodes: 'nodes',
    settings: 'settings',
    nothing: 'runs/01900000-0000-7000-8000-000000000000',
  }
}

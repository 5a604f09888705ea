import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ApiKey } from '../../shared/wire/runtime/auth.ts'
import type { SecretItem } from '../../shared/wire/runtime/provider.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { Person } from '../../shared/wire/runtime/user.ts'
import type { WebhookBody } from '../../shared/wire/runtime/webhook.ts'
import { hasChromium } from '../browser/chromium.ts'
import { type Opened, openPlaywright } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { programEnv } from '../program-env.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { confirmed, type DashboardFixture, dashboardFixture, HOSTILE, logIn, OWNER } from './dashboard-fixture.ts'
import { pathProxy } from './path-proxy.ts'

if (hasChromium()) {
  describe('the forms of the dashboard, under a path of a proxy', () => {
    let proxy: Awaited<ReturnType<typeof pathProxy>>
    let remote: ScriptedUpstream
    let fixture: DashboardFixture
    let seen: Opened
    let page: Page
    let node: ChildProcess | undefined
    const at = (path: string) => `${proxy.base}/${path}`

    beforeAll(async () => {
      proxy = await pathProxy('/deep/waybill', () => fixture.origin)
      remote = await scriptedUpstream()
      fixture = await dashboardFixture({
        PLATFORM_PUBLIC_URL: proxy.base,
        PLATFORM_OUTBOUND_ALLOW: new URL(remote.origin).host,
        PLATFORM_TUNNEL_BIND: '127.0.0.1:0',
      })
      await fixture.setUp()
      seen = await openPlaywright({ timezoneId: 'Asia/Tokyo' })
      page = seen.page
      page.setDefaultTimeout(10_000)
      await page.goto(at(''))
      await logIn(page)
    })
    afterAll(async () => {
      node?.kill()
      await seen?.close()
      await fixture?.close()
      await Promise.all([remote?.close(), proxy?.close()])
    })

    it('nodes: a command that enrols a machine', async () => {
      await page.goto(at('nodes'))
      await page.waitForSelector('text=No node has been announced.')
      await page.fill('[name=name]', 'far away')
      await page.click('text=Make the command')
      const command = (await page.textContent('.once code')) ?? ''
      expect(command).toMatch(/^PLATFORM_CONTROL_URL=http:\/\/127\.0\.0\.1:\d+ PLATFORM_ENROL_TOKEN=wb_node_\S{43} /)
      await page.waitForSelector('#nodes .badge:text("pending")')
      // As it stands there, in the place of `npx --no-install node-agent` what that starts.
      const vars = Object.fromEntries(
        [...command.matchAll(/(PLATFORM_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
      )
      const folder = join(fixture.folder, 'node')
      const own = { NODE_AGENT_BACKENDS: 'wasm,runc,kata', NODE_AGENT_STATE_DIR: join(folder, 'state') }
      const places = { PLATFORM_DATA_DIR: folder, NODE_AGENT_IMAGE_DIR: join(folder, 'image') }
      node = spawn(process.execPath, ['node-agent/main.ts', 'run'], {
        env: { ...programEnv, ...vars, ...own, ...places },
        stdio: 'ignore',
      })
    })

    it('providers: is refused beside the field, saved, tested, and forgotten', async () => {
      remote.always((response, call) => {
        if (call.method === 'GET')
          return answer(200, '{"object":"list","data":[{"id":"one"}]}')(response, call, undefined as never)
        const { model } = JSON.parse(call.body.toString()) as { model: string }
        const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ok' } }]
        const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model, choices, usage }))
      })
      await page.goto(at('settings?tab=providers'))
      const form = page.locator('form[data-send="POST /v1/settings/llm-providers"]')
      await page.click('text=Configure a provider')
      await form.locator('[name=provider]').fill('nobody-knows')
      await form.locator('[name=apiKey]').fill('sk-hidden-two')
      await form.locator('button.main').click()
      await form.locator('.problem, output .bad').first().waitFor()
      // Nothing of what was typed is lost by a refusal.
      expect(await form.locator('[name=apiKey]').inputValue()).toBe('sk-hidden-two')
      await form.locator('[name=provider]').fill('openai-compatible')
      await form.locator('[name=baseUrl]').fill(`${remote.origin}/v1`)
      await form.locator('button.main').click()
      await form.locator('text=Saved. Test it above.').waitFor()
      await page.waitForSelector('#providers:has-text("openai-compatible")')
      await page.click('#providers button:text("Test")')
      await page.waitForSelector('#providers output:has-text("✓")')
      await page.waitForSelector('#providers .badge:text("succeeded")')
      expect(await page.content()).not.toContain('sk-hidden-two')
      await page.click('#providers >> text=Forget')
      await confirmed(page)
      await page.waitForSelector('#providers:has-text("No provider is configured.")')
    })

    it('keys: one is made with its scopes, shown once with a copy, and revoked', async () => {
      await page.goto(at('settings?tab=keys'))
      await page.click('text=Make a key')
      const form = page.locator('form[data-send="POST /v1/api-keys"]')
      await form.locator('[name=name]').fill('for a program')
      await form.locator('[value="runs:read"]').check()
      await form.locator('[value="agents:read"]').check()
      await form.locator('button.main').click()
      const raw = await form.locator('.once code').textContent()
      expect(raw).toMatch(/^wb_live_[\w-]{43}$/)
      await form.locator('.once >> text=Copy').click()
      await form.locator('.once >> text=/Copied|Select it/').waitFor()
      const made = (await fixture.call<ApiKey[]>('GET', '/v1/api-keys')).find(one => one.name === 'for a program')
      expect(made?.scopes.toSorted()).toEqual(['agents:read', 'runs:read'])
      const allowed = () =>
        fetch(`${fixture.origin}/v1/agents`, { headers: { authorization: `Bearer ${raw}` } }).then(
          ({ status }) => status,
        )
      expect(await allowed()).toBe(200)
      await page.reload()
      expect(await page.content()).not.toContain(raw)
      await page.click('[aria-label="Revoke: for a program"]')
      await confirmed(page)
      await page.waitForSelector('tr:has-text("for a program") .badge:text("revoked")')
      expect(await allowed()).toBe(401)
    })

    it('webhooks: one is added, tested, delivers, and what failed is sent again', async () => {
      remote.always(answer(500, '{}'))
      await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo', tools: ['ask_human'] } })
      await page.goto(at('settings?tab=webhooks'))
      await page.click('text=Add a webhook')
      const form = page.locator('form[data-send="POST /v1/webhooks"]')
      await form.locator('[name=url]').fill(`${remote.origin}/hook`)
      await form.locator('[value="run.succeeded"]').check()
      await form.locator('button.main').click()
      expect(await form.locator('.once code').textContent()).toMatch(/^whsec_/)
      await page.waitForSelector(`#webhooks:has-text("${remote.origin}/hook")`)
      await page.click('#webhooks button:text("Test")')
      await page.waitForSelector('#webhooks output:has-text("✗")')
      remote.always(answer(204, ''))
      await page.click('#webhooks button:text("Test")')
      await page.waitForSelector('#webhooks output:has-text("✓")')

      remote.always(answer(500, '{}'))
      await fixture.call<Run>('POST', '/v1/runs', { agentName: 'echo', input: { prompt: 'hello' } })
      await page.click('#webhooks >> text=Deliveries')
      await eventually(async () => {
        await page.reload()
        expect(await page.locator('#deliveries .badge:text("retrying")').count()).toBeGreaterThan(0)
      })
      remote.always(answer(204, ''))
      const before = remote.seen.length
      await page.click('#deliveries >> text=Send again >> nth=0')
      await eventually(() => expect(remote.seen.length).toBeGreaterThan(before))
      const sent = JSON.parse(remote.seen.at(-1)!.body.toString()) as WebhookBody
      expect(sent).toMatchObject({ type: 'run.succeeded' })
      await eventually(async () => {
        await page.reload()
        expect(await page.locator('#deliveries .badge:text("delivered")').count()).toBeGreaterThan(0)
      })
      await page.goto(at('settings?tab=webhooks'))
      await page.click('#webhooks >> text=Delete')
      await confirmed(page)
      await page.waitForSelector('#webhooks:has-text("No webhooks yet.")')
    })

    it('schedules: ten times in its zone and in this one, a word where clocks are put, and what was changed holds', async () => {
      await page.goto(at('schedules'))
      await page.fill('[name=name]', 'nightly')
      await page.fill('[name=cronExpr]', '30 2 * * WED')
      await page.fill('[name=timezone]', 'Europe/Berlin')
      await page.waitForSelector('#fires >> text=In Europe/Berlin')
      const rows = page.locator('#fires tbody tr')
      expect(await rows.count()).toBe(10)
      const [there, here] = await rows.first().locator('td').allTextContents()
      expect(there).toMatch(/^\d{4}-\d\d-\d\d 02:30:00 \+0[12]:00$/)
      expect(here).toMatch(/\b(?:9|10):30:00\sAM$/)
      expect(await page.textContent('#fires thead')).toContain('Here (Asia/Tokyo)')
      await page.fill('[name=cronExpr]', '30 2 1 * *')
      await page.waitForSelector('#fires .warn:has-text("⚠ the clock is put from")')
      await page.fill('[name=cronExpr]', '30 2 * * WED')
      await page.click('text=Make the schedule')
      await page.waitForURL(/\/deep\/waybill\/schedules\/[0-9a-f-]{36}$/)
      const [schedule] = await fixture.call<Schedule[]>('GET', '/v1/schedules')
      expect(schedule).toMatchObject({ name: 'nightly', cronExpr: '30 2 * * WED', timezone: 'Europe/Berlin' })
      expect(await page.locator('#schedule-head ol li').count()).toBe(10)
      await page.selectOption('[name=overlap]', 'skip')
      await page.click('#schedule >> text=Save')
      await page.waitForSelector('text=Saved.')
      await page.click('text=Pause')
      await page.waitForSelector('#schedule-head .badge:text("paused")')
      for (const name of ['name', 'timezone']) await page.fill(`#schedule [name=${name}]`, '')
      await page.click('#schedule >> text=Save')
      await expect
        .poll(() => fixture.call<Schedule>('GET', `/v1/schedules/${schedule?.id}`))
        .toMatchObject({ timezone: 'UTC', timezoneSource: 'utc' })
      expect((await fixture.call<Schedule>('GET', `/v1/schedules/${schedule?.id}`)).name).toBeUndefined()
      const changed = await fixture.call<Schedule>('GET', `/v1/schedules/${schedule!.id}`)
      expect(changed).toMatchObject({ overlap: 'skip', enabled: false })
      await page.click('text=Run now')
      await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
    })

    it('approvals: one is rejected and one approved, each with a comment that stays with it', async () => {
      const ask = (prompt: string) =>
        fixture.call<Run>('POST', '/v1/runs', {
          agentName: 'echo',
          input: { prompt: `/call ask_human ${JSON.stringify({ prompt })}` },
        })
      await ask(`first ${HOSTILE}`)
      await ask('second')
      await page.goto(at('approvals'))
      const cards = page.locator('#pending [data-card]')
      await eventually(async () => expect(await cards.count()).toBe(2))
      const of = (words: string) => page.locator(`#pending [data-card]:has-text("${words}")`)
      await of('first').locator('textarea[name=comment]').fill(`because ${HOSTILE}`)
      await of('first').locator('text=Reject').click()
      await confirmed(page)
      await eventually(async () => expect(await cards.count()).toBe(1))
      await of('second').locator('textarea[name=comment]').fill('forty-two')
      await of('second').locator('button.main').click()
      await page.waitForSelector('#pending:has-text("Nothing waits for you.")')
      const decided = page.locator('#decided')
      await decided.locator('q:has-text("forty-two")').waitFor()
      await decided.locator('tr:has-text("first") .badge:text("rejected")').waitFor()
      expect(await decided.locator('q').allTextContents()).toContain(`because ${HOSTILE}`)
      expect(await page.title()).not.toBe('taken')
    })

    it('people: one is invited, sets a password, sees what the role allows, and is out when disabled', async () => {
      await page.goto(at('settings?tab=people'))
      await page.click('text=Invite a person')
      const form = page.locator('form[data-send="POST /v1/users"]')
      await form.locator('[name=name]').fill(`Grace ${HOSTILE}`)
      await form.locator('[name=email]').fill('grace@example.com')
      await form.locator('[name=role]').selectOption('viewer')
      await form.locator('button.main').click()
      const link = (await form.locator('.once code').textContent()) ?? ''
      expect(link).toMatch(new RegExp(`^${proxy.base}/invite#token=[\\w-]{43}$`))
      await page.waitForSelector('#people .badge:text("invited")')

      const hers = await seen.another()
      try {
        await hers.page.goto(link)
        await hers.page.fill('[name=password]', 'battery horse correct')
        await hers.page.fill('[name=again]', 'battery horse corect')
        await hers.page.click('text=Set it and log in')
        await hers.page.waitForSelector('text=not the same')
        await hers.page.fill('[name=again]', 'battery horse correct')
        await hers.page.click('text=Set it and log in')
        await hers.page.waitForURL(at(''))
        await hers.page.goto(at('agents/echo'))
        expect(await hers.page.locator('form[data-send]:visible').count()).toBe(0)
        await hers.page.goto(at('settings?tab=people'))
        expect(await hers.page.textContent('main')).toContain('Your role cannot see the other people here.')

        await page.reload()
        await page.selectOption('#people select', 'member')
        await page.click('[aria-label="Change the role of grace@example.com"]')
        await eventually(async () => {
          const people = await fixture.call<Person[]>('GET', '/v1/users')
          expect(people.map(({ role }) => role).toSorted()).toEqual(['member', 'owner'])
        })
        await hers.page.goto(at('agents/echo'))
        expect(await hers.page.locator('form[data-send]:visible').count()).toBeGreaterThan(0)

        await page.click('[aria-label="Disable: grace@example.com"]')
        await confirmed(page)
        await page.waitForSelector('#people .badge:text("disabled")')
        await hers.page.goto(at('agents'))
        expect(hers.page.url()).toMatch(/\/login\?next=agents$/)
      } finally {
        await hers.close()
      }
      await page.click('[aria-label="Remove: grace@example.com"]')
      await confirmed(page)
      await page.waitForSelector('#people:not(:has-text("grace@example.com"))')
    })

    it('nodes: what the doctor of that machine found, once it has dialled in', async () => {
      await eventually(
        async () => {
          await page.goto(at('nodes'))
          expect(await page.locator('#nodes .badge:text("online")').count()).toBe(1)
          expect(await page.locator('#nodes .good:has-text("✓ wasm")').count()).toBeGreaterThan(0)
        },
        { timeout: 60_000, interval: 200 },
      )
      await page.click('#nodes summary')
      const found = await page.locator('#nodes details li').allTextContents()
      expect(found.some(line => line.startsWith('✓ wasm'))).toBe(true)
      expect(found.some(line => /^✗ \w+ \w{3,}/.test(line))).toBe(true)
      await page.click('#nodes >> text=Drain')
      await page.waitForSelector('#nodes .badge:text("draining")')
      await page.click('#nodes >> text=Undrain')
      await page.waitForSelector('#nodes .badge:text("online")')
    }, 90_000)

    it('secrets: stored with hosts and uses, bound otherwise without the value, and set free again', async () => {
      const secret = async () => (await fixture.call<SecretItem[]>('GET', '/v1/secrets'))[0]
      const [name, at443, at8443] = [
        'mail',
        { host: 'api.example.com', ports: [443] },
        { host: '*.eu.example.com', ports: [8443] },
      ]
      const own = `form[data-send="PUT /v1/secrets/${name}"]`
      await page.goto(at('settings?tab=secrets'))
      await page.click('text=Set a secret')
      const form = page.locator('form[data-send="PUT /v1/secrets/{secretName}"]')
      await form.locator('[name=secretName]').fill(name)
      await form.locator('[name=value]').fill('hidden-value')
      await form.locator('[name=hosts]').fill('api.example.com\n*.eu.example.com:8443')
      await form.locator('[name=tools]').selectOption({ label: 'headers of MCP servers only' })
      await form.locator('button').click()
      await page.waitForSelector('#secrets td:has-text("*.eu.example.com:8443")')
      expect(await secret()).toMatchObject({ name, hosts: [at443, at8443], tools: ['mcp'] })

      await page.click(`[aria-label="Bind ${name}"]`)
      expect(await page.locator(`${own} [name=tools] option:checked`).textContent()).toBe('headers of MCP servers only')
      await page.fill(`${own} [name=hosts]`, 'https://api.example.com')
      await page.click(`${own} button`)
      await page.waitForSelector(`${own} .problem:has-text("a host name or *.example.com")`)
      await page.fill(`${own} [name=hosts]`, 'api.example.com')
      await page.selectOption(`${own} [name=tools]`, { label: 'every use' })
      await page.click(`${own} button`)
      // The form itself says "every use" as well.
      await expect.poll(async () => [(await secret())?.hosts, (await secret())?.tools]).toEqual([[at443], undefined])
      await page.waitForSelector('#secrets td:has-text("every use")')

      await page.fill(`${own} [name=hosts]`, '')
      await page.click(`${own} button`)
      await expect.poll(secret).toEqual({ name, updatedAt: expect.any(String) })
      await page.waitForSelector('#secrets td:has-text("any")')
    })

    it('passwords: one’s own is changed with the one before, and other logins are over', async () => {
      await page.goto(at('settings?tab=you'))
      await page.click('text=Change your password')
      await page.fill('[name=currentPassword]', 'not the password')
      await page.fill('[name=newPassword]', 'a new horse battery')
      await page.click('text=Change it')
      await page.waitForSelector('.problem:has-text("not the current password")')
      await page.fill('[name=currentPassword]', OWNER.password)
      await page.click('text=Change it')
      await page.waitForSelector('text=Changed. Your other logins are over.')
      expect((await page.goto(at('settings')))?.url()).toBe(at('settings'))
    })

    it('nothing of all that made the browser complain, and it asked for nothing elsewhere', () => {
      const asked = seen.requests().filter(url => !url.startsWith(`${proxy.base}/`))
      expect(asked).toEqual([])
      // The browser notes each refusal that a test above wanted.
      expect(seen.complaints().filter(words => !/status of (?:4\d\d)/.test(words))).toEqual([])
    })
  })
}

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { petsDocument } from '../../runtime/connectors/testing/pets.ts'
import type { ApiKey } from '../../shared/wire/runtime/auth.ts'
import type { Connector } from '../../shared/wire/runtime/connector.ts'
import type { McpGrant } from '../../shared/wire/runtime/mcp-grant.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { Person } from '../../shared/wire/runtime/user.ts'
import type { WebhookBody } from '../../shared/wire/runtime/webhook.ts'
import { hasChromium } from '../browser/chromium.ts'
import { type Opened, openPlaywright } from '../browser/playwright.ts'
import { demandingServer } from '../mcp/demanding-server.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type DashboardRoom, dashboardRoom, HOSTILE, logIn, OWNER } from './dashboard-room.ts'
import { type AuthorizationServer, authorizationServer, CLIENT } from './oauth-room.ts'
import { pathProxy } from './path-proxy.ts'

if (hasChromium()) {
  describe('the forms of the dashboard, under a path of a proxy', () => {
    let proxy: Awaited<ReturnType<typeof pathProxy>>
    let vendor: AuthorizationServer
    let far: ScriptedUpstream
    let notes: Awaited<ReturnType<typeof demandingServer>>
    let room: DashboardRoom
    let seen: Opened
    let page: Page
    let node: ChildProcess | undefined
    const at = (path: string) => `${proxy.base}/${path}`

    beforeAll(async () => {
      proxy = await pathProxy('/deep/waybill', () => room.origin)
      vendor = await authorizationServer(`${proxy.base}/auth/connectors/callback`)
      far = await scriptedUpstream()
      notes = await demandingServer()
      const outside = [vendor.origin, far.origin, notes.origin, notes.issuer]
      room = await dashboardRoom(
        {
          PLATFORM_PUBLIC_URL: proxy.base,
          PLATFORM_OUTBOUND_ALLOW: outside.map(one => new URL(one).host).join(),
          PLATFORM_OAUTH_GOOGLE_CLIENT_ID: CLIENT.id,
          PLATFORM_OAUTH_GOOGLE_CLIENT_SECRET: CLIENT.secret,
          PLATFORM_TUNNEL_BIND: '127.0.0.1:0',
        },
        { oauthHomes: { 'google-calendar': vendor.home } },
      )
      await room.setUp()
      seen = await openPlaywright({ timezoneId: 'Asia/Tokyo' })
      page = seen.page
      page.setDefaultTimeout(10_000)
      await page.goto(at(''))
      await logIn(page)
    }, 30_000)
    afterAll(async () => {
      node?.kill()
      await seen?.close()
      await room?.close()
      await Promise.all([far?.close(), notes?.close(), vendor?.close(), proxy?.close()])
    })

    describe('connectors', () => {
      const offer = 'section[aria-label="Google Calendar"]'
      const installed = () => room.call<Connector[]>('GET', '/v1/connectors')

      it('connects by a consent page, says what came of it, tests, and removes', async () => {
        await page.goto(at('connectors'))
        expect(await page.textContent('#installed')).toContain('No connector is installed.')
        expect(await page.textContent('section[aria-label="GitHub"]')).toContain('PLATFORM_OAUTH_GITHUB_CLIENT_ID')

        vendor.decline(true)
        await page.click(`${offer} >> text=Connect Google Calendar`)
        await page.waitForSelector('.notice.bad:has-text("Google Calendar is not connected: the consent was refused")')
        expect(page.url()).toBe(at('connectors?connector=google-calendar&status=denied'))
        expect(await installed()).toEqual([])

        vendor.decline(false)
        await page.click(`${offer} >> text=Connect Google Calendar`)
        await page.waitForSelector('.notice.good:has-text("Google Calendar is connected")')
        expect(page.url()).toBe(at('connectors?connector=google-calendar&status=installed'))
        expect(await installed()).toMatchObject([{ authMethod: 'oauth2', ready: true }])
        await page.click('#installed button:text("Test")')
        await page.waitForSelector('#installed output:has-text("✓")')
        await page.waitForSelector('#installed .badge:text("succeeded")')

        await page.click('#installed >> text=Remove')
        await page.waitForSelector('#installed:has-text("No connector is installed.")')
        expect(await installed()).toEqual([])
        expect(vendor.seen.revocations).toBeGreaterThan(0)
        // What the address says is not what is so.
        await page.reload()
        expect(await page.locator('.notice.good').count()).toBe(0)
      })

      it('leads a way back that is used up, or that another browser began, to a page that says so', async () => {
        const begun = await room.call<{ redirectUrl: string }>('POST', '/v1/connectors/oauth/start', {
          connectorId: 'google-calendar',
        })
        const back = await vendor.browse(begun.redirectUrl)
        await page.goto(back.href)
        await page.waitForSelector('.notice.good')
        await page.goto(back.href)
        await page.waitForSelector('.notice.bad:has-text("was used up")')
        expect(page.url()).toBe(at('connectors?status=stale'))
        await room.call('DELETE', '/v1/connectors/google-calendar')
      })

      it('installs with a token, shows a test that fails, and never shows the token again', async () => {
        far.always(answer(401, '{"error":{"message":"Invalid API Key provided"}}'))
        await page.goto(at('connectors'))
        const stripe = page.locator('section[aria-label="Stripe"]')
        await stripe.locator('summary').click()
        await stripe.locator('[name="config.secretKey"]').fill('sk-hidden-one')
        await stripe.locator('button.main').click()
        await stripe.locator('text=Installed. Test it above.').waitFor()
        const { id } = (await installed())[0]!
        expect(id).toBeDefined()
        await room.call('POST', '/v1/connectors/install', {
          ...{ connectorId: 'stripe', config: { secretKey: 'sk-hidden-one', baseUrl: far.origin } },
        })
        await page.click('#installed button:text("Test")')
        await page.waitForSelector('#installed output:has-text("✗")')
        await page.waitForSelector('#installed .badge:text("failed")')
        expect(await page.content()).not.toContain('sk-hidden-one')
      })
    })

    it('MCP servers: one is refused beside its field, connected by its consent page, listed, and disconnected', async () => {
      const grants = () => room.call<McpGrant[]>('GET', '/v1/mcp-servers/grants')
      await page.goto(at('connectors'))
      expect(await page.textContent('#grants')).toContain('No MCP server has granted anything.')
      await page.click('text=Connect an MCP server')
      const form = page.locator('form[aria-label="Connect an MCP server"]')
      await form.locator('[name=url]').fill('http://10.0.0.1/mcp')
      await form.locator('summary').click()
      await form.locator('[name=scope]').fill('notes')
      await form.locator('summary').click()
      await form.locator('button.main').click()
      await form.locator('[name=url] + .problem').waitFor()
      expect(await form.locator('[name=scope]').inputValue()).toBe('notes')

      // The login is over in between, and what was typed still goes where it was sent.
      await form.locator('[name=url]').fill(notes.url)
      await seen.context.clearCookies()
      await form.locator('button.main').click()
      await page.waitForSelector('#login-again[open]')
      await page.fill('#login-again [name=email]', OWNER.email)
      await page.fill('#login-again [name=password]', OWNER.password)
      await page.click('#login-again button.main')
      await page.waitForSelector('.notice.good:has-text("The MCP server is connected")')
      expect(page.url()).toBe(at('connectors?connector=mcp&status=installed'))
      const row = page.locator('#grants tbody tr')
      expect(await row.count()).toBe(1)
      expect(await row.textContent()).toContain(notes.url)
      expect(await row.locator('code').allTextContents()).toEqual(['notes', 'offline_access'])
      expect(await row.locator('.badge').textContent()).toBe('granted')
      expect(await row.locator('time').count()).toBe(2)
      const [grant] = await grants()
      await row.locator('text=Connect again').click()
      await vi.waitFor(() => expect(notes.seen.exchanges).toBe(2), 10_000)
      await page.waitForSelector('.notice.good')
      expect((await grants()).map(({ id }) => id)).toEqual([grant?.id])

      const plain = await seen.another({ javaScriptEnabled: false })
      try {
        await plain.page.goto(at('login?next=connectors'))
        await logIn(plain.page)
        expect(await plain.page.textContent('#grants tbody')).toContain(notes.url)
        expect(await plain.page.locator('form[data-send]:visible').count()).toBe(0)
      } finally {
        await plain.close()
      }

      await page.click(`[aria-label="Disconnect: ${notes.url}"]`)
      await page.waitForSelector('#grants:has-text("No MCP server has granted anything.")')
      expect(await grants()).toEqual([])
      expect(notes.seen.revocations).toBeGreaterThan(0)
      // What the address says is not what is so.
      await page.goto(at('connectors?connector=mcp&status=installed'))
      expect(await page.locator('.notice').count()).toBe(0)
      await page.goto(at('connectors?connector=mcp&status=denied'))
      expect(await page.textContent('.notice.bad')).toContain('was refused there')
    })

    it('connectors of one’s own: a document is looked into, faults stand beside fields, and what is chosen is installed', async () => {
      far.always(answer(200, '{"data":[]}'))
      await page.goto(at('connectors'))
      await page.click('text=Make a connector from an OpenAPI document')
      const form = page.locator('#own-connector')
      await form.locator('[name=openapi]').fill('openapi: 3.1.0\npaths: [')
      await page.waitForSelector('#own-said .bad:has-text("line 2")')
      expect(await form.locator('#own-rest').isVisible()).toBe(false)
      await form.locator('[name=openapi]').fill('swagger: "2.0"')
      await page.waitForSelector('#own-said .bad:has-text("#/swagger")')
      await form.locator('#own-file').setInputFiles({
        ...{ name: 'pets.yaml', mimeType: 'application/yaml', buffer: Buffer.from(petsDocument) },
      })
      await page.waitForSelector('#own-said >> text=✓ Pets, 6 operations.')
      expect(await form.locator('[name=connectorId]').inputValue()).toBe('http-pets')
      expect(
        await form.locator('.operation').evaluateAll(lines =>
          lines.map(one => {
            const [box, select] = [one.querySelector('input'), one.querySelector('select')]
            return [one.querySelector('code')?.textContent, select?.selectedOptions[0]?.text, box?.checked]
          }),
        ),
      ).toEqual([
        ['pets_list', 'only reads', true],
        ['createPet', 'is sent once', false],
        ['getPet', 'only reads', true],
        ['putPet', 'may be repeated', false],
        ['deletePet', 'may be repeated', false],
        ['search', 'is sent once', false],
      ])
      expect(await form.locator('[name="config.petKey"]').isVisible()).toBe(true)
      expect(await form.locator('[name="config.second"]').isVisible()).toBe(false)
      await form.locator('.operation:has-text("deletePet") input').check()
      expect(await form.locator('[name="config.second"]').isVisible()).toBe(true)
      await form.locator('.operation:has-text("deletePet") input').uncheck()
      await form.locator('.operation:has-text("search") select').selectOption('read')
      await form.locator('#own-filter').fill('SEARCH')
      expect(await form.locator('.operation:visible').count()).toBe(1)
      await form.locator('.operation:visible input').check()
      await form.locator('#own-filter').fill('')
      expect(await form.locator('#own-count').textContent()).toBe('3 of 6 chosen')

      await form.locator('[name=connectorId]').fill('http-zoo')
      await form.locator('[name="config.petKey"]').fill('the-hidden-pet-key')
      await form.locator('[name="config.baseUrl"]').fill('http://10.0.0.1/')
      await form.locator('button.main').click()
      await form.locator('[name="config.baseUrl"] + .problem').waitFor()
      expect(await form.locator('[name="config.petKey"]').inputValue()).toBe('the-hidden-pet-key')
      await form.locator('[name="config.baseUrl"]').fill(far.origin)
      await form.locator('button.main').click()
      await form.locator('text=Installed. Test it above.').waitFor()
      await page.waitForSelector('#installed:has-text("Pets")')
      await page.waitForSelector('#own:has-text("pets_list, getPet, search")')
      const zoo = 'http-zoo'
      await page.click(`[aria-label="Test: ${zoo}"]`)
      await page.waitForSelector('#installed output:has-text("✓")')
      expect(far.seen.at(-1)?.url).toMatch(/api_key=the-hidden-pet-key/)
      const tools = await room.call<{ connectorId: string; actions: { name: string; readOnly: boolean }[] }[]>(
        'GET',
        '/v1/connectors/catalog',
      )
      expect(tools.at(-1)?.actions.map(({ name, readOnly }) => [name, readOnly])).toEqual([
        ['pets_list', true],
        ['getPet', true],
        ['search', true],
      ])
      await page.reload()
      expect(await page.content()).not.toContain('the-hidden-pet-key')
      await page.click(`[aria-label="Remove: ${zoo}"]`)
      await page.waitForSelector('#own:has-text("No connector of your own is installed.")')
    })

    it('providers: is refused beside the field, saved, tested, and forgotten', async () => {
      far.always((response, call) => {
        if (call.method === 'GET')
          return answer(200, '{"object":"list","data":[{"id":"one"}]}')(response, call, undefined as never)
        const { model } = JSON.parse(call.body.toString()) as { model: string }
        const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ok' } }]
        const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model, choices, usage }))
      })
      await page.goto(at('settings'))
      const form = page.locator('form[data-send="POST /v1/settings/llm-providers"]')
      await page.click('text=Configure a provider')
      await form.locator('[name=provider]').fill('nobody-knows')
      await form.locator('[name=apiKey]').fill('sk-hidden-two')
      await form.locator('button.main').click()
      await form.locator('.problem, output .bad').first().waitFor()
      // Nothing of what was typed is lost by a refusal.
      expect(await form.locator('[name=apiKey]').inputValue()).toBe('sk-hidden-two')
      await form.locator('[name=provider]').fill('openai-compatible')
      await form.locator('[name=baseUrl]').fill(`${far.origin}/v1`)
      await form.locator('button.main').click()
      await form.locator('text=Saved. Test it above.').waitFor()
      await page.waitForSelector('#providers:has-text("openai-compatible")')
      await page.click('#providers button:text("Test")')
      await page.waitForSelector('#providers output:has-text("✓")')
      await page.waitForSelector('#providers .badge:text("succeeded")')
      expect(await page.content()).not.toContain('sk-hidden-two')
      await page.click('#providers >> text=Forget')
      await page.waitForSelector('#providers:has-text("No provider is configured.")')
    })

    it('keys: one is made with its scopes, shown once with a copy, and revoked', async () => {
      await page.goto(at('settings'))
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
      const made = (await room.call<ApiKey[]>('GET', '/v1/api-keys')).find(one => one.name === 'for a program')
      expect(made?.scopes.toSorted()).toEqual(['agents:read', 'runs:read'])
      const allowed = () =>
        fetch(`${room.origin}/v1/agents`, { headers: { authorization: `Bearer ${raw}` } }).then(({ status }) => status)
      expect(await allowed()).toBe(200)
      await page.reload()
      expect(await page.content()).not.toContain(raw)
      await page.click('[aria-label="Revoke: for a program"]')
      await page.waitForSelector('tr:has-text("for a program") .badge:text("revoked")')
      expect(await allowed()).toBe(401)
    })

    it('webhooks: one is added, tested, delivers, and what failed is sent again', async () => {
      far.always(answer(500, '{}'))
      await room.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo', tools: ['ask_human'] } })
      await page.goto(at('settings'))
      await page.click('text=Add a webhook')
      const form = page.locator('form[data-send="POST /v1/webhooks"]')
      await form.locator('[name=url]').fill(`${far.origin}/hook`)
      await form.locator('[value="run.succeeded"]').check()
      await form.locator('button.main').click()
      expect(await form.locator('.once code').textContent()).toMatch(/^whsec_/)
      await page.waitForSelector(`#webhooks:has-text("${far.origin}/hook")`)
      await page.click('#webhooks button:text("Test")')
      await page.waitForSelector('#webhooks output:has-text("✗")')
      far.always(answer(204, ''))
      await page.click('#webhooks button:text("Test")')
      await page.waitForSelector('#webhooks output:has-text("✓")')

      far.always(answer(500, '{}'))
      await room.call<Run>('POST', '/v1/runs', { agentName: 'echo', input: { prompt: 'hello' } })
      await page.click('#webhooks >> text=Deliveries')
      await vi.waitFor(async () => {
        await page.reload()
        expect(await page.locator('#deliveries .badge:text("retrying")').count()).toBeGreaterThan(0)
      }, 10_000)
      far.always(answer(204, ''))
      const before = far.seen.length
      await page.click('#deliveries >> text=Send again >> nth=0')
      await vi.waitFor(() => expect(far.seen.length).toBeGreaterThan(before), 10_000)
      const sent = JSON.parse(far.seen.at(-1)!.body.toString()) as WebhookBody
      expect(sent).toMatchObject({ type: 'run.succeeded' })
      await vi.waitFor(async () => {
        await page.reload()
        expect(await page.locator('#deliveries .badge:text("delivered")').count()).toBeGreaterThan(0)
      }, 10_000)
      await page.goto(at('settings'))
      await page.click('#webhooks >> text=Delete')
      await page.waitForSelector('#webhooks:has-text("Nobody is told of anything yet.")')
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
      const [schedule] = await room.call<Schedule[]>('GET', '/v1/schedules')
      expect(schedule).toMatchObject({ name: 'nightly', cronExpr: '30 2 * * WED', timezone: 'Europe/Berlin' })
      expect(await page.locator('#schedule-head ol li').count()).toBe(10)
      await page.selectOption('[name=overlap]', 'skip')
      await page.click('#schedule >> text=Save')
      await page.waitForSelector('text=Saved.')
      await page.click('text=Pause')
      await page.waitForSelector('#schedule-head .badge:text("paused")')
      const changed = await room.call<Schedule>('GET', `/v1/schedules/${schedule!.id}`)
      expect(changed).toMatchObject({ overlap: 'skip', enabled: false })
      await page.click('text=Run now')
      await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
    })

    it('approvals: one is rejected and one approved, each with a comment that stays with it', async () => {
      const ask = (prompt: string) =>
        room.call<Run>('POST', '/v1/runs', {
          ...{ agentName: 'echo', input: { prompt: `/call ask_human ${JSON.stringify({ prompt })}` } },
        })
      await ask(`first ${HOSTILE}`)
      await ask('second')
      await page.goto(at('approvals'))
      const cards = page.locator('#pending [data-card]')
      await vi.waitFor(async () => expect(await cards.count()).toBe(2), 10_000)
      const of = (words: string) => page.locator(`#pending [data-card]:has-text("${words}")`)
      await of('first').locator('textarea[name=comment]').fill(`because ${HOSTILE}`)
      await of('first').locator('text=Reject').click()
      await vi.waitFor(async () => expect(await cards.count()).toBe(1), 10_000)
      await of('second').locator('textarea[name=comment]').fill('forty-two')
      await of('second').locator('button.main').click()
      await page.waitForSelector('#pending:has-text("Nothing waits for you.")')
      const decided = page.locator('#decided')
      await decided.locator('q:has-text("forty-two")').waitFor()
      await decided.locator('tr:has-text("first") .badge:text("rejected")').waitFor()
      expect(await decided.locator('q').allTextContents()).toContain(`because ${HOSTILE}`)
      expect(await page.title()).not.toBe('taken')
    })

    it('nodes: a command that enrols, and what the doctor of that machine found', async () => {
      await page.goto(at('nodes'))
      await page.waitForSelector('text=No node has been announced.')
      await page.fill('[name=name]', 'far away')
      await page.click('text=Make the command')
      const command = (await page.textContent('.once code')) ?? ''
      expect(command).toMatch(/^PLATFORM_CONTROL_URL=http:\/\/127\.0\.0\.1:\d+ PLATFORM_ENROL_TOKEN=wb_node_\S{43} /)
      await page.waitForSelector('#nodes .badge:text("pending")')
      // As it stands there, in the place of `npx node-agent` what that starts.
      const vars = Object.fromEntries(
        [...command.matchAll(/(PLATFORM_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
      )
      const folder = join(room.folder, 'node')
      const own = { NODE_BACKENDS: 'wasm,runc,kata', NODE_STATE_DIR: join(folder, 'state') }
      const places = { PLATFORM_DATA_DIR: folder, NODE_IMAGE_DIR: join(folder, 'image') }
      node = spawn(process.execPath, ['node-agent/main.ts', 'run'], {
        ...{ env: { PATH: process.env.PATH, ...vars, ...own, ...places }, stdio: 'ignore' },
      })
      await vi.waitFor(
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

    it('people: one is invited, sets a password, sees what the role allows, and is out when disabled', async () => {
      await page.goto(at('settings'))
      await page.click('text=Invite somebody')
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
        await hers.page.goto(at('settings'))
        expect(await hers.page.textContent('main')).toContain('Your role does not see the others here.')

        await page.reload()
        await page.selectOption('#people select', 'member')
        await page.click('[aria-label="Change the role of grace@example.com"]')
        await vi.waitFor(async () => {
          const people = await room.call<Person[]>('GET', '/v1/users')
          expect(people.map(({ role }) => role).toSorted()).toEqual(['member', 'owner'])
        })
        await hers.page.goto(at('agents/echo'))
        expect(await hers.page.locator('form[data-send]:visible').count()).toBeGreaterThan(0)

        await page.click('[aria-label="Disable: grace@example.com"]')
        await page.waitForSelector('#people .badge:text("disabled")')
        await hers.page.goto(at('agents'))
        expect(hers.page.url()).toMatch(/\/login\?next=agents$/)
      } finally {
        await hers.close()
      }
      await page.click('[aria-label="Remove: grace@example.com"]')
      await page.waitForSelector('#people:not(:has-text("grace@example.com"))')
    }, 60_000)

    it('passwords: one’s own is changed with the one before, and other logins are over', async () => {
      await page.goto(at('settings'))
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
      const asked = seen
        .requests()
        .filter(url => ![`${proxy.base}/`, vendor.origin, notes.issuer].some(one => url.startsWith(one)))
      expect(asked).toEqual([])
      // The browser notes each refusal that a test above wanted.
      expect(seen.complaints().filter(words => !/status of (?:4\d\d)/.test(words))).toEqual([])
    })
  })
}

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { petsDocument } from '../../runtime/connectors/testing/pets.ts'
import type { Connector } from '../../shared/wire/runtime/connector.ts'
import type { McpGrant } from '../../shared/wire/runtime/mcp-grant.ts'
import { hasChromium } from '../browser/chromium.ts'
import { openPlaywright, type Seen } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { demandingServer } from '../mcp/demanding-server.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { confirmed, type DashboardFixture, dashboardFixture, logIn, OWNER } from './dashboard-fixture.ts'
import { type AuthorizationServer, authorizationServer, CLIENT } from './oauth-fixture.ts'
import { pathProxy } from './path-proxy.ts'

if (hasChromium()) {
  describe('the connectors of the dashboard, under a path of a proxy', () => {
    let proxy: Awaited<ReturnType<typeof pathProxy>>
    let vendor: AuthorizationServer
    let remote: ScriptedUpstream
    let notes: Awaited<ReturnType<typeof demandingServer>>
    let fixture: DashboardFixture
    let seen: Seen
    let page: Page
    const at = (path: string) => `${proxy.base}/${path}`
    /** A page as it comes, before any script of it has run. */
    const plain = async (path: string) => {
      const cookie = (await seen.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
      return (await fetch(at(path), { headers: { cookie } })).text()
    }

    beforeAll(async () => {
      proxy = await pathProxy('/deep/waybill', () => fixture.origin)
      vendor = await authorizationServer(`${proxy.base}/auth/connectors/callback`)
      remote = await scriptedUpstream()
      notes = await demandingServer()
      const egress = [vendor.origin, remote.origin, notes.origin, notes.issuer]
      fixture = await dashboardFixture(
        {
          PLATFORM_PUBLIC_URL: proxy.base,
          PLATFORM_OUTBOUND_ALLOW: egress.map(one => new URL(one).host).join(),
          PLATFORM_OAUTH_GOOGLE_CLIENT_ID: CLIENT.id,
          PLATFORM_OAUTH_GOOGLE_CLIENT_SECRET: CLIENT.secret,
        },
        { oauthHomes: { 'google-calendar': vendor.home } },
      )
      await fixture.setUp()
      seen = await openPlaywright()
      page = seen.page
      page.setDefaultTimeout(10_000)
      await page.goto(at('connectors'))
      await logIn(page)
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
      await Promise.all([remote?.close(), notes?.close(), vendor?.close(), proxy?.close()])
    })

    describe('connectors', () => {
      const offer = 'section[aria-label="Google Calendar"]'
      const installed = () => fixture.call<Connector[]>('GET', '/v1/connectors')

      it('connects by a consent page, says what came of it, tests, and removes', async () => {
        await page.goto(at('connectors'))
        expect(await page.textContent('#installed')).toContain('No connector is installed.')
        expect(await page.textContent('section[aria-label="GitHub"]')).toContain('PLATFORM_OAUTH_GITHUB_CLIENT_ID')

        vendor.decline(true)
        await page.click(`${offer} >> text=Connect Google Calendar`)
        await page.waitForSelector('.notice.bad:has-text("Google Calendar is not connected: the consent was refused")')
        // What is clicked before the page's scripts have come is not heard.
        await page.waitForLoadState()
        expect(page.url()).toBe(at('connectors?connector=google-calendar&status=denied'))
        expect(await installed()).toEqual([])

        vendor.decline(false)
        await page.click(`${offer} >> text=Connect Google Calendar`)
        await page.waitForSelector('.notice.good:has-text("Google Calendar is connected")')
        await page.waitForLoadState()
        expect(page.url()).toBe(at('connectors?connector=google-calendar&status=installed'))
        expect(await installed()).toMatchObject([{ authMethod: 'oauth2', ready: true }])
        await page.click('#installed button:text("Test")')
        await page.waitForSelector('#installed output:has-text("✓")')
        await page.waitForSelector('#installed .badge:text("succeeded")')

        await page.click('#installed >> text=Remove')
        await confirmed(page)
        await page.waitForSelector('#installed:has-text("No connector is installed.")')
        expect(await installed()).toEqual([])
        expect(vendor.seen.revocations).toBeGreaterThan(0)
        // What the address says is not what is so.
        await page.reload()
        expect(await page.locator('.notice.good').count()).toBe(0)
      })

      it('leads a way back that is used up, or that another browser began, to a page that says so', async () => {
        const begun = await fixture.call<{ redirectUrl: string }>('POST', '/v1/connectors/oauth/start', {
          connectorId: 'google-calendar',
        })
        const back = await vendor.browse(begun.redirectUrl)
        await page.goto(back.href)
        await page.waitForSelector('.notice.good')
        await page.goto(back.href)
        await page.waitForSelector('.notice.bad:has-text("was used already")')
        expect(page.url()).toBe(at('connectors?status=stale'))
        await fixture.call('DELETE', '/v1/connectors/google-calendar')
      })

      it('installs with a token, shows a test that fails, and never shows the token again', async () => {
        remote.always(answer(401, '{"error":{"message":"Invalid API Key provided"}}'))
        await page.goto(at('connectors'))
        const stripe = page.locator('section[aria-label="Stripe"]')
        await stripe.locator('summary').click()
        await stripe.locator('[name="config.secretKey"]').fill('sk-hidden-one')
        await stripe.locator('button.main').click()
        await stripe.locator('text=Installed. Test it above.').waitFor()
        const { id } = (await installed())[0]!
        expect(id).toBeDefined()
        await fixture.call('POST', '/v1/connectors/install', {
          connectorId: 'stripe',
          config: { secretKey: 'sk-hidden-one', baseUrl: remote.origin },
        })
        await page.click('#installed button:text("Test")')
        await page.waitForSelector('#installed output:has-text("✗")')
        await page.waitForSelector('#installed .badge:text("failed")')
        expect(await page.content()).not.toContain('sk-hidden-one')
      })
    })

    it('MCP servers: one is refused beside its field, connected by its consent page, listed, and disconnected', async () => {
      const grants = () => fixture.call<McpGrant[]>('GET', '/v1/mcp-servers/grants')
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
      // By the page itself: news may make it ask for the login before a pointer is there.
      await form.locator('button.main').evaluate((button: HTMLButtonElement) => button.click())
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
      await eventually(() => expect(notes.seen.exchanges).toBe(2))
      await page.waitForSelector('.notice.good')
      expect((await grants()).map(({ id }) => id)).toEqual([grant?.id])

      // The same without a script, for reading.
      expect(await plain('connectors')).toContain(`${notes.url}<br><small>granted`)

      await page.click(`[aria-label="Disconnect: ${notes.url}"]`)
      await confirmed(page)
      await page.waitForSelector('#grants:has-text("No MCP server has granted anything.")')
      expect(await grants()).toEqual([])
      expect(notes.seen.revocations).toBeGreaterThan(0)
      // What the address says is not what is so.
      expect(await plain('connectors?connector=mcp&status=installed')).not.toContain('server is connected')
      expect(await plain('connectors?connector=mcp&status=denied')).toContain(
        'The MCP server is not connected: the consent was refused',
      )
    })

    it('connectors of one’s own: a document is looked into, faults stand beside fields, and what is chosen is installed', async () => {
      remote.always(answer(200, '{"data":[]}'))
      await page.goto(at('connectors'))
      await page.click('text=Make a connector from an OpenAPI document')
      const form = page.locator('#own-connector')
      await form.locator('[name=openapi]').fill('openapi: 3.1.0\npaths: [')
      await page.waitForSelector('#own-said .bad:has-text("line 2")')
      expect(await form.locator('#own-rest').isVisible()).toBe(false)
      await form.locator('[name=openapi]').fill('swagger: "2.0"')
      await page.waitForSelector('#own-said .bad:has-text("#/swagger")')
      await form.locator('#own-file').setInputFiles({
        name: 'pets.yaml',
        mimeType: 'application/yaml',
        buffer: Buffer.from(petsDocument),
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
      await form.locator('[name="config.baseUrl"]').fill(remote.origin)
      await form.locator('button.main').click()
      await form.locator('text=Installed. Test it above.').waitFor()
      await page.waitForSelector('#installed:has-text("Pets")')
      await page.waitForSelector('#own:has-text("pets_list, getPet, search")')
      const zoo = 'http-zoo'
      await page.click(`[aria-label="Test: ${zoo}"]`)
      await page.waitForSelector('#installed output:has-text("✓")')
      expect(remote.seen.at(-1)?.url).toMatch(/api_key=the-hidden-pet-key/)
      const tools = await fixture.call<{ connectorId: string; actions: { name: string; readOnly: boolean }[] }[]>(
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
      await confirmed(page)
      await page.waitForSelector('#own:has-text("No connector of your own is installed.")')
    })

    it('nothing of all that made the browser complain, and it asked for nothing elsewhere', () => {
      const known = [`${proxy.base}/`, vendor.origin, notes.issuer]
      expect(seen.requests().filter(url => !known.some(one => url.startsWith(one)))).toEqual([])
      // The browser notes each refusal that a test above wanted.
      expect(seen.complaints().filter(words => !/status of (?:4\d\d)/.test(words))).toEqual([])
    })
  })
}

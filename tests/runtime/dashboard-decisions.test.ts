import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { hasChromium } from '../browser/chromium.ts'
import type { Seen } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { confirmed, type DashboardFixture, dashboardFixture, openAsOwner } from './dashboard-fixture.ts'

if (hasChromium()) {
  describe('what a person decides, asks and finds in the dashboard', () => {
    let fixture: DashboardFixture
    let seen: Seen
    let page: Page
    let key = ''
    const at = (path: string) => `${fixture.origin}/${path}`
    const question = (words: string) => `/call ask_human ${JSON.stringify({ prompt: words })}`
    const start = (agentName: string, prompt: string, labels = {}) =>
      fixture.call<Run>('POST', '/v1/runs', { agentName, input: { prompt }, labels })
    const statusOf = async (id: string) => (await fixture.call<Run>('GET', `/v1/runs/${id}?fields=summary`)).status
    const waits = (ids: readonly string[]) =>
      eventually(async () => {
        for (const id of ids) expect(await statusOf(id)).toBe('waiting')
      })
    const shot = async (name: string) => {
      const folder = process.env.WAYBILL_DASHBOARD_SHOTS
      if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
    }

    beforeAll(async () => {
      fixture = await dashboardFixture()
      key = await fixture.setUp()
      await fixture.call('POST', '/v1/agents', {
        name: 'clerk',
        manifest: { model: 'demo/echo', tools: ['ask_human', 'wait'], approvals: { tools: ['wait'] } },
      })
      seen = await openAsOwner(fixture)
      page = seen.page
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    it('answers and approves on the overview, and each card goes at once', async () => {
      const asked = await start('clerk', question('Which colour?'))
      const asks = await start('clerk', '/call wait {"seconds":0.01}')
      await waits([asked.id, asks.id])
      await page.goto(at(''))
      const cards = page.locator('.brief[data-card]')
      await eventually(async () => {
        if ((await cards.count()) < 2) await page.goto(at(''))
        expect(await cards.count()).toBe(2)
      })
      await shot('overview-waiting')
      const of = (words: string) => page.locator(`.brief:has-text("${words}")`)
      await of('Which colour?').locator('[name=comment]').fill('green')
      await of('Which colour?').locator('text=Answer').focus()
      await page.keyboard.press('Enter')
      await eventually(async () => expect(await cards.count()).toBe(1))
      const atFocus = () => page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200))
      expect(await atFocus(), 'the next decision').toMatch(/^<li class="brief"/)
      await cards.locator('text=Reject').focus()
      const more = await start('clerk', question('Which size?'))
      await page.waitForSelector('.brief:has-text("Which size?")')
      expect(await atFocus(), 'the same button of a part that was drawn anew').toMatch(/^<button class="danger"/)
      await fixture.call('POST', `/v1/runs/${more.id}/cancel`)
      await eventually(async () => expect(await cards.count()).toBe(1))
      await cards.locator('text=Approve').click()
      await eventually(async () => expect(await cards.count()).toBe(0))
      for (const { id } of [asked, asks]) await eventually(async () => expect(await statusOf(id)).toBe('succeeded'))
      const { output } = await fixture.call<Run>('GET', `/v1/runs/${asked.id}`)
      expect(JSON.stringify(output)).toContain('green')
    })

    it('approves several after one question, and the history says what, who and after how long', async () => {
      const runs = await Promise.all([1, 2, 3].map(i => start('clerk', `/call wait {"seconds":0.0${i}}`)))
      await waits(runs.map(({ id }) => id))
      await page.goto(at('approvals'))
      const boxes = page.locator('#pending [data-choose]')
      expect(await boxes.count()).toBe(3)
      for (let i = 0; i < 2; i++) await boxes.nth(i).check()
      expect(await page.textContent('#bulk-count')).toBe('2 decisions chosen')
      await shot('approvals-bulk')
      await page.click('#bulk-approve')
      await confirmed(page)
      await page.waitForSelector('#toast:has-text("2 decisions approved.")')
      await eventually(async () => expect(await page.locator('#pending [data-card]').count()).toBe(1))
      await page.locator('#pending [data-choose]').check()
      await page.click('#bulk-reject')
      await confirmed(page)
      await page.waitForSelector('#pending:has-text("Nothing waits for you.")')
      await page.click('.segments >> text=rejected')
      await page.waitForURL(at('approvals?decision=rejected'))
      expect(await page.locator('#decided tbody tr').count()).toBe(1)
      expect(await page.textContent('#decided tbody')).toMatch(/wait.*rejected/s)
      await page.click('.segments >> text=expired')
      await page.waitForSelector('text=Nothing was expired.')
    })

    it('answers in the chat what its turn waits for, shows Markdown and calls, and each message once', async () => {
      const { id } = await fixture.call<Session>('POST', '/v1/sessions', { agentName: 'clerk', title: 'A talk' })
      await page.goto(at(`sessions/${id}`))
      const message = `**Bold** and \`code\`\n${question('How many?')}`
      await page.fill('#say textarea', message)
      await page.keyboard.press('Enter')
      await page.waitForSelector('#turn [data-card]')
      // While the turn waits, and not only at its end.
      await eventually(async () => {
        expect(await page.locator('li.user').count()).toBe(1)
        expect(await page.textContent('#pending')).toBe('')
      })
      expect(await page.textContent('li.user strong')).toBe('Bold')
      await shot('chat-waiting')
      await page.fill('#turn [name=comment]', 'seven')
      await page.click('#turn >> text=Answer >> nth=-1')
      await page.waitForSelector('#talk li.assistant')
      expect(await page.textContent('#talk li.assistant')).toContain('seven')
      expect(await page.locator('#talk li.assistant details.call summary').textContent()).toContain('ask_human')
      expect(await page.locator('li.user').count()).toBe(1)
      expect(await page.textContent('#turn')).toBe('')
      await shot('chat-done')
      await page.fill('#say textarea', '/call wait {"seconds":1}')
      await page.keyboard.press('Enter')
      await page.waitForSelector('#turn [data-card]')
      await page.click('#turn >> text=Approve >> nth=-1')
      await page.waitForSelector('.typing:has-text("clerk is at work")')
      await page.waitForSelector('#talk li.assistant >> nth=1')
      expect(await page.locator('.typing').count()).toBe(0)
    })

    it('shows marks that turn letters around in the error of a run, its rows and its journal', async () => {
      const input = { prompt: question('Which file?') }
      const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'clerk', input })
      const asked = await eventually(async () => {
        const [one] = await fixture.call<Approval[]>('GET', `/v1/runs/${id}/approvals`)
        if (one === undefined) throw new Error('it does not wait yet')
        return one
      })
      await fixture.call('POST', `/v1/approvals/${asked.id}/reject`, { comment: 'not \u202egnp.exe' })
      await page.goto(at(`runs/${id}`))
      await page.waitForSelector('#timeline small:has-text("approval_rejected")')
      await page.click('[role=tab]:text("Journal")')
      const shown = await page.evaluate(() => [
        document.querySelector('main')?.textContent,
        ...[...document.querySelectorAll<HTMLElement>('main [title]')].map(({ title }) => title),
      ])
      expect(shown.filter(words => words?.includes('\u202e'))).toEqual([])
      expect(shown.filter(words => words?.includes('not ⟨U+202E⟩gnp.exe')).length).toBeGreaterThan(1)
    })

    it('follows the answers of a chat again after its line was refused, as by a proxy or an expired login', async () => {
      const { id } = await fixture.call<Session>('POST', '/v1/sessions', { agentName: 'clerk', title: 'Refused' })
      let lines = 0
      await page.route(`**/sessions/${id}/events`, route =>
        ++lines === 1 ? route.fulfill({ status: 503 }) : route.continue(),
      )
      await page.goto(at(`sessions/${id}`))
      await eventually(async () => expect(lines).toBe(1))
      await page.fill('#say textarea', 'Is it there?')
      await page.keyboard.press('Enter')
      await page.waitForSelector('#talk >> text=You said: Is it there?')
      expect(lines).toBe(2)
      await page.unrouteAll()
      expect(seen.complaints().filter(words => !words.includes('503'))).toEqual([])
    })

    it('keeps what is said in the chat while the turn before is still being read back', async () => {
      const { id } = await fixture.call<Session>('POST', '/v1/sessions', { agentName: 'clerk', title: 'Two at once' })
      await page.goto(at(`sessions/${id}`))
      const read = Promise.withResolvers<void>()
      const sent = Promise.withResolvers<void>()
      await page.route(at(`sessions/${id}`), async route => {
        await read.promise
        await route.continue()
      })
      await page.fill('#say textarea', 'first words')
      await page.keyboard.press('Enter')
      await page.waitForSelector('#pending .assistant small')
      await page.route('**/messages', async route => {
        await sent.promise
        await route.continue()
      })
      await page.fill('#say textarea', 'second words')
      await page.keyboard.press('Enter')
      await page.waitForSelector('#pending >> text=second words')
      read.resolve()
      await page.waitForSelector('#talk >> text=You said: first words')
      await eventually(async () => expect(await page.textContent('#pending')).not.toContain('first words'))
      expect(await page.textContent('#pending')).toContain('second words')
      sent.resolve()
      await page.waitForSelector('#talk >> text=You said: second words')
      await eventually(async () => expect(await page.textContent('#pending')).toBe(''))
      await page.unrouteAll()
    })

    it('starts a run by a form of the schema of its input, and says beside the field what does not fit', async () => {
      const inputSchema = {
        type: 'object',
        properties: {
          city: { type: 'string', maxLength: 40, title: 'City', pattern: '^[A-Z]' },
          guests: { type: 'integer', minimum: 1 },
          size: { enum: ['small', 'large'], default: 'small' },
          late: { type: 'boolean' },
        },
        required: ['city'],
      }
      await fixture.call('POST', '/v1/agents', { name: 'booker', manifest: { model: 'demo/echo', inputSchema } })
      await page.goto(at('runs?new=1&agentName=booker'))
      await page.waitForSelector('#input-fields [name="input.city"]')
      expect(await page.isVisible('[data-input=message]')).toBe(false)
      await shot('new-run-form')
      // What the browser would refuse itself is refused by the API as well, and stands beside its field.
      await page.evaluate(() => {
        for (const form of document.forms) form.noValidate = true
      })
      await page.fill('[name="input.city"]', 'oslo')
      await page.click('#new-run >> text=Start')
      await page.waitForSelector('#input-fields .problem')
      await page.fill('[name="input.city"]', 'Oslo')
      await page.fill('[name="input.guests"]', '3')
      await page.selectOption('[name="input.late"]', { label: 'no' })
      await page.fill('[name=labels]', 'team:north, ticket:4:2')
      await page.click('#new-run >> text=Start')
      await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
      const { input, labels } = await fixture.call<Run>('GET', `/v1/runs/${page.url().split('/').at(-1)}`)
      expect(input).toEqual({ city: 'Oslo', guests: 3, size: 'small', late: false })
      expect(labels).toEqual({ team: 'north', ticket: '4:2' })
      await page.goto(at('runs?new=1&agentName=booker'))
      await page.selectOption('#new-run select', 'clerk')
      await page.waitForSelector('[data-input=message] textarea:visible')
    })

    it('finds runs by a word and by a label, and keeps what was asked for as a view', async () => {
      const { id } = await start('clerk', 'hello', { customer: 'acme-42' })
      await page.goto(at('runs'))
      await page.keyboard.press('/')
      await page.keyboard.type('acme-42')
      await page.keyboard.press('Enter')
      await page.waitForURL(url => url.search.includes('q=acme-42'))
      expect(await page.getAttribute('table.runs tbody tr', 'data-run')).toBe(id)
      expect(await page.textContent('#run-count')).toBe('1')
      await page.click('a.label')
      await page.waitForURL(url => url.searchParams.get('label') === 'customer:acme-42')
      expect(await page.locator('table.runs tbody tr').count()).toBe(1)
      await page.fill('#views input', 'Acme')
      await page.click('text=Save view')
      await page.waitForSelector('.view [aria-current]:text("Acme")')
      await page.goto(at('runs'))
      await shot('runs-views')
      await page.click('.view a')
      await page.waitForURL(url => url.searchParams.get('label') === 'customer:acme-42')
      // Another tab keeps one more meanwhile, which this one has not drawn.
      await page.evaluate(() => {
        const key = Object.keys(localStorage).find(one => one.startsWith('waybill-views '))!
        const views = JSON.parse(localStorage.getItem(key)!) as object[]
        localStorage.setItem(key, JSON.stringify([...views, { name: 'Other', query: 'q=other' }]))
      })
      await page.click('[aria-label="Forget the view Acme"]')
      expect(await page.locator('.view a').allTextContents()).toEqual(['Other'])
      await page.click('[aria-label="Forget the view Other"]')
      expect(await page.locator('.view').count()).toBe(0)
      await page.goto(at('runs?q=nothinglikethis'))
      await page.waitForSelector('text=No run matches.')
      // By words that no page has: the index knows the label.
      await page.keyboard.press('Control+k')
      await page.keyboard.type('acme-42')
      await page.waitForSelector('#palette-0')
      await page.keyboard.press('Enter')
      await page.waitForURL(at(`runs/${id}`))
    })

    it('begins an agent with its use, edits what was set with help, and shows versions side by side', async () => {
      await page.goto(at('agents/clerk'))
      await shot('agent')
      await page.click('[role=tab]:text("Manifest")')
      expect(JSON.parse(await page.inputValue('#manifest'))).toEqual({
        model: 'demo/echo',
        tools: ['ask_human', 'wait'],
        approvals: { tools: ['wait'] },
      })
      const prompt = `You are a clerk. ${'Every word of this long line can be read. '.repeat(6)}`.trim()
      await page.fill('[data-member=systemPrompt]', prompt)
      expect(JSON.parse(await page.inputValue('#manifest')).systemPrompt).toBe(prompt)
      await page.focus('#manifest')
      await page.keyboard.press('Control+Home')
      await page.keyboard.press('ArrowRight')
      await page.keyboard.type('\n  "outputR')
      await page.waitForSelector('#completion-0:has-text("outputRepairs")')
      await page.keyboard.press('Enter')
      await page.keyboard.type('1,')
      await page.waitForSelector('#manifest-said >> text=valid')
      await page.click('button.main:text("Publish")')
      await page.waitForSelector('text=Published.')
      await page.reload()
      expect(new URL(page.url()).searchParams.get('tab')).toBe('manifest')
      await page.click('[role=tab]:text("Versions")')
      await page.click('#agent-versions >> text=Compare')
      await page.waitForSelector('table.beside')
      await shot('agent-diff')
      const cell = page.locator('td.added:has-text("You are a clerk")')
      const [inner, outer] = await cell.evaluate(one => [one.scrollWidth, one.clientWidth])
      expect(inner).toBeLessThanOrEqual(outer!)
      await page.click('.title-row >> text=Chat')
      await page.waitForURL(/\/sessions\/[0-9a-f-]{36}$/)
    })

    it('gives a command on its pages that does what it says', async () => {
      await page.goto(at('agents/clerk'))
      const command = await page.getAttribute('[aria-label="Copy curl: Start a run"]', 'data-copy')
      const env = { PATH: process.env.PATH ?? '', PLATFORM_URL: fixture.origin, PLATFORM_API_KEY: key }
      const { stdout } = await promisify(execFile)('sh', ['-c', command ?? ''], { env })
      expect(JSON.parse(stdout)).toMatchObject({ agentName: 'clerk', status: 'queued' })
      for (const path of ['', 'runs', 'approvals', 'sessions', 'schedules', 'connectors', 'nodes', 'settings']) {
        await page.goto(at(path))
        expect(await page.locator('.snippets').count(), path).toBe(1)
      }
      const pending = await fixture.call<Approval[]>('GET', '/v1/approvals?status=pending')
      expect(pending).toEqual([])
      expect(seen.complaints().filter(words => !words.includes('400'))).toEqual([])
    })
  })
}

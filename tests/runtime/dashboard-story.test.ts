import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { violations } from '../browser/axe.ts'
import { hasChromium } from '../browser/chromium.ts'
import { openPlaywright } from '../browser/playwright.ts'
import { confirmed, dashboardFixture, OWNER } from './dashboard-fixture.ts'
import { picture } from './picture.ts'

const MANIFEST = {
  systemPrompt: 'You are a clerk.',
  model: 'demo/echo',
  tools: ['wait', 'ask_human'],
  approvals: { tools: ['wait'] },
  inputSchema: { type: 'object', properties: { prompt: { type: 'string', title: 'Order' } }, required: ['prompt'] },
}
const ORDER = '/call wait {"seconds":0.01}'

if (hasChromium()) {
  describe.each([
    { width: 1440, height: 900 },
    { width: 1920, height: 1080 },
    { width: 375, height: 800 },
  ])('the story of a first day, $width px wide', ({ width, height }) => {
    it('goes from the first start to a run that was approved, compared, retried and verified, in light and dark', async () => {
      const fixture = await dashboardFixture()
      const seen = await openPlaywright()
      const { page } = seen
      page.setDefaultTimeout(10_000)
      await page.setViewportSize({ width, height })
      const at = (path: string) => `${fixture.origin}/${path}`
      const wrong: string[] = []
      let steps = 0

      /** One step, after which the page is as it should be in both schemes of colours. */
      async function step(name: string, act: () => Promise<unknown>): Promise<void> {
        await act().catch(async (error: unknown) => {
          const shown = await page.evaluate(() => {
            const fields = [...document.querySelectorAll('textarea')].map(one => `${one.name}: ${one.value}`)
            return [location.pathname, document.body.innerText, ...fields].join('\n')
          })
          throw new Error(`step ${steps + 1}, ${name}: ${error}\nThe page showed:\n${shown}`)
        })
        steps++
        await page.waitForLoadState()
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        if (over > 0) wrong.push(`${name}: ${over} px too wide`)
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined
          wrong.push(...(await violations(page, rules)).map(one => `${name} in ${colorScheme}: ${one}`))
        }
        await page.emulateMedia({ colorScheme: 'light' })
      }

      async function startByForm(): Promise<string> {
        await page.goto(at('runs?new=1&agentName=clerk'))
        await page.fill('#input-fields [name="input.prompt"]', ORDER)
        await page.click('#new-run >> text=Start')
        await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
        return page.url().split('/').at(-1)!
      }

      try {
        await step('the setup link', () => page.goto(fixture.service.setupLink!))
        await step('an owner, whose key is shown once', async () => {
          await page.fill('[name=name]', OWNER.name)
          await page.fill('[name=email]', OWNER.email)
          await page.fill('[name=password]', OWNER.password)
          await page.click('text=Create the owner')
          await page.waitForSelector('#first-key code')
          fixture.use((await page.textContent('#first-key code')) ?? '')
        })
        await step('an overview with the one next step', async () => {
          await page.goto(at(''))
          await page.waitForSelector('#demo-run')
        })
        await step('no agent yet', () => page.goto(at('agents')))
        await step('a manifest that is refused by its line', async () => {
          await page.fill('[name=name]', 'clerk')
          await page.fill('#manifest', '{ "modell": "demo/echo" }')
          await page.waitForSelector('#manifest-said >> text=modell')
        })
        await step('the agent is published, from YAML that was pasted', async () => {
          await page.fill('#manifest', stringify(MANIFEST))
          await page.click('#manifest-said >> text=Write it as JSON')
          expect(JSON.parse(await page.inputValue('#manifest'))).toEqual(MANIFEST)
          await page.waitForSelector('#manifest-said >> text=valid')
          await page.click('text=Make the agent')
          await page.waitForURL(at('agents/clerk'))
        })
        await step('the editor offers what can stand there', async () => {
          await page.click('[role=tab]:text("Manifest")')
          await page.focus('#manifest')
          await page.keyboard.press('Control+Home')
          await page.keyboard.press('ArrowRight')
          await page.keyboard.press('Control+Space')
          await page.waitForSelector('#completion-0')
        })
        await step('a form for a run', async () => {
          await page.goto(at('runs?new=1&agentName=clerk'))
          await page.waitForSelector('#input-fields [name="input.prompt"]')
        })
        let first = ''
        await step('the run waits for a person', async () => {
          first = await startByForm()
          await page.waitForSelector('#run-approvals [data-card]')
        })
        await step('the overview shows what waits', async () => {
          await page.goto(at(''))
          await page.waitForSelector('.brief[data-card]')
        })
        await step('it is approved there', async () => {
          await page.click('.brief >> text=Approve')
          await page.waitForSelector('.brief', { state: 'detached' })
        })
        await step('the run has succeeded', async () => {
          await page.goto(at(`runs/${first}`))
          await page.waitForSelector('#run-head .badge:text("succeeded")')
          await page.waitForSelector('#timeline button.line')
        })
        await step('the conversation behind a step', async () => {
          await page.click('#timeline button.line >> nth=0')
          await page.waitForSelector('#step .message.answer')
        })
        await step('the journal', () => page.click('[role=tab]:text("Journal")'))
        await step('the receipt', () => page.click('[role=tab]:text("Receipt")'))
        await step('it verifies in this browser', async () => {
          await page.click('text=Verify in this browser')
          await page.waitForSelector('text=✓ Valid.')
        })
        let second = ''
        await step('another run, and one by a program with a label', async () => {
          second = await startByForm()
          await fixture.call('POST', '/v1/runs', {
            agentName: 'clerk',
            input: { prompt: ORDER },
            labels: { team: 'north' },
          })
          await page.waitForSelector('#run-approvals [data-card]')
        })
        await step('both are chosen among the approvals', async () => {
          await page.goto(at('approvals'))
          await page.waitForSelector('#pending [data-choose] >> nth=1')
          if (width === 1440) await picture(page, 'dashboard-approvals')
          for (const nth of [0, 1]) await page.locator('#pending [data-choose]').nth(nth).check()
        })
        await step('and approved after one question', async () => {
          await page.click('#bulk-approve')
          await confirmed(page)
          await page.waitForSelector('#toast:has-text("2 decisions approved.")')
          await page.waitForSelector('#pending:has-text("Nothing waits for you.")')
        })
        await step('the history of decisions', () => page.click('.segments >> text=approved'))
        await step('the runs', async () => {
          await page.goto(at('runs'))
          await page.waitForSelector('table.runs tbody tr >> nth=2')
        })
        await step('one is found by its label', async () => {
          await page.click('a.label')
          await page.waitForURL(url => url.searchParams.get('label') === 'team:north')
        })
        await step('the search is kept as a view', async () => {
          await page.fill('#views input', 'North')
          await page.click('text=Save view')
          await page.waitForSelector('.view')
        })
        await step('two are held against each other', async () => {
          await page.goto(at('runs'))
          for (const id of [first, second]) await page.check(`[data-choose="${id}"]`)
          await page.click('#bulk-compare')
          await page.waitForURL(url => url.pathname === '/compare')
          if (width === 1440) await picture(page, 'dashboard-compare')
        })
        await step('a second version', async () => {
          await page.goto(at('agents/clerk?tab=manifest'))
          await page.fill('[data-member=systemPrompt]', 'You are a careful clerk.')
          await page.waitForSelector('#manifest-said >> text=valid')
          await page.click('button.main:text("Publish")')
          await page.waitForSelector('text=Published.')
        })
        await step('is compared with the first side by side', async () => {
          await page.click('[role=tab]:text("Versions")')
          await page.click('#agent-versions >> text=Compare')
          await page.waitForSelector('td.added')
          if (width === 1440) await picture(page, 'dashboard-agent')
        })
        let failed = ''
        await step('a run is rejected, and fails', async () => {
          failed = await startByForm()
          await page.click('#run-approvals >> text=Reject')
          await confirmed(page)
          await page.waitForSelector('#run-head .badge:text("failed")')
        })
        await step('it is retried', async () => {
          await page.click('text=Retry from the failed step')
          await page.waitForURL(url => /\/runs\//.test(url.pathname) && !url.pathname.endsWith(failed))
          await page.waitForSelector('#run-approvals [data-card]')
        })
        await step('approved, and it succeeds', async () => {
          await page.click('#run-approvals button.main')
          await page.waitForSelector('#run-head .badge:text("succeeded")')
        })
        await step('a question is answered in the chat', async () => {
          await page.goto(at('agents/clerk'))
          await page.click('.title-row >> text=Chat')
          await page.waitForURL(/\/sessions\//)
          await page.fill('#say textarea', '/call ask_human {"prompt":"Which one?"}')
          await page.keyboard.press('Enter')
          await page.fill('#turn [name=comment]', 'The second')
          await page.click('#turn button.main')
          await page.waitForSelector('#talk li.assistant:has-text("The second")')
        })
        await step('the palette', async () => {
          await page.keyboard.press('Control+k')
          await page.keyboard.type('appr')
          await page.waitForSelector('#palette-0')
        })
        await step('the keys', async () => {
          await page.goto(at(''))
          await page.waitForSelector('text=Success rate')
          if (width === 1440) await picture(page, 'dashboard-overview')
          await page.keyboard.press('?')
          await page.waitForSelector('dialog[open] >> text=Single keys do nothing')
        })
        await step('an address with nothing behind it', () => page.goto(at('nowhere')))
        await step('the reference of the API', () => page.goto(at('docs')))
        const runs = await fixture.call<Run[]>('GET', '/v1/runs?fields=summary')
        expect(runs.map(({ status }) => status).toSorted()).toEqual([
          'failed',
          'succeeded',
          'succeeded',
          'succeeded',
          'succeeded',
        ])
        expect(steps).toBeGreaterThanOrEqual(30)
        expect(wrong).toEqual([])
        expect(seen.complaints().filter(words => !words.includes('404'))).toEqual([])
      } finally {
        await seen.close()
        await fixture.close()
      }
    }, 180_000)
  })
}

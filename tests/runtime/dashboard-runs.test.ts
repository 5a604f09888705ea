import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { hasChromium } from '../browser/chromium.ts'
import type { Seen } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { confirmed, type DashboardFixture, dashboardFixture, openAsOwner } from './dashboard-fixture.ts'
import { manyRuns } from './many-runs.ts'

/** An answer with figures is given for fifty times as long as it took. */
const OF_FIGURES = { timeout: 60_000 }

if (hasChromium()) {
  describe('the overview and the list of runs in a browser', () => {
    let fixture: DashboardFixture
    let seen: Seen
    let page: Page
    const at = (path: string) => `${fixture.origin}/${path}`
    const start = (agentName: string, prompt: string) =>
      fixture.call<Run>('POST', '/v1/runs', { agentName, input: { prompt } })
    const statusOf = async (id: string) => (await fixture.call<Run>('GET', `/v1/runs/${id}?fields=summary`)).status

    beforeAll(async () => {
      fixture = await dashboardFixture()
      await fixture.setUp()
      seen = await openAsOwner(fixture, { timezoneId: 'Asia/Tokyo' })
      page = seen.page
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    it('offers the demo as the one next step where there is nothing, and leads to its run', async () => {
      await page.goto(at(''))
      await page.click('#demo-run')
      await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
      await page.waitForSelector('#run-head .badge:text("succeeded")')
    })

    it('says how runs went, with the numbers of each chart as a table, and leads from a cause to its runs', {
      timeout: 90_000,
    }, async () => {
      await fixture.call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo', tools: ['wait'] } })
      await fixture.call('POST', '/v1/agents', { name: 'broken', manifest: { model: 'openai-compatible:none/x' } })
      for (let i = 0; i < 3; i++) await start('broken', `It cannot work ${i}`)
      const { id } = await start('echo', 'hello')
      await eventually(async () => expect(await statusOf(id)).toBe('succeeded'))
      await eventually(async () => {
        await page.goto(at('?range=1h'))
        expect(await page.textContent('.tile >> nth=1')).toContain('5')
      }, OF_FIGURES)
      expect(await page.getAttribute('.segments [aria-current]', 'href')).toBe('./?range=1h')
      expect(await page.textContent('.tile >> nth=0')).toContain('40.0')
      const runs = page.locator('section:has(h2:text-is("Runs"))')
      await runs.locator('summary').click()
      const cells = await runs.locator('tbody tr >> nth=-1').locator('td').allTextContents()
      expect(cells.slice(1)).toEqual(['2', '3', '0'])
      // As the reader's clock has it.
      expect(cells[0]).toMatch(/\d\d:\d\d/)
      await page.click('text=model_unconfigured')
      await page.waitForURL(url => url.search.includes('errorCode=model_unconfigured'))
      expect(await page.locator('table.runs tbody tr').count()).toBe(3)
      expect(await page.textContent('#run-count')).toBe('3')
      expect(await page.textContent('table.runs')).toContain('It cannot work 2')
      expect(await page.textContent('table.runs')).toContain('no configured provider serves')
      const time = page.locator('table.runs time >> nth=0')
      expect(await time.textContent()).toMatch(/now|ago/)
      expect(await time.getAttribute('title')).toMatch(/GMT\+9|JST/)
    })

    it('starts a run from a message or from JSON, and the row of it leads to its page', async () => {
      await page.goto(at('runs'))
      await page.click('text=New run')
      await page.selectOption('#new-run select', 'echo')
      await page.fill('#new-run [name="input.prompt"]', 'Tell me\nabout rows')
      await page.click('#new-run >> text=Start')
      await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
      expect(await page.textContent('#run-result')).toContain('about rows')
      await page.goto(at('runs?new=1'))
      await page.selectOption('#new-run select', 'echo')
      await page.check('#input-as-json')
      await page.fill('#new-run [name=input]', '{ "prompt": "as JSON" }')
      await page.click('#new-run >> text=Start')
      await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
      await page.goto(at('runs'))
      const row = page.locator('tr:has-text("Tell me about rows")')
      // Far from the words of the link.
      await row.locator('td >> nth=-1').click({ force: true })
      await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
    })

    it('ends several runs, and starts several anew, after one question', async () => {
      const open = await Promise.all([1, 2, 3].map(i => start('echo', `/call wait {"seconds":${600 + i}}`)))
      await page.goto(at('runs?agentName=echo'))
      for (const { id } of open) await page.check(`[data-choose="${id}"]`)
      expect(await page.textContent('#bulk-count')).toBe('3 runs chosen')
      expect(await page.isDisabled('#bulk-retry')).toBe(true)
      await page.click('#bulk-cancel')
      await page.click('dialog.ask >> text=Rather not')
      expect(await statusOf(open[0]!.id)).toBe('running')
      await page.click('#bulk-cancel')
      await confirmed(page)
      await page.waitForSelector('#toast:has-text("3 runs cancelled.")')
      for (const { id } of open) expect(await statusOf(id)).toBe('cancelled')
      await page.waitForSelector(`[data-run="${open[0]!.id}"] .badge:text("cancelled")`)
      for (const { id } of open.slice(0, 2)) await page.check(`[data-choose="${id}"]`)
      await page.click('#bulk-retry')
      await confirmed(page)
      await page.waitForSelector('#toast:has-text("2 runs started anew.")')
      const forks = await fixture.call<Run[]>('GET', '/v1/runs?trigger=fork&fields=summary')
      expect(forks.map(({ trigger }) => trigger.ref).toSorted()).toEqual(
        open
          .slice(0, 2)
          .map(({ id }) => id)
          .toSorted(),
      )
      for (const { id } of forks) await fixture.call('POST', `/v1/runs/${id}/cancel`, {})
    })

    it('has sub-runs below their parent, opened in place', async () => {
      await fixture.call('POST', '/v1/agents', {
        name: 'planner',
        manifest: { model: 'demo/echo', subAgents: [{ name: 'echo' }] },
      })
      const { id } = await start('planner', '/call agent__echo {"prompt":"one"}\n/call agent__echo {"prompt":"two"}')
      await eventually(async () => expect(await statusOf(id)).toBe('succeeded'))
      await page.goto(at('runs'))
      expect(await page.locator('table.runs small:text-is("subagent")').count()).toBe(0)
      await page.click(`[data-sub-runs="${id}"]`)
      await page.waitForSelector(`tr[data-below="${id}"]`)
      expect(await page.locator(`tr[data-below="${id}"]`).count()).toBe(2)
      expect(await page.getAttribute(`[data-sub-runs="${id}"]`, 'aria-expanded')).toBe('true')
      // A change of the list leaves them open.
      const other = await start('echo', 'another')
      await page.waitForSelector(`[data-run="${other.id}"]`)
      await page.waitForSelector(`tr[data-below="${id}"] >> nth=1`)
      await page.click(`[data-sub-runs="${id}"]`)
      expect(await page.locator(`tr[data-below="${id}"]`).count()).toBe(0)
    })

    it('holds two runs against each other, step by step', async () => {
      const first = await start('echo', '/call wait {"seconds":0.01}')
      const second = await start('echo', '/call wait {"seconds":0.02}\n/call wait {"seconds":0.01}')
      for (const { id } of [first, second]) await eventually(async () => expect(await statusOf(id)).toBe('succeeded'))
      await page.goto(at('runs?agentName=echo'))
      for (const { id } of [first, second]) await page.check(`[data-choose="${id}"]`)
      await page.click('#bulk-compare')
      await page.waitForURL(url => url.search === `?a=${first.id}&b=${second.id}`)
      const steps = page.locator('section:has(h2:text-is("Steps")) tbody tr')
      expect((await steps.locator('td:first-child').allTextContents()).map(words => words.split(' ')[0])).toEqual([
        'model-1',
        'timer-1-1',
        'model-2',
        'timer-2-1',
        'model-3',
      ])
      expect(await steps.nth(3).textContent()).toContain('only in one')
      expect(await page.textContent('section:has(h2:text-is("Input")) .diff')).toContain('0.02')
      await steps.nth(0).locator('a >> nth=1').click()
      await page.waitForURL(url => url.pathname === `/runs/${second.id}` && url.hash === '#step=model-1')
    })

    it('tries a step again with another prompt, beside the answer that was given', async () => {
      const { id } = await start('echo', 'Say it')
      await eventually(async () => expect(await statusOf(id)).toBe('succeeded'))
      await page.goto(at(`runs/${id}#step=model-1`))
      await page.click('#step >> text=Try again with another model or prompt')
      await page.fill('#step .try textarea', 'Be another.')
      await page.click('#step >> text=Ask the model again')
      await page.waitForURL(url => url.pathname === '/compare')
      await page.waitForSelector('text=is a trial of')
      const [trial] = await fixture.call<Run[]>('GET', '/v1/runs?trigger=fork&limit=1')
      expect(trial).toMatchObject({ forkedFrom: { runId: id, stepId: 'model-1', onlyStep: true } })
      await page.waitForSelector('text=the receipt')
      expect(await fixture.call('GET', `/v1/agents/echo/versions/${trial!.agentVersionId}`)).toMatchObject({
        manifest: { systemPrompt: 'Be another.' },
        current: false,
        note: `tried at model-1 of run ${id}`,
      })
    })

    it('leads from the failure of a run to the step that failed', async () => {
      await fixture.call('POST', '/v1/agents', {
        name: 'short',
        manifest: {
          model: 'demo/echo',
          tools: ['wait'],
          limits: { maxTurns: 1 },
          outputSchema: { type: 'object' },
          outputRepairs: 0,
        },
      })
      const { id: failed } = await start('short', 'no JSON')
      await eventually(async () => expect(await statusOf(failed)).toBe('failed'))
      await page.goto(at(`runs/${failed}`))
      await page.click('#run-head .notice.bad a')
      await page.waitForSelector('#step >> text=Fork from here')
      expect(page.url()).toMatch(/#step=model-1$/)
      expect(await page.textContent('#step h2')).toContain('model-1')
    })

    it('sorts by cost and duration, with what is asked for in the address', async () => {
      await page.goto(at('runs?agentName=echo&since=1h'))
      await page.click('th >> text=Duration')
      await page.waitForURL(url => url.search.includes('sort=durationMs'))
      expect(page.url()).toContain('agentName=echo')
      expect(page.url()).toContain('since=1h')
      expect(await page.getAttribute('th[aria-sort]', 'aria-sort')).toBe('descending')
      expect(await page.textContent('th[aria-sort]')).toContain('Duration')
    })

    it('goes on with the list as one scrolls, each run once and in its place, also when others come meanwhile', async () => {
      await manyRuns(fixture, 130)
      const listed = async () => {
        const all = await fixture.call<Run[]>('GET', '/v1/runs?subRuns=folded&fields=summary&limit=200')
        return all.map(({ id }) => id)
      }
      const shown = () =>
        page.locator('table.runs > tbody > tr').evaluateAll(rows => rows.map(row => (row as HTMLElement).dataset.run))
      const toEnd = async () => {
        await eventually(
          async () => {
            await page.evaluate(() => scrollTo(0, document.body.scrollHeight))
            expect(await page.locator('a[rel=next]').count()).toBe(0)
          },
          { timeout: 10_000 },
        )
      }
      await page.goto(at('runs'))
      expect(await shown()).toHaveLength(50)
      await toEnd()
      const before = await listed()
      expect(before.length).toBeGreaterThan(130)
      expect(await shown()).toEqual(before)
      const { id } = await start('echo', 'while one scrolls')
      await page.waitForSelector(`[data-run="${id}"] .badge:text("succeeded")`, { state: 'attached' })
      expect(await shown()).toEqual([id, ...before])
      // The keyboard stays where it is while the list is drawn anew.
      await page.focus(`[data-run="${before[1]}"] a.row-link`)
      const another = await start('echo', 'and another')
      await page.waitForSelector(`[data-run="${another.id}"] .badge:text("succeeded")`, { state: 'attached' })
      await page.keyboard.press('j')
      expect(await page.evaluate(() => document.activeElement?.closest('tr')?.dataset.run)).toBe(before[2])
      expect(seen.complaints()).toEqual([])
    })
  })
}

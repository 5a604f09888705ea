import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { hasChromium } from '../browser/chromium.ts'
import type { Seen } from '../browser/playwright.ts'
import { expectWithin } from '../crowding.ts'
import { type DashboardFixture, dashboardFixture, openAsOwner } from './dashboard-fixture.ts'
import { longRun } from './many-runs.ts'

if (hasChromium()) {
  describe('the dashboard with a long run', () => {
    let fixture: DashboardFixture
    let seen: Seen
    let page: Page
    let short: string
    const at = (path: string) => `${fixture.origin}/${path}`

    beforeAll(async () => {
      fixture = await dashboardFixture()
      await fixture.setUp()
      await fixture.call('POST', '/v1/agents', {
        name: 'echo',
        manifest: { systemPrompt: 'Echo.', model: 'demo/echo' },
      })
      const run = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'echo', input: { prompt: 'hello' } })
      short = run.id
      await fixture.call('GET', `/v1/runs/${short}/events`)
      seen = await openAsOwner(fixture)
      page = seen.page
    })
    afterAll(async () => {
      await seen?.close()
      await fixture?.close()
    })

    it('opens a run of 10,000 events within a second, scrolls it, and moves nothing while it loads', async () => {
      const id = await longRun(fixture, short, 5000)
      await page.addInitScript(() => {
        const shifts = { sum: 0 }
        Object.assign(globalThis, { shifts })
        new PerformanceObserver(list => {
          for (const one of list.getEntries()) shifts.sum += (one as PerformanceEntry & { value: number }).value
        }).observe({ type: 'layout-shift', buffered: true })
      })
      const opened = await best(3, async () => {
        await page.goto(at(`runs/${id}`))
        await page.waitForSelector('#journal-count:has-text("10,000")', { state: 'attached' })
        return page.evaluate(() => performance.getEntriesByName('run-drawn')[0]?.startTime ?? Number.NaN)
      })
      expect(await page.evaluate(() => document.querySelectorAll('.line').length)).toBeLessThan(300)
      const steps = await scrolled(page, '#timeline')
      await page.click('[role=tab]:text("Journal")')
      const journal = await scrolled(page, '#journal')
      await page.waitForSelector('#journal button.line:has-text("10000")')
      const painted = await best(3, async () => {
        await page.goto(at(''))
        await page.waitForSelector('text=● live')
        return page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN)
      })
      const moved = await page.evaluate(() => (globalThis as unknown as { shifts: { sum: number } }).shifts.sum)
      const figures = { opened, painted, moved, journal, steps }
      process.stderr.write(`dashboard, ms: ${JSON.stringify(figures)}\n`)
      expectWithin(opened, 1000)
      expectWithin(painted, 300)
      expect(moved).toBeLessThan(0.01)
      for (const { rows, medianMs, longestMs } of [journal, steps]) {
        expect(rows).toBeLessThan(100)
        expectWithin(medianMs, 100)
        expectWithin(longestMs, LONGEST_MS)
      }
    })
  })
}

/** The best of some tries: other programs run on this machine, too. */
async function best(times: number, measure: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < times; i++) least = Math.min(least, await measure())
  return least
}

interface Scrolled {
  frames: number
  /** Frames of a sixtieth of a second that should have been there, and were not. */
  dropped: number
  medianMs: number
  longestMs: number
  /** Most rows that existed at a time. */
  rows: number
}

/** Longer is a scroll that is seen to stand still. */
const LONGEST_MS = 200

/** Scrolls a list from one end to the other, a sixtieth of it each frame; again where another program took the processor meanwhile. */
async function scrolled(page: Page, list: string): Promise<Scrolled> {
  const pass = () =>
    page.evaluate(async css => {
      const box = document.querySelector(css)!
      box.scrollTop = 0
      const next = () => new Promise<number>(requestAnimationFrame)
      await next()
      const took: number[] = []
      let rows = 0
      for (let step = 1, before = await next(); step <= 60; step++) {
        box.scrollTop = (box.scrollHeight * step) / 60
        const now = await next()
        took.push(now - before)
        before = now
        rows = Math.max(rows, box.querySelectorAll('button.line').length)
      }
      const sorted = took.toSorted((a, b) => a - b)
      const dropped = took.reduce((sum, ms) => sum + Math.max(0, Math.round((ms * 60) / 1000) - 1), 0)
      const round = (ms = 0) => Math.round(ms * 10) / 10
      return { frames: took.length, dropped, medianMs: round(sorted[30]), longestMs: round(sorted.at(-1)), rows }
    }, list)
  let last = await pass()
  for (let more = 2; more > 0 && last.longestMs >= LONGEST_MS; more--) last = await pass()
  return last
}

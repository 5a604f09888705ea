import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { PersonLink } from '../../shared/wire/runtime/user.ts'
import { hasChromium } from '../browser/chromium.ts'
import { openPlaywright, type Seen } from '../browser/playwright.ts'
import { eventually } from '../eventually.ts'
import { programEnv } from '../program-env.ts'
import { chatFrames } from '../upstream/answers.ts'
import { completionFrames, completionOf } from '../upstream/frames.ts'
import { answer, type ScriptedUpstream, scriptedUpstream, silence, stream } from '../upstream/scripted.ts'
import { KEY } from './api.ts'
import { logIn, OWNER } from './dashboard-fixture.ts'
import { picture } from './picture.ts'

if (hasChromium()) {
  describe('the page of a run whose process is killed', () => {
    let folder: string
    let origin: string
    let remote: ScriptedUpstream
    let seen: Seen
    let child: ChildProcess

    async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const got = await fetch(origin + path, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      if (!got.ok) throw new Error(`${method} ${path}: ${got.status} ${await got.text()}`)
      return (await got.json()) as T
    }

    async function start(): Promise<void> {
      child = spawn(process.execPath, ['runtime/cli/main.ts', 'serve'], {
        stdio: 'ignore',
        env: {
          ...programEnv,
          PLATFORM_BIND: new URL(origin).host,
          PLATFORM_DATA_DIR: folder,
          PLATFORM_BOOTSTRAP_KEY: KEY,
          PLATFORM_OUTBOUND_ALLOW: new URL(remote.origin).host,
          PLATFORM_RECOVERY_INTERVAL: '500ms',
          PLATFORM_LEASE_TTL: '2s',
          PLATFORM_PROVIDER_OPENAI_API_KEY: 'sk-test',
          PLATFORM_PROVIDER_OPENAI_BASE_URL: `${remote.origin}/v1`,
        },
      })
      await eventually(async () => expect((await fetch(`${origin}/readyz`)).status).toBe(200), {
        timeout: 20_000,
        interval: 100,
      })
    }

    async function kill(): Promise<void> {
      const gone = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGKILL')
      await gone
    }

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'waybill-dashboard-run-'))
      const server = createServer()
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      origin = `http://127.0.0.1:${(server.address() as { port: number }).port}`
      await new Promise(resolve => server.close(resolve))
      remote = await scriptedUpstream()
      await start()
      seen = await openPlaywright()
      seen.page.setDefaultTimeout(15_000)
    }, 40_000)
    afterAll(async () => {
      if (child.exitCode === null && child.signalCode === null) await kill()
      await seen?.close()
      await remote?.close()
      await rm(folder, { recursive: true, force: true })
    })

    it('shows parallel calls side by side, attempts, waits, and what the recovery used again', async () => {
      const { page } = seen
      await page.setViewportSize({ width: 1440, height: 1100 })
      const calls = (...seconds: number[]) =>
        stream(
          completionFrames(
            completionOf([
              {
                tool_calls: seconds.map((each, i) => ({
                  id: `call_${i}`,
                  type: 'function',
                  function: { name: 'wait', arguments: JSON.stringify({ seconds: each }) },
                })),
              },
            ]),
          ),
        )
      remote.queue(calls(1, 2, 1), answer(503, '{"error":{"message":"overloaded"}}'), silence)
      remote.always(
        stream(chatFrames(['It arrived **three days late**. The carrier has been asked.'], { usage: true })),
      )
      const { linkToken: token } = await call<PersonLink>('POST', '/v1/users', { name: 'Ada', email: OWNER.email })
      const password = { token, password: OWNER.password }
      await call('POST', '/auth/invitation', password)
      const systemPrompt =
        'You help the support desk. Look orders up, wait for the carrier, and never promise a refund.'
      await call('POST', '/v1/agents', {
        name: 'support',
        manifest: { systemPrompt, model: 'openai/gpt-4.1-mini', tools: ['wait'] },
      })
      const prompt = 'Order 1042: was it **late**, and what do we owe the customer?'
      const { id } = await call<Run>('POST', '/v1/runs', { agentName: 'support', input: { prompt } })
      await page.goto(`${origin}/runs/${id}`)
      await logIn(page)

      // While it goes on: three at a time in three lanes that begin at one place.
      await eventually(() => expect(remote.seen.length).toBe(3))
      await page.waitForSelector('#timeline button:has-text("attempt 2")')
      const bars = (stepId: string) =>
        page.evaluate(
          step =>
            [...document.querySelectorAll<SVGRectElement>(`#lanes rect[data-step="${step}"]`)].map(one => ({
              className: one.getAttribute('class') ?? '',
              x: one.getBoundingClientRect().x,
              y: Number(one.getAttribute('y')),
              width: one.getBoundingClientRect().width,
            })),
          stepId,
        )
      const parallel = await Promise.all(['timer-1-1', 'timer-1-2', 'timer-1-3'].map(bars))
      expect(new Set(parallel.map(([one]) => one!.y)).size).toBe(3)
      const [first] = parallel[0]!
      for (const [one] of parallel) expect(Math.abs(one!.x - first!.x)).toBeLessThan(6)
      expect(parallel[1]![0]!.width).toBeGreaterThan(first!.width * 1.5)
      // The second turn failed once, waited, and went on, all in one lane.
      const turn = await bars('model-2')
      expect(turn.map(({ className }) => className)).toEqual(['c-failed', 'c-delay', 'c-model'])
      expect(new Set(turn.map(({ y }) => y)).size).toBe(1)
      expect(await page.textContent('#timeline button:has-text("model-2")')).toContain('attempt 2')
      expect(await page.locator('.replayed[data-step]').count()).toBe(0)

      await kill()
      await start()
      await page.waitForSelector('#run-head .badge:text("succeeded")', { timeout: 30_000 })
      await eventually(async () => {
        for (const step of ['model-1', 'timer-1-1', 'timer-1-2']) {
          expect(await page.locator(`#lanes .replayed[data-step="${step}"]`).count(), step).toBeGreaterThan(0)
          expect(await page.textContent(`#timeline button:has-text("${step} ")`), step).toContain('replayed')
        }
        // What was cut off was done again, and is no replay.
        expect(await page.textContent('#timeline button:has-text("model-2 ")')).not.toContain('replayed')
      })
      await page.click('#lanes rect[data-step="timer-1-2"]')
      await page.waitForSelector('#step >> text=timer-1-2')
      const folderOfShots = process.env.WAYBILL_DASHBOARD_SHOTS
      if (folderOfShots) await page.screenshot({ path: join(folderOfShots, 'run-recovered.png'), fullPage: true })
      await page.click('#timeline button:has-text("model-2 ")')
      await page.waitForSelector('#step .message.answer')
      await page.evaluate(() => scrollTo(0, 0))
      await picture(page, 'dashboard-run', 160_000)
      // The same without a script, for reading.
      const plain = await (await fetch(`${origin}/runs/${id}`, { headers: { cookie: await cookieOf() } })).text()
      expect(plain).toMatch(/<rect data-step="timer-1-2" class="[\w-]+ replayed"/)
      await page.click('[role=tab]:text("Receipt")')
      await page.click('text=Verify in this browser')
      await page.waitForSelector('text=✓ Valid.')
    }, 90_000)

    const cookieOf = async () => (await seen.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
  })
}

import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../router/host/node.ts'
import { storeFolder, testWriter } from '../router/host/testing/store-folder.ts'
import type { Service } from '../shared/host/serve.ts'
import { toBase64 } from '../shared/sign/bytes.ts'
import type { Run } from '../shared/wire/runtime/run.ts'
import type { Session } from '../shared/wire/runtime/session.ts'
import { hasFirefox, openFirefox } from './browser/firefox.ts'
import { eventually } from './eventually.ts'
import { CONFIG, calls } from './router/panel-traces.ts'
import { type DashboardFixture, dashboardFixture, HOSTILE, OWNER } from './runtime/dashboard-fixture.ts'

/** The seed of `testSigner`: the router goes on with the key that signed the records. */
const SIGNING_KEY = toBase64(new Uint8Array(32).fill(7))
const PHONE = 375

if (hasFirefox()) {
  describe('the pages of both services in Firefox', () => {
    let fixture: DashboardFixture
    let store: Awaited<ReturnType<typeof storeFolder>>
    let router: Service
    let page: Awaited<ReturnType<typeof openFirefox>>

    beforeAll(async () => {
      fixture = await dashboardFixture()
      await fixture.setUp()
      const manifest = { systemPrompt: HOSTILE, model: 'demo/echo', tools: ['wait'], approvals: { tools: ['wait'] } }
      await fixture.call('POST', '/v1/agents', { name: 'clerk', manifest })
      store = await storeFolder()
      const writer = testWriter(await store.open())
      writer.start()
      for (const trace of calls()) writer.enqueue(trace)
      await writer.close()
      await writeFile(store.path('routing.toml'), CONFIG)
      const files = { ROUTER_DB: store.path('router.db'), ROUTER_CONFIG: store.path('routing.toml') }
      router = await serveRouter({
        ROUTER_BIND: '127.0.0.1:0',
        RUST_LOG: 'off',
        ROUTER_SIGNING_KEY: SIGNING_KEY,
        ...files,
      })
      page = await openFirefox()
    }, 60_000)
    afterAll(async () => {
      await page?.close()
      await router?.close()
      await fixture?.close()
      await store?.remove()
    })

    const at = (path: string) => page.goto(`${fixture.origin}/${path}`)
    const click = (selector: string) => page.run(`document.querySelector(${JSON.stringify(selector)}).click()`)
    const fill = (selector: string, words: string) =>
      page.run(`document.querySelector(${JSON.stringify(selector)}).value = ${JSON.stringify(words)}`)
    const sees = (selector: string, words: string) =>
      eventually(
        async () =>
          expect(await page.run(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`)).toContain(
            words,
          ),
        { timeout: 15_000, interval: 50 },
      )

    /** Nothing of a stranger's text has run, and no page is wider than the window, on a desk or a phone. */
    async function wrongWith(name: string): Promise<string[]> {
      const wrong: string[] = []
      for (const width of [1280, PHONE]) {
        await page.resize(width, 900)
        const over = await page.run<number>('document.documentElement.scrollWidth - innerWidth')
        if (over > 0) wrong.push(`${name} at ${width}: ${over} px too wide`)
      }
      await page.resize(1280, 900)
      if (await page.run('document.title === "taken" || document.querySelector("main img, main script") !== null'))
        wrong.push(`${name}: markup of a text`)
      return wrong
    }

    it('logs in, follows a run through an approval, verifies its receipt, and talks', async () => {
      await at('login')
      await fill('[name=email]', OWNER.email)
      await fill('[name=password]', OWNER.password)
      await click('main button')
      await sees('#live', '● live')
      const input = { prompt: `/call wait {"seconds":0.01}\n${HOSTILE}` }
      const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'clerk', input })
      await at(`runs/${id}`)
      await sees('#run-approvals', 'Approve')
      await click('#run-approvals button.main')
      await sees('#run-head .badge', 'succeeded')
      expect(await wrongWith('a run')).toEqual([])
      await click('[data-verify]')
      await sees('#panel-receipt', '✓ Valid.')
      const session = await fixture.call<Session>('POST', '/v1/sessions', { agentName: 'clerk', title: HOSTILE })
      await at(`sessions/${session.id}`)
      await sees('#live', '● live')
      await fill('#say textarea', HOSTILE)
      await click('#say button')
      await sees('#talk', `You said: ${HOSTILE}`)
      expect(await wrongWith('a session')).toEqual([])
      expect(page.complaints()).toEqual([])
    }, 60_000)

    it('shows every page of the dashboard, and has nothing to complain about', async () => {
      const wrong: string[] = []
      const pages = ['', 'runs', 'approvals', 'agents', 'agents/clerk?tab=manifest', 'sessions', 'schedules']
      for (const path of [...pages, 'connectors', 'nodes', 'settings', 'runs?new=1&agentName=clerk', 'docs']) {
        await at(path)
        if (path !== 'docs') await sees('#live', '● live')
        wrong.push(...(await wrongWith(path)))
      }
      expect(wrong).toEqual([])
      expect(page.complaints()).toEqual([])
    }, 60_000)

    it('shows the panel of the router, a trace and its chain', async () => {
      await page.goto(`${router.origin}/panel`)
      await sees('#calibration', 'n of m')
      await sees('#live', '● live')
      await click('#verify')
      await sees('#verified', 'whole')
      await click('#traces tbody button.link')
      await sees('#detail', 'Hash before it')
      expect(await wrongWith('the panel')).toEqual([])
      expect(page.complaints()).toEqual([])
    }, 60_000)
  })
}

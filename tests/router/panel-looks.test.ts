import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { storeFolder, testWriter } from '../../router/host/testing/store-folder.ts'
import type { Service } from '../../shared/host/serve.ts'
import { wrongIn } from '../browser/axe.ts'
import { hasChromium } from '../browser/chromium.ts'
import { openPlaywright, type Seen } from '../browser/playwright.ts'
import { CONFIG, calls } from './panel-traces.ts'

if (hasChromium()) {
  describe('each page of the panel in light and dark, wide and on a phone: no wider than the screen, and axe finds nothing', () => {
    let store: Awaited<ReturnType<typeof storeFolder>>
    let seen: Seen
    let page: Page
    let router: Service
    let empty: Service
    let keyed: Service

    beforeAll(async () => {
      store = await storeFolder()
      const writer = testWriter(await store.open())
      writer.start()
      for (const trace of calls()) writer.enqueue(trace)
      await writer.close()
      await writeFile(store.path('routing.toml'), CONFIG)
      router = await serve('router.db', { ROUTER_CONFIG: store.path('routing.toml') })
      empty = await serve('empty.db')
      keyed = await serve('keyed.db', { ROUTER_KEYS: 'default:panel-secret-of-24-letters' })
      seen = await openPlaywright()
      page = seen.page
      page.setDefaultTimeout(10_000)
    }, 30_000)
    afterAll(async () => {
      await seen?.close()
      for (const service of [router, empty, keyed]) await service?.close()
      await store?.remove()
    })

    function serve(db: string, more: Record<string, string> = {}): Promise<Service> {
      return serveRouter({ ROUTER_BIND: '127.0.0.1:0', RUST_LOG: 'off', ROUTER_DB: store.path(db), ...more })
    }

    /** For a change of the design: the folder of WAYBILL_PANEL_SHOTS has every page afterwards. */
    async function shot(name: string): Promise<void> {
      const folder = process.env.WAYBILL_PANEL_SHOTS
      if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
    }

    async function look(name: string, unfolded = true): Promise<string[]> {
      if (unfolded)
        await page.evaluate(() => {
          for (const one of document.querySelectorAll('details')) one.open = true
        })
      return wrongIn(page, look => shot(`panel-${name}-${look}`))
    }

    it('figures and traces', async () => {
      await page.goto(`${router.origin}/panel`)
      await page.waitForSelector('#calibration >> text=n of m')
      expect(await look('full', false)).toEqual([])
      expect(await look('unfolded')).toEqual([])
    }, 60_000)

    it('a trace', async () => {
      await page.goto(`${router.origin}/panel`)
      await page.click('#traces tbody button.link >> nth=0')
      await page.waitForSelector('dialog#detail[open] h2')
      expect(await look('trace')).toEqual([])
    }, 60_000)

    it('a chain that was verified', async () => {
      await page.goto(`${router.origin}/panel`)
      await page.waitForSelector('#calibration >> text=n of m')
      await page.click('#verify')
      await page.waitForSelector('#verified:not(:empty)')
      expect(await look('verified')).toEqual([])
    }, 60_000)

    it('no call yet', async () => {
      await page.goto(`${empty.origin}/panel`)
      await page.waitForSelector('#empty >> text=No call has come through this router yet')
      await page.waitForSelector('#calibration >> text=No route')
      expect(await look('empty')).toEqual([])
    }, 60_000)

    it('a key that is asked for', async () => {
      await page.goto(`${keyed.origin}/panel`)
      await page.waitForSelector('#key-reason >> text=send your router key')
      expect(await look('key')).toEqual([])
    }, 60_000)

    it('an address with nothing behind it', async () => {
      await page.goto(`${router.origin}/nowhere`)
      await page.waitForSelector('text=There is no such page')
      expect(await look('nowhere')).toEqual([])
    }, 60_000)
  })
}

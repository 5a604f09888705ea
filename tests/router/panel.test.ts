import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { storeFolder, testSigner, testWriter } from '../../router/host/testing/store-folder.ts'
import { storedTraces } from '../../router/ope/testing/stored-traces.ts'
import { exportRecords, storedCheckpoints, storedFeedback, storedRecords } from '../../router/traces/stored-records.ts'
import { sampleTrace } from '../../router/traces/testing/records.ts'
import { rowColumns } from '../../router/traces/trace-row.ts'
import { verifyRecords } from '../../router/traces/verify.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import type { Service } from '../../shared/host/serve.ts'
import { toBase64 } from '../../shared/sign/bytes.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { type Browser, hasChromium, openChromium } from '../browser/chromium.ts'
import { expectWithin } from '../crowding.ts'
import { eventually } from '../eventually.ts'
import { CONFIG, calls, HOSTILE } from './panel-traces.ts'

/** The seed of `testSigner`: the router goes on with the key that signed the sealed part. */
const SIGNING_KEY = toBase64(new Uint8Array(32).fill(7))
const SECRET = 'panel-secret-of-24-letters'

if (hasChromium()) {
  describe('the panel in a browser', () => {
    let browser: Browser
    let store: Awaited<ReturnType<typeof storeFolder>>
    let db: Db
    let router: Service
    let shots: string
    const panel = () => `${router.origin}/panel`

    beforeAll(async () => {
      store = await storeFolder()
      db = await store.open()
      // Each writer signs a checkpoint as it ends.
      for (const lot of [calls().slice(0, 20), calls().slice(20, 40), calls().slice(40)]) {
        const writer = testWriter(db)
        writer.start()
        for (const trace of lot) writer.enqueue(trace)
        await writer.close()
      }
      await writeFile(store.path('routing.toml'), CONFIG)
      router = await serveRouter(vars('router.db', { ROUTER_CONFIG: store.path('routing.toml') }))
      shots = process.env.WAYBILL_PANEL_SHOTS ?? (await mkdtemp(join(tmpdir(), 'waybill-panel-')))
      browser = await openChromium()
    })
    afterAll(async () => {
      await browser?.close()
      await router?.close()
      await store?.remove()
      if (process.env.WAYBILL_PANEL_SHOTS === undefined && shots) await rm(shots, { recursive: true, force: true })
    })

    function vars(name: string, more: Record<string, string> = {}): Record<string, string> {
      const quiet = { ROUTER_BIND: '127.0.0.1:0', RUST_LOG: 'off', ROUTER_SIGNING_KEY: SIGNING_KEY }
      return { ...quiet, ROUTER_DB: store.path(name), ...more }
    }

    const sees = (css: string, words: string | RegExp) =>
      eventually(async () => expect(await browser.text(css)).toMatch(words), { timeout: 10_000, interval: 50 })
    const loaded = () => sees('#calibration', /n of m/)

    it('shows savings, the ladder, gates, calibration and the newest traces', async () => {
      await browser.look({})
      await browser.goto(panel())
      await loaded()
      // First of all whether calls were served, then what was saved.
      expect(await browser.text('main > section:not([hidden]) h2')).toBe('Is it well?')
      expect(await browser.text('#health')).toMatch(
        /Failure rate\s+\d+(?:\.\d)?\s%\s+(?:every call was served|[\d,]+ calls? served nothing)/,
      )
      expect(await browser.text('#health')).toMatch(/Saved\s+\$0\.4692\s+68\s%, \$0\.\d+ spent/)
      expect(await browser.text('#providers')).toMatch(
        /anthropic\s+takes calls\s+the client's own\s+api\.anthropic\.com/,
      )
      expect(await browser.text('#savings')).toMatch(/Saved\s+\$0\.4692 \(68\s%\)/)
      expect(await browser.run('return document.querySelectorAll("#savings .chart rect").length')).toBe(12)
      expect(await browser.text('#ladder')).toMatch(/Rung 1\s+12 \(20\s%\)\s+Rung 0\s+48 \(80\s%\)\s+12 escalations/)
      expect(await browser.text('#gates')).toMatch(/non-empty\s.*60\s+12\s+0/s)
      expect(await browser.text('#calibration')).toContain('not certified (0 of 47)')
      expect(await browser.run('return document.querySelectorAll("#traces tbody tr").length')).toBe(50)
      await browser.click('#older')
      await eventually(async () =>
        expect(await browser.run('return document.querySelectorAll("#traces tbody tr").length')).toBe(60),
      )
      expect(await browser.text('#empty')).toBe('')
    })

    it('asks this router for everything, and the browser has nothing to complain about', async () => {
      await browser.requests()
      await browser.complaints()
      await browser.goto(panel())
      await loaded()
      const asked = await browser.requests()
      expect(asked.length).toBeGreaterThan(10)
      // The picture in a date field is a data: address of the browser's own, and its first page is one of its own, too.
      expect(asked.filter(url => !/^(?:data|chrome):/.test(url) && !url.startsWith(`${router.origin}/`))).toEqual([])
      expect(await browser.complaints()).toEqual([])
      const [page, script] = await Promise.all([fetch(panel()), fetch(`${panel()}/panel.js`)])
      expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'self';/)
      expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
      expect(await page.text()).not.toMatch(/claude|session-\d/)
    })

    it('shows markup in a model or an id as the text that it is', async () => {
      await browser.goto(panel())
      await loaded()
      expect(await browser.text('#traces')).toContain(HOSTILE)
      const body = `replace(body, (select trace_id from traces where seq = 31), '${HOSTILE.replaceAll('"', '').replaceAll("'", '')}')`
      await db.execute(`update traces set body = ${body} where seq = 31`)
      await browser.click('#reload')
      await eventually(async () =>
        expect(
          await browser.run(`return document.querySelector('#traces button[title*="<img"]')?.title ?? ''`),
        ).toMatch(/^<img/),
      )
      expect(
        await browser.run('return [document.title, document.querySelectorAll("main img, main script").length]'),
      ).toEqual(['Waybill router', 0])
      await restore(31)
    })

    it('shows a mark that turns letters around, as the name of a model may have one', async () => {
      await browser.goto(panel())
      await loaded()
      const turned = 'openai/⟨U+202E⟩5-tpg'
      expect(await browser.text('#traces')).toContain(turned)
      await browser.run(`[...document.querySelectorAll('#traces tbody tr')]
        .find(row => row.textContent.includes('5-tpg')).querySelector('button').click()`)
      await sees('#detail', turned)
      expect(await browser.text('main')).not.toContain('\u202e')
      expect(await browser.text('#detail')).not.toContain('\u202e')
    })

    it('opens a trace with its attempts, gates, costs and hashes, and Escape closes it', async () => {
      await browser.goto(panel())
      await loaded()
      await browser.click('#traces tbody tr:first-child button.link')
      await sees('#detail', /Hash before it/)
      const shown = await browser.text('#detail')
      for (const words of ['1. Rung 0: anthropic/claude-haiku-4-5 fail', '2. Rung 1: anthropic/claude-sonnet-5 pass']) {
        expect(shown).toContain(words)
      }
      expect(shown).toMatch(/empty[\s\S]*Cost\s+\$0\.0069[\s\S]*Price table\s+b{64}/)
      await browser.screenshot(join(shots, 'detail.png'))
      await browser.press('\uE00C')
      expect(await browser.run('return document.querySelector("#detail").open')).toBe(false)
      expect(await browser.run('return document.activeElement.className')).toBe('link')
    })

    it('opens the trace that its address names', async () => {
      const { rows } = await db.execute('select trace_id from traces where seq = 7')
      const id = String(rows[0]?.trace_id)
      await browser.goto(`${panel()}#trace=${id}`)
      await sees('#detail', new RegExp(id))
      await browser.press('\uE00C')
    })

    it('has an address for each list and each trace, and the way back leads to what was shown', async () => {
      const { rows } = await db.execute(
        "select trace_id from traces where session_id = 'session-1' order by seq desc limit 1",
      )
      const id = String(rows[0]?.trace_id)
      const listed = 'return document.querySelectorAll("#traces tbody tr").length'
      await browser.goto(`${panel()}?session=session-1&days=90`)
      await loaded()
      expect(await browser.run(listed)).toBe(20)
      expect(await browser.run('return document.querySelector("#window").value')).toBe('90')
      await browser.click('#traces tbody tr:first-child button.link')
      await sees('#detail', new RegExp(id))
      const address = 'return location.search + location.hash'
      expect(await browser.run(address)).toBe(`?session=session-1&days=90#trace=${id}`)
      await browser.press('\uE00C')
      await eventually(async () => expect(await browser.run(address)).toBe('?session=session-1&days=90'))
      await browser.click('#filter [type=reset]')
      await eventually(async () => expect(await browser.run(listed)).toBe(50))
      expect(await browser.run(address)).toBe('?days=90')
      await browser.run('history.back()')
      await eventually(async () => expect(await browser.run(listed)).toBe(20))
      expect(await browser.run('return document.querySelector("#filter [name=session]").value')).toBe('session-1')
    })

    it('shows the figures of the time that is chosen, whichever answer comes last', async () => {
      await browser.goto(panel())
      await loaded()
      // Of the longest time the answers are held back until those of the next choice are shown.
      await browser.run(`const { fetch } = window
        window.fetch = async (url, ...more) => {
          const answer = await fetch(url, ...more)
          const { searchParams } = new URL(url, document.baseURI)
          if (window.held === undefined && String(url).includes('savings')) {
            window.held = searchParams.get('since')
            await new Promise(resolve => { window.release = resolve })
          }
          return answer
        }`)
      const choose = (days: string) =>
        browser.run(
          `const it = document.querySelector('#window'); it.value = arguments[0]; it.dispatchEvent(new Event('change'))`,
          days,
        )
      const bars = 'return document.querySelectorAll("#savings .chart rect").length'
      await choose('90')
      await eventually(async () => expect(await browser.run('return typeof window.release')).toBe('function'))
      await choose('7')
      await eventually(async () => expect(await browser.run(bars)).not.toBe(12))
      const shown = await browser.run(bars)
      await browser.run('window.release()')
      await browser.run('return new Promise(resolve => setTimeout(resolve, 200))')
      expect(await browser.run(bars)).toBe(shown)
      // The way back leads to what was shown first, and to the time that it was of.
      await browser.run('history.go(-2)')
      await eventually(async () => {
        expect(await browser.run('return location.search')).toBe('')
        expect(await browser.run('return document.querySelector("#window").value')).toBe('30')
        expect(await browser.run(bars)).toBe(12)
      })
    })

    it('shows a trace within 300 ms of its commit, above the others, and asks nothing while nothing comes', async () => {
      const own = await store.open('tailed.db')
      const followed = await serveRouter(vars('tailed.db'))
      const seal = async (trace: UnsealedTrace) => {
        const writer = testWriter(own)
        writer.start()
        writer.enqueue(trace)
        await writer.close()
      }
      await seal(sampleTrace({ at: Date.now() - 1000 }))
      await browser.goto(`${followed.origin}/panel`)
      await sees('#calibration', /No route/)
      await sees('#live', '● live')
      // It looks once as the line opens.
      await eventually(
        async () => {
          await browser.requests()
          await new Promise(resolve => setTimeout(resolve, 1000))
          expect((await browser.requests()).filter(url => /\/-\//.test(url))).toEqual([])
        },
        { timeout: 10_000, interval: 10 },
      )
      let least = Number.POSITIVE_INFINITY
      for (let i = 0; i < 3; i++) {
        const fresh = sampleTrace({ at: Date.now(), session: 'tailed' })
        await seal(fresh)
        const committed = Date.now()
        await eventually(
          async () =>
            expect(
              await browser.run('return document.querySelector("#traces tbody tr.fresh button.link")?.title ?? ""'),
            ).toBe(fresh.trace_id),
          { timeout: 10_000, interval: 10 },
        )
        const shown = await browser.run<number>(
          'return performance.timeOrigin + performance.getEntriesByName("tail-shown").at(-1).startTime',
        )
        least = Math.min(least, shown - committed)
      }
      process.stderr.write(`a trace is seen ${Math.round(least)} ms after its commit\n`)
      expectWithin(least, 300)
      await followed.close()
    })

    it('says how long calls took and what each route was served by', async () => {
      await browser.goto(panel())
      await loaded()
      expect(await browser.text('#health')).toMatch(
        /Median latency\s+820\s+ms\s+of the newest 60 calls\s+95 % within\s+820/,
      )
      expect(await browser.text('#routes')).toMatch(/Route 0[\s\S]*60[\s\S]*rung 0: 80\s%, rung 1: 20\s%/)
    })

    it('filters, clears, and finds a trace by its id with the keyboard', async () => {
      await browser.goto(panel())
      await loaded()
      await browser.type('#filter [name=session]', 'session-1\uE007')
      await eventually(async () =>
        expect(await browser.run('return document.querySelectorAll("#traces tbody tr").length')).toBe(20),
      )
      await browser.type('#filter [name=session]', 'nowhere\uE007')
      await sees('#traces', /No trace matches/)
      await browser.click('#filter [type=reset]')
      await sees('#traces', /Older traces/)
      const { rows } = await db.execute('select trace_id from traces where seq = 7')
      await browser.type('#find-id', `${rows[0]?.trace_id}\uE007`)
      await sees('#detail', new RegExp(String(rows[0]?.trace_id)))
      await browser.press('\uE00C')
      await browser.run('document.querySelector("#find-id").value = ""')
      await browser.type('#find-id', 'unknown-id\uE007')
      await sees('#problem', /there is no trace with the id unknown-id/)
      await browser.type('#filter [name=session]', 'session-1\uE007')
      await eventually(async () =>
        expect(await browser.run('return document.querySelector("#problem").hidden')).toBe(true),
      )
    })

    it('stores feedback, shows it, and says so', async () => {
      await browser.goto(panel())
      await loaded()
      await browser.click('#traces tbody tr:nth-child(2) .feedback button:first-child')
      await sees('#said', /Recorded: the answer of trace \S+ was correct/)
      const { rows } = await db.execute('select trace_id, body from feedback')
      expect(rows.map(row => JSON.parse(String(row.body)))).toMatchObject([
        { gate_id: 'outcome', reporter: 'panel', verdict: 'pass' },
      ])
      expect(
        await browser.run(
          'return document.querySelector("#traces tbody tr:nth-child(2) [aria-pressed=true]").innerText',
        ),
      ).toBe('✓ Right')
      await browser.click('#traces tbody tr:nth-child(2) button.link')
      await sees('#detail', /pass \(outcome\) by panel/)
      await browser.click('#detail .feedback button:last-child')
      await sees('#detail', /fail \(outcome\) by panel/)
    })

    it('re-derives the chain and its signatures, and names the record that was edited', async () => {
      await browser.goto(panel())
      await loaded()
      await browser.click('#verify')
      await sees(
        '#verified',
        /✓ default: whole of 60 records\.\s+3 checkpoints signed by key [0-9a-f]{16}\. 2 reports of feedback were read as well\.$/,
      )
      expect(await browser.text('#verified')).toContain(testSigner.keyId)
      await db.execute(`update traces set body = replace(body, '"output":220', '"output":221') where seq = 17`)
      await browser.click('#verify')
      await sees(
        '#verified',
        /✗ default: broken at index 17 of 60 records\.\s+Index 17: its content is not what was sealed/,
      )
      await browser.screenshot(join(shots, 'broken.png'), 1400)
      await restore(17)
      await browser.click('#verify')
      await sees('#verified', /whole of 60/)
      await db.execute(`update checkpoints set body = replace(body, '"seq":', '"seq":1') where ix = 2`)
      await browser.click('#verify')
      await sees('#verified', /✗ default: broken at index \d+ of 60 records\.\s+.*not signed by a key of this router/)
      await db.execute(`update checkpoints set body = replace(body, '"seq":1', '"seq":') where ix = 2`)
    })

    it('names a report that was edited at the index of `router verify`, whichever it is', async () => {
      const told = async () => {
        const own = { records: storedRecords(db), feedback: storedFeedback(db) }
        const report = await verifyRecords({ ...own, checkpoints: await storedCheckpoints(db), sha256: nativeSha256 })
        return report.tenants[0]!
      }
      await browser.goto(panel())
      await loaded()
      const { rows } = await db.execute('select seq, body from feedback order by seq')
      expect(rows.length).toBeGreaterThan(1)
      for (const { seq, body } of rows) {
        for (const edited of [String(body).replace(/"verdict":"\w+"/, '"verdict":"abstain"'), 'no JSON at all']) {
          await db.execute({ sql: 'update feedback set body = ? where seq = ?', args: [edited, seq!] })
          const { broken_at, reason } = await told()
          expect(reason).toMatch(/^feedback_/)
          await browser.click('#verify')
          await sees(
            '#verified',
            new RegExp(`✗ default: feedback broken at index ${broken_at} of ${rows.length} reports`),
          )
          await db.execute({ sql: 'update feedback set body = ? where seq = ?', args: [body!, seq!] })
        }
      }
      await browser.screenshot(join(shots, 'feedback-broken.png'), 1400)
      expect((await told()).broken_at).toBeNull()
      await browser.click('#verify')
      await sees('#verified', /✓ default: whole of 60/)
    })

    it('verifies an export from a file, asks the router nothing for it, and names what was forged', async () => {
      const checkpoints = await storedCheckpoints(db)
      const signed = checkpoints.at(-1)!.seq
      const records = []
      for await (const lot of exportRecords(db)) records.push(...lot.slice(0, signed + 1 - records.length))
      const text = [...records, ...checkpoints.map(one => JSON.stringify(one))].join('\n')
      const key = toBase64(testSigner.publicKey)
      await browser.goto(panel())
      await loaded()
      await browser.requests()
      await browser.run("document.querySelector('#chain details').open = true")
      await browser.type('#export-key', key)
      for (const [name, edited, words] of [
        ['whole', text, new RegExp(`✓ valid ${signed + 1} records`)],
        ['twice', text.replace('"kind":"head"', '"kind":"prune","kind":"head"'), '✗ not valid: duplicate_member'],
        ['edited', text.replace('"output":220', '"output":221'), 'default: broken at index 0: hash'],
        ['bare', records.join('\n'), '✗ not valid: unsigned'],
        ['foreign', '{"a":1}', 'a line without a tenant: broken at index 0: unknown_member'],
      ] as const) {
        const path = join(shots, `${name}.jsonl`)
        await writeFile(path, edited)
        await browser.type('#export-file', path)
        await browser.click('#export-form button')
        await sees('#export-verified', words)
      }
      await browser.type('#export-key', '!')
      await browser.click('#export-form button')
      await sees('#export-verified', 'The public key cannot be read')
      // But for what the open page follows, whatever is verified.
      const asked = (await browser.requests()).filter(url => /\/(?:v1|-)\//.test(url))
      expect(asked.filter(url => !/\/-\/traces(?:\/tail|\?limit=50)$/.test(url))).toEqual([])
    })

    it('shows how many answers went from rung to rung, as a picture and in words', async () => {
      await browser.goto(panel())
      await loaded()
      const flow = await browser.run<string>(
        `return document.querySelector('#ladder svg.flow').getAttribute('aria-label')`,
      )
      expect(flow).toBe(
        '60 calls began on rung 0; 12 answers went on from rung 0 to rung 1; 48 calls served from rung 0; 12 calls served from rung 1',
      )
      expect(await browser.run<string>(`return document.querySelector('#ladder svg.flow').textContent`)).toMatch(
        /Rung 1[\s\S]*Rung 0[\s\S]*60 began[\s\S]*12[\s\S]*48 served/,
      )
      await browser.click('#ladder summary')
      expect(await browser.text('#ladder table')).toMatch(/came in\s+rung 0\s+60\s+rung 0\s+rung 1\s+12/)
    })

    it('works under a path of a proxy', async () => {
      const proxy = createServer(async (request, response) => {
        const answer = await fetch(router.origin + request.url!.replace('/deep/router', ''))
        response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
        response.end(Buffer.from(await answer.arrayBuffer()))
      })
      await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
      await browser.goto(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/deep/router/panel`)
      await loaded()
      expect(await browser.text('#traces')).toContain('claude-haiku-4-5')
      proxy.closeAllConnections()
      await new Promise(resolve => proxy.close(resolve))
    })

    it('asks for a key where there is one, says which one is wrong, and says what to do first', async () => {
      const keyed = await serveRouter(vars('keyed.db', { ROUTER_KEYS: `default:${SECRET}` }))
      try {
        await browser.goto(`${keyed.origin}/panel`)
        await sees('#key-reason', /send your router key in x-router-key/)
        await browser.type('#key-text', 'a-key-that-nobody-has\uE007')
        await sees('#key-reason', /the key in x-router-key is not known here/)
        await browser.type('#key-text', `${SECRET}\uE007`)
        await sees('#empty', /No call has come through this router yet[\s\S]*ANTHROPIC_BASE_URL=http:\/\/127/)
        await sees('#calibration', /No route has a ladder/)
        await browser.screenshot(join(shots, 'empty.png'))
        expect(await browser.run('return document.querySelector("#key").hidden')).toBe(true)
        const kept = 'return [localStorage.length, document.cookie, Object.values(sessionStorage)]'
        expect(await browser.run(kept)).toEqual([0, '', [SECRET]])
        await browser.click('#change-key')
        await browser.click('#forget-key')
        await sees('#key-reason', /send your router key/)
        expect(await browser.run(kept)).toEqual([0, '', []])
      } finally {
        await keyed.close()
      }
    })

    it.each([
      { name: 'light', width: 1280, scheme: 'light' },
      { name: 'dark', width: 1280, scheme: 'dark' },
      { name: 'phone', width: 375, height: 800, scheme: 'light' },
      { name: 'phone-dark', width: 375, height: 800, scheme: 'dark' },
    ] as const)('is readable and no wider than the screen: $name', async ({ name, ...looks }) => {
      await browser.look(looks)
      await browser.goto(panel())
      await loaded()
      const overflow = 'return document.documentElement.scrollWidth - document.documentElement.clientWidth'
      expect(await browser.run(overflow)).toBe(0)
      expect(await browser.run<string[]>(POOR_CONTRAST)).toEqual([])
      expect(await serious(browser)).toEqual([])
      await browser.screenshot(join(shots, `${name}.png`), 2600)
      await browser.look({})
    })

    it('shows the first traces of 100,000 within a second', async () => {
      const many = await store.open('many.db')
      await manyTraces(many, 100_000)
      const big = await serveRouter(vars('many.db'))
      try {
        await browser.goto(`${big.origin}/panel`)
        await sees('#calibration', /No route/)
        const times = await browser.run<Record<string, number>>(
          `const of = name => performance.getEntriesByName(name).at(-1)?.startTime
           return { paint: of('first-contentful-paint'), traces: of('traces-shown'), figures: of('figures-shown') }`,
        )
        process.stderr.write(`panel with 100,000 traces, ms: ${JSON.stringify(times)}\n`)
        expectWithin(times.paint!, 1000)
        expectWithin(times.traces!, 1000)
      } finally {
        await big.close()
      }
    }, 180_000)

    /** Undoes an edit: the columns are as they were, and so is the text but for what the test put in. */
    async function restore(seq: number): Promise<void> {
      const id = 'traces.trace_id'
      const hostile = HOSTILE.replaceAll('"', '').replaceAll("'", '')
      await db.execute({
        sql: `update traces set body = replace(replace(body, ?, ${id}), '"output":221', '"output":220') where seq = ?`,
        args: [hostile, seq],
      })
    }
  })
}

/** So many traces, one every 25 s until now: the first thousand are sealed, and the others are these again at their times. */
async function manyTraces(db: Db, count: number): Promise<void> {
  const SEALED = 1000
  const from = Date.now() - count * 25_000
  const first = Array.from({ length: SEALED }, (_, i) => sampleTrace({ at: from + i * 25_000, model: `m/${i % 7}` }))
  await storedTraces(
    db,
    first.map(trace => ({ trace })),
  )
  const same = rowColumns.filter(name => !['seq', 'trace_id', 'ts_ms'].includes(name)).join(', ')
  const { rows } = await db.execute('select min(seq) as low from traces')
  expect(rows[0]?.low).toBeOneOf([0, 1])
  await db.execute({
    sql: `insert into traces (seq, trace_id, ts_ms, ${same}, body)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1 / ?2 - 1),
      later as (select *, seq + i * ?2 as new_seq, ts_ms + i * ?2 * 25000 as new_ms,
        substr(trace_id, 1, 24) || printf('%012x', seq + i * ?2) as new_id from n cross join traces)
      select new_seq, new_id, new_ms, ${same}, replace(replace(replace(body, trace_id, new_id), '"seq":' || seq, '"seq":' || new_seq),
        strftime('%Y-%m-%dT%H:%M:%fZ', ts_ms / 1000.0, 'unixepoch'), strftime('%Y-%m-%dT%H:%M:%fZ', new_ms / 1000.0, 'unixepoch'))
      from later`,
    args: [count, SEALED],
  })
  const stored = await db.execute(
    `select count(*) as traces, max(ts_ms) as newest, sum(body ->> 'trace_id' = trace_id and body ->> 'seq' = seq) as whole from traces`,
  )
  expect(stored.rows[0]).toMatchObject({ traces: count, whole: count, newest: from + (count - 1) * 25_000 })
}

/** It is put in over the protocol, which the page's policy does not concern. */
const AXE = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe calls serious or critical. To write down all that is good takes longer than to find what is not; there are no films to load. */
async function serious(browser: Browser): Promise<string[]> {
  await browser.run(await AXE)
  return browser.run(`return axe.run({ resultTypes: ['violations'], preload: false }).then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => id + ': ' + nodes.map(node => node.html.slice(0, 160)).join(' | ')))`)
}

/** WCAG 2.2 §1.4.3: every text against the first opaque ground behind it, 4.5:1 (3:1 for large text). */
const POOR_CONTRAST = `
const rgb = text => text.match(/[\\d.]+/g).map(Number)
const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
const ground = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = rgb(getComputedStyle(at).backgroundColor)
    if (colour.length === 3 || colour[3] === 1) return colour
  }
  return [255, 255, 255]
}
const poor = new Set()
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
let seen = 0
for (let node; (node = texts.nextNode());) {
  const element = node.parentElement
  if (node.data.trim() === '' || !element.checkVisibility() || element.closest('.unseen, .skip, option')) continue
  seen++
  const style = getComputedStyle(element)
  const [a, b] = [light(rgb(element.closest('svg') ? style.fill : style.color)), light(ground(element))]
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
  const large = parseFloat(style.fontSize) >= 24
  if (ratio < (large ? 3 : 4.5)) poor.add(element.tagName + '.' + element.className + ': ' + ratio.toFixed(2))
}
if (seen < 100) poor.add('only ' + seen + ' texts were seen')
return [...poor]`

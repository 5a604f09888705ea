import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, ReceiptKeys } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { hasChromium } from '../browser/chromium.ts'
import { type Api, api } from './api.ts'

const CHROMIUM = 'chromium'
const there = hasChromium()

const QUIET =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync'
let on: Api
let folder: string
let page: string
let receipt: Receipt
let journal: JournalExport
let keys: ReceiptKeys

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-page-'))
  on = await api({ masterKey: new Uint8Array(32).fill(3) })
  await on.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', {
    agentName: 'echo',
    input: { prompt: 'é<&>\u2028 1e21' },
  })
  await (await on.call('GET', `/v1/runs/${id}/events`)).text()
  receipt = await on.json(200, 'GET', `/v1/runs/${id}/receipt`)
  journal = await on.json(200, 'GET', `/v1/runs/${id}/journal`)
  keys = await on.json(200, 'GET', '/.well-known/platform-receipts')
  page = await (await on.runtime.fetch(new Request('http://localhost/receipts/verify'))).text()
})
afterAll(async () => {
  await on.close()
  await rm(folder, { recursive: true, force: true })
})

/** What the saved page says, opened from a disk in a browser of its own. */
async function said(given: object | string, more: { journal?: object | string; fingerprint?: string } = {}) {
  const text = (one: object | string) => (typeof one === 'string' ? one : JSON.stringify(one))
  const fill = { receipt: text(given), journal: more.journal ? text(more.journal) : '' }
  const values = JSON.stringify({ ...fill, fingerprint: more.fingerprint ?? keys.keyFingerprint }).replaceAll(
    '<',
    '\\u003c',
  )
  const act = `<script>for (const [id, value] of Object.entries(${values})) document.getElementById(id).value = value
document.querySelector('button').click()</script>`
  const file = join(folder, `${crypto.randomUUID()}.html`)
  await writeFile(file, page.replace('</html>', `${act}</html>`))
  const args = [
    ...QUIET.split(' '),
    `--user-data-dir=${join(folder, 'chromium')}`,
    '--virtual-time-budget=10000',
    '--dump-dom',
  ]
  const { stdout } = await promisify(execFile)(CHROMIUM, [...args, `file://${file}`], { timeout: 60_000 })
  return /<output[^>]*>([^<]*)<\/output>/.exec(stdout)?.[1] ?? `no output in ${stdout.slice(0, 200)}`
}

describe.skipIf(!there)('the verifier page, saved and opened in a browser', () => {
  it('says valid with the fingerprint, and names what was tampered with', async () => {
    expect(await said(receipt, { journal })).toBe(
      `Valid. Run ${receipt.payload.runId} of echo: succeeded, 0 USD, ended ${receipt.payload.finishedAt}. All ${journal.eventCount} events are the ones that were signed.`,
    )
    expect(await said(receipt)).toContain('was not checked')
    const [first, ...rest] = journal.events
    const edited = { ...journal, events: [{ ...first, payload: { x: 1 } }, ...rest] }
    expect(await said(receipt, { journal: edited })).toContain('chain_broken (event 1)')
    const cut = { ...journal, events: journal.events.slice(0, -1) }
    expect(await said(receipt, { journal: cut })).toContain('event_count_mismatch')
    const forged = { ...receipt, payload: { ...receipt.payload, costUsd: 9 } }
    expect(await said(forged)).toContain('signature_invalid')
    const twice = JSON.stringify(receipt).replace('"status":', '"status":"failed","status":')
    expect(await said(twice)).toContain('duplicate_member')
    const infinite = JSON.stringify(journal).replace('"payload":', '"payload":[1e999],"x":')
    expect(await said(receipt, { journal: infinite })).toContain('number_form')
    expect(await said(receipt, { fingerprint: '0'.repeat(64) })).toContain('unknown_key')
  }, 120_000)
})

it('is one page with nothing from elsewhere', () => {
  // An icon that is empty: without one a browser asks its server for it.
  const icon = '<link rel="icon" href="data:,">'
  expect(page).toContain(icon)
  expect(page.replace(icon, '')).not.toMatch(/(src|href)=/)
  expect(page).not.toMatch(/fetch\(|import\(|XMLHttpRequest|WebSocket/)
})

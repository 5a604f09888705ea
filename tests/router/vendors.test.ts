import { describe, expect, it } from 'vitest'
import { type ScriptedUpstream, stream } from '../upstream/scripted.ts'
import { VENDOR_STREAMS, type VendorStream } from '../upstream/vendors.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

/** Its text is what the gate sees. */
const config = (text: string) => `
gate = [{ id = "length", kind = "length", min_chars = ${text.length}, max_chars = ${text.length} }]
price = [{ model = "host/m", input_per_mtok = 1, cache_read_per_mtok = 0.1, output_per_mtok = 10 }]
provider = [{ id = "host", dialect = "chat", base_url = "${upstream.origin}/v1", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["host/m"]
gates = ["length"]
`
const ASK = { model: 'm', max_tokens: 50, stream: true, messages: [{ role: 'user', content: 'q' }] }
const costOf = ([uncached, read, output]: NonNullable<VendorStream['tokens']>) =>
  (uncached + read * 0.1 + output * 10) / 1e6

describe.each(VENDOR_STREAMS)('a stream of $vendor', ({ frames, text, args, tokens }) => {
  it('is passed on and counted where it is observed', async () => {
    upstream.always(stream(frames))
    running = await testRouter({ env: { ROUTER_UPSTREAM_CHAT: `${upstream.origin}/v1` } })
    const got = await running.post('/v1/chat/completions', ASK)
    expect(await got.text()).toBe(frames.join(''))
    const [receipt] = await running.receipts()
    const { tokens: counted, usage_source: source } = receipt!.attempts[0]!
    if (tokens === null) return expect(source).toBe('none')
    expect([counted?.uncached, counted?.cache_read, counted?.output]).toEqual(tokens)
  })

  it.each(['/v1/chat/completions', '/v1/messages'])('is judged and priced on a ladder: %s', async path => {
    upstream.always(stream(frames))
    running = await testRouter({ config: config(text) })
    const got = await running.post(path, ASK)
    const said = await got.text()
    expect([got.status, said.includes(text)]).toEqual([200, true])
    if (args !== undefined) expect(said).toMatch(/Ulm/)
    const [receipt] = await running.receipts()
    const [attempt] = receipt!.attempts
    if (tokens === null) expect(attempt!.usage_source).toBe('estimated')
    else expect(Number(attempt!.cost)).toBeCloseTo(costOf(tokens), 12)
  })
})

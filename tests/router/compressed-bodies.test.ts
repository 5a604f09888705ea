import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

let upstream: ScriptedUpstream
let running: ServedRouter | undefined

beforeEach(async () => {
  upstream = await scriptedUpstream()
  upstream.always(answer(200, JSON.stringify(messagesAnswer())))
})
afterEach(async () => {
  await running?.stop()
  running = undefined
  await upstream.close()
})

const ASK = JSON.stringify({ model: 'auto', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] })
const start = async (mode = 'enforce') => {
  running = await servedRouter({
    maxBodyBytes: 100_000,
    env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
    config: `
price = [{ model = "up/a", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "up", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
[[route]]
match = {}
mode = "${mode}"
ladder = ["up/a"]
gates = ["non-empty"]
`,
  })
}
const post = (body: Uint8Array, encoding: string) =>
  fetch(new URL('/v1/messages', running!.origin), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-encoding': encoding },
    body: Buffer.from(body),
  })
const sent = (name: string) => {
  const { rawHeaders } = upstream.seen.at(-1)!
  return rawHeaders.find((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === name)
}

describe('a compressed request', () => {
  it.each([
    ['gzip', gzipSync(ASK)],
    ['deflate', deflateSync(ASK)],
  ])('in %s is routed as what it unpacks to, and goes on unpacked', async (encoding, body) => {
    await start()
    expect((await post(body, encoding)).status).toBe(200)
    expect(String(upstream.seen[0]!.body)).toBe(ASK.replace('"auto"', '"a"'))
    expect([sent('content-encoding'), sent('content-length')]).toEqual([undefined, String(ASK.length - 3)])
  })

  it('passes through as it came where its route only observes', async () => {
    await start('observe')
    const body = gzipSync(ASK)
    expect((await post(body, 'gzip')).status).toBe(200)
    expect([Buffer.compare(upstream.seen[0]!.body, body), sent('content-encoding')]).toEqual([0, 'gzip'])
  })

  it('in brotli is routed where the platform can read it, and else refused with what can be sent', async () => {
    await start()
    const got = await post(brotliCompressSync(ASK), 'br')
    if (got.status === 200) return expect(String(upstream.seen[0]!.body)).toBe(ASK.replace('"auto"', '"a"'))
    expect([got.status, await got.text()]).toEqual([400, expect.stringContaining('send it with gzip, deflate or none')])
  })

  it.each([
    ['a bomb', gzipSync(Buffer.alloc(50_000_000, 32)), 'gzip', 413, 'larger than the limit of 100000 bytes'],
    ['not what it says', Buffer.from(ASK), 'gzip', 400, 'cannot be unpacked as gzip'],
    ['cut short', gzipSync(ASK).subarray(0, 30), 'gzip', 400, 'cannot be unpacked as gzip'],
    ['of an unknown kind', Buffer.from(ASK), 'zip', 400, 'content-encoding zip cannot be read here'],
  ])('that is %s is refused in the dialect', async (_, body, encoding, status, words) => {
    await start()
    const got = await post(body, encoding)
    expect([got.status, got.headers.get('x-should-retry')]).toEqual([status, 'false'])
    expect(await got.json()).toMatchObject({ type: 'error', error: { message: expect.stringContaining(words) } })
    expect(upstream.seen).toHaveLength(0)
  })
})

it('a call of a dialect that is not spoken is told so', async () => {
  await start()
  for (const path of ['/v1/models/gemini-3:generateContent', '/v1beta/models/gemini-3:streamGenerateContent']) {
    const got = await fetch(new URL(path, running!.origin), { method: 'POST', body: '{}' })
    expect([got.status, await got.text()]).toEqual([404, expect.stringContaining('the Gemini dialect')])
  }
})

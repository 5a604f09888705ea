import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { startWorker, type Worker } from '../../wrangler-local/workers.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream, silence, stream } from '../upstream/scripted.ts'

const CONFIG = (origin: string, more = '') => `
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${origin}/large", auth = "none" },
]
[budget]
per_day_usd = 1000
[learning]
algorithm = "thompson"
[[route]]
match = {}
mode = "enforce"
ladder = ["small/cheap", "large/best"]
gates = ["non-empty"]
${more}
`

interface Answered {
  status: number
  text: string
  rung: string | null
}

const here = await sqldAvailable()

/** Requests of an edge host share the isolate and nothing that one of them opened. */
describe('enforced calls in workerd', () => {
  let upstream: ScriptedUpstream
  let worker: Worker | undefined

  beforeEach(async () => {
    upstream = await scriptedUpstream()
    upstream.always((response, seen, request) => {
      const asked = String(seen.body)
      // The small model has nothing to say to what is hard.
      const said = asked.includes('hard') && seen.url.startsWith('/small') ? '' : 'Hello.'
      const script = asked.includes('"stream":true')
        ? stream(messagesFrames(said === '' ? [] : ['Hel', 'lo.']))
        : answer(200, JSON.stringify(messagesAnswer(said)))
      return script(response, seen, request)
    })
  })
  afterEach(async () => {
    await worker?.close()
    worker = undefined
    await upstream.close()
  })

  async function start(vars: Record<string, string>, more = ''): Promise<void> {
    worker = await startWorker('router', {
      vars: { ROUTER_CONFIG_TEXT: CONFIG(upstream.origin, more), RUST_LOG: 'off', ROUTER_INSECURE: '1', ...vars },
    })
  }

  async function ask(content: string, streamed = false): Promise<Answered> {
    const sent = await fetch(new URL('/v1/messages', worker!.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': 'k' },
      body: JSON.stringify({ model: 'auto', max_tokens: 9, stream: streamed, messages: [{ role: 'user', content }] }),
    })
    return { status: sent.status, text: await sent.text(), rung: sent.headers.get('x-router-served-rung') }
  }

  /** One after the other, then at once; plain and streamed, served by the first rung and by the second. */
  async function askMany(): Promise<number> {
    const one = async (number: number) => {
      const [hard, streamed] = [number % 2 === 1, number % 3 === 0]
      const { status, text, rung } = await ask(hard ? 'hard' : 'easy', streamed)
      return [number, status, rung, text.includes(streamed ? 'message_stop' : 'Hello.')]
    }
    const wanted = (number: number) => [number, 200, number % 2 === 1 ? '1' : '0', true]
    for (let number = 0; number < 5; number++) expect(await one(number)).toEqual(wanted(number))
    const numbers = Array.from({ length: 16 }, (_, number) => number)
    expect(await Promise.all(numbers.map(one))).toEqual(numbers.map(wanted))
    return 5 + numbers.length
  }

  it('are answered one after the other and at once where nothing is kept', async () => {
    await start({}, 'profile = "cost"')
    await askMany()
  })

  it('are answered where a share of them is measured on the top rung after their answers', async () => {
    await start({}, 'shadow_rate = 1')
    for (let number = 0; number < 4; number++) expect((await ask('easy')).status).toBe(200)
    await expect.poll(() => upstream.seen.filter(({ url }) => url.startsWith('/large')).length).toBe(4)
  })

  it('give back what they held when their client leaves', async () => {
    // What the first call holds is the whole day's budget.
    await start({}, '[route.budget]\nper_day_usd = 0.052')
    const held = Promise.withResolvers<void>()
    upstream.queue(async (response, seen, request) => {
      await held.promise
      return answer(200, JSON.stringify(messagesAnswer()))(response, seen, request)
    })
    const leaving = new AbortController()
    const left = fetch(new URL('/v1/messages', worker!.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'auto', max_tokens: 10_000, messages: [{ role: 'user', content: 'a' }] }),
      signal: leaving.signal,
    }).catch(() => undefined)
    await expect.poll(() => upstream.seen.length).toBe(1)
    const long = 'word '.repeat(1000)
    expect((await ask(long)).status).toBe(402)
    leaving.abort()
    await left
    held.resolve()
    await expect.poll(async () => (await ask(long)).status, { timeout: 20_000 }).toBe(200)
  })

  it('end at the provider when the connection of their client is reset, whether observed or enforced', async () => {
    for (const mode of ['observe', 'enforce']) {
      await start({ ROUTER_UPSTREAM_MESSAGES: upstream.origin })
      upstream.queue(silence)
      const { host, hostname, port } = worker!.url
      const socket = connect(Number(port), hostname)
      const body = JSON.stringify({ model: 'auto', max_tokens: 9, messages: [{ role: 'user', content: 'a' }] })
      const head = [
        'POST /v1/messages HTTP/1.1',
        `host: ${host}`,
        'x-api-key: k',
        `x-router-mode: ${mode}`,
        'content-type: application/json',
        `content-length: ${body.length}`,
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
      const before = upstream.seen.length
      await expect.poll(() => upstream.seen.length).toBe(before + 1)
      socket.resetAndDestroy()
      await upstream.seen.at(-1)!.aborted
      expect(upstream.seen.at(-1)!.url).toBe(mode === 'observe' ? '/v1/messages' : '/small/v1/messages')
      await worker!.close()
      worker = undefined
    }
  })

  describe.runIf(here)('with a store', () => {
    let sqld: Sqld
    beforeAll(async () => {
      sqld = await startSqld()
    })
    afterAll(() => sqld?.stop())

    it('leave receipts, samples, what was learned and what was spent', async () => {
      await start({ ROUTER_DB: sqld.primaryUrl }, 'shadow_rate = 1\nprofile = "balanced"')
      for (let number = 0; number < 4; number++) expect((await ask('easy')).status).toBe(200)
      const all = await Promise.all(Array.from({ length: 12 }, (_, number) => ask(number % 2 ? 'hard' : 'easy')))
      expect(all.map(({ status }) => status)).toEqual(all.map(() => 200))
      const db = await openDb(sqld.primaryUrl)
      const count = async (sql: string) => Number((await db.execute(sql)).rows[0]?.[0])
      await expect.poll(() => count('select count(*) from traces'), { timeout: 20_000 }).toBe(16)
      await expect.poll(() => count('select count(*) from shadows'), { timeout: 20_000 }).toBe(16)
      await expect
        .poll(() => count("select count(*) from router_meta where key like 'learning/%'"), { timeout: 10_000 })
        .toBeGreaterThan(0)
      await expect.poll(() => count('select count(*) from router_budgets'), { timeout: 20_000 }).toBeGreaterThan(0)
      db.close()
    })
  })
})

import { gunzipSync } from 'node:zlib'
import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { packedAnswers } from './packed-answers.ts'

const words = 'the same words '.repeat(1000)
const app = new Hono()
  .use('/packed/*', packedAnswers)
  .get('/packed/page', c => c.html(words, 200, { etag: 'W/"x"' }))
  .get('/packed/json', c => c.json({ words }))
  .get('/packed/missing', c => c.json({ error: words }, 404))
  .get('/packed/none', c => c.body(null, 304))
  .get('/packed/events', c => c.body(words, 200, { 'content-type': 'text/event-stream' }))
  .get('/packed/twice', c => c.html(words, 200, { 'content-encoding': 'br' }))
  .get('/plain', c => c.html(words))

const ask = async (path: string, encoding?: string, site: string | undefined = 'same-origin') =>
  app.request(path, {
    headers: {
      ...(encoding !== undefined && { 'accept-encoding': encoding }),
      ...(site !== '' && { 'sec-fetch-site': site }),
    },
  })

it.each([
  ['/packed/page', 200, words],
  ['/packed/json', 200, JSON.stringify({ words })],
  ['/packed/missing', 404, JSON.stringify({ error: words })],
])('%s is packed where it is taken so, and says what it depends on', async (path, status, text) => {
  const packed = await ask(path, 'br, gzip;q=0.5')
  expect([packed.status, packed.headers.get('content-encoding'), packed.headers.get('vary')]).toEqual([
    status,
    'gzip',
    'accept-encoding, sec-fetch-site',
  ])
  const bytes = Buffer.from(await packed.arrayBuffer())
  expect(bytes.length).toBeLessThan(text.length / 10)
  expect(gunzipSync(bytes).toString()).toBe(text)
  for (const encoding of [undefined, 'br', 'gzip;q=0']) {
    const plain = await ask(path, encoding)
    expect([plain.headers.get('content-encoding'), plain.headers.get('vary')]).toEqual([
      null,
      'accept-encoding, sec-fetch-site',
    ])
    expect(await plain.text()).toBe(text)
  }
})

it('leaves alone what flows, what has no body, what is packed and what is elsewhere', async () => {
  expect((await ask('/packed/page', 'gzip')).headers.get('etag')).toBe('W/"x"')
  expect((await ask('/packed/none', 'gzip')).status).toBe(304)
  for (const path of ['/packed/events', '/plain']) {
    const answer = await ask(path, 'gzip')
    expect([answer.headers.get('content-encoding'), await answer.text()]).toEqual([null, words])
  }
  expect((await ask('/packed/twice', 'gzip')).headers.get('content-encoding')).toBe('br')
})

it('lets no other site measure a page: what it opens is not packed, nor where a browser does not say who asks', async () => {
  for (const site of ['cross-site', 'same-site', '']) {
    const answer = await ask('/packed/page', 'gzip', site)
    expect([answer.headers.get('content-encoding'), await answer.text()], site).toEqual([null, words])
  }
  expect((await ask('/packed/page', 'gzip', 'none')).headers.get('content-encoding')).toBe('gzip')
})

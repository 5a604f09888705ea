import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

let upstream: ScriptedUpstream
const routers: ServedRouter[] = []

beforeAll(async () => {
  upstream = await scriptedUpstream()
  for (const direct of [true, false])
    routers.push(
      await servedRouter({
        direct,
        env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
        access: { keys: [], reach: 'loopback', insecure: false, metricsOpen: false },
      }),
    )
})
afterAll(async () => {
  for (const router of routers) await router.stop()
  await upstream.close()
})

const JSON_TYPE = 'content-type: application/json'
const report = (more: object) => JSON.stringify({ request_id: 'ID', outcome: 'correct', ...more })

const CASES: Record<string, { body: string | Buffer; headers?: string[] }> = {
  'a report': { body: report({}) },
  'the same again': { body: report({}) },
  'another word': { body: report({ outcome: 'incorrect', score: 0.25, reporter: 'ops' }) },
  'the other shape': { body: '{"trace_id":"ID","gate_id":"g","verdict":"pass","reporter":"r"}', headers: [] },
  'an unknown id': { body: report({ request_id: 'nowhere' }) },
  'another key': { body: report({ more: 1 }) },
  'no JSON': { body: '{' },
  nothing: { body: '' },
  'no UTF-8': { body: Buffer.from([0x22, 0xff, 0x22]) },
  'a NUL': { body: report({ gate_id: 'a\0' }) },
  'another content type': { body: report({}), headers: ['content-type: text/plain'] },
  'a page of another site': { body: report({}), headers: [JSON_TYPE, 'origin: http://elsewhere.example'] },
  'a report that is too large': { body: report({ reporter: 'r'.repeat(17_000) }) },
  'the last of its connection': { body: report({}), headers: [JSON_TYPE, 'connection: close'] },
}

test('a report is answered byte for byte alike by both ways in', async () => {
  const ids: string[] = []
  for (const router of routers) ids.push(await called(router))
  for (const [name, { body, headers = [JSON_TYPE] }] of Object.entries(CASES)) {
    const sent = Buffer.isBuffer(body) ? () => body : (id: string) => Buffer.from(body.replace('ID', id))
    const [direct, portable] = await Promise.all(
      routers.map(({ origin }, i) => exchange(origin, '/v1/feedback', headers, sent(ids[i]!))),
    )
    expect(plain(direct!), name).toBe(plain(portable!))
  }
  const [direct, portable] = await Promise.all(routers.map(({ origin }) => records(origin)))
  expect(direct).toHaveLength(3)
  expect(plain(JSON.stringify(direct))).toBe(plain(JSON.stringify(portable)))
})

/** The trace id of a call. */
async function called({ origin }: ServedRouter): Promise<string> {
  upstream.queue(answer(200, JSON.stringify(messagesAnswer())))
  const response = await fetch(`${origin}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
  })
  await response.text()
  return response.headers.get('x-router-trace-id')!
}

async function records(origin: string): Promise<object[]> {
  const { feedback } = (await (await fetch(`${origin}/v1/feedback/records`)).json()) as { feedback: object[] }
  return feedback
}

/** What comes back on a connection of its own, as text. */
function exchange(origin: string, path: string, headers: readonly string[], body: Buffer): Promise<string> {
  const { hostname, port, host } = new URL(origin)
  const head = [`POST ${path} HTTP/1.1`, `host: ${host}`, 'x-request-id: one', ...headers]
  const socket = connect(Number(port), hostname)
  socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\ncontent-length: ${body.length}\r\n\r\n`), body]))
  return new Promise((resolve, reject) => {
    let text = ''
    socket.on('data', piece => {
      text += String(piece)
      // A body is one object in JSON.
      if (text.endsWith('}')) socket.end()
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}

const plain = (text: string): string =>
  text
    .replace(/^date: .*$/im, 'date')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'an id')
    .replaceAll(/\b[0-9a-f]{64}\b/g, 'a hash')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')

import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { traceDetail, traceList } from '../../shared/wire/router/traces.ts'
import { messagesAnswer } from '../upstream/answers.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** Requests of agents are hundreds of kilobytes: what passes in pieces must pass whole, as slowly as it is taken, and end when one side ends. */
describe('a large request through observe', () => {
  let handle: Handler
  let router: Awaited<ReturnType<typeof serveRouter>>
  const upstream = createServer((request, response) => handle(request, response))
  beforeAll(async () => {
    await once(upstream.listen(0, '127.0.0.1'), 'listening')
    router = await serveRouter({
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_DB: ':memory:',
      ROUTER_UPSTREAM_MESSAGES: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      RUST_LOG: 'off',
    })
  })
  afterAll(async () => {
    await router.close()
    upstream.closeAllConnections()
    upstream.close()
  })

  const body = Buffer.from(
    JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'word '.repeat(400_000) }] }),
  )
  const upload = (length = body.length) =>
    httpRequest(`${router.origin}/v1/messages`, { method: 'POST', headers: { 'content-length': length } })
  const answerOf = async (upload: ReturnType<typeof httpRequest>) => {
    const [response] = (await once(upload, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response) text += String(chunk)
    return { status: response.statusCode, text, id: String(response.headers['x-router-trace-id']) }
  }
  const get = async (path: string): Promise<unknown> =>
    (await fetch(router.origin + path, { headers: { authorization: 'Bearer any' } })).json()
  const receipt = async (id: string) => traceDetail.safeParse(await get(`/-/traces/${id}`)).data?.trace

  it('arrives byte for byte at an upstream that reads slowly, and is in its receipt', async () => {
    const got: Buffer[] = []
    handle = async (request, response) => {
      for await (const chunk of request) {
        got.push(chunk as Buffer)
        await new Promise(resolve => setTimeout(resolve, 2))
      }
      response.end(JSON.stringify(messagesAnswer()))
    }
    const asked = upload()
    asked.end(body)
    const { status, id } = await answerOf(asked)
    expect(status).toBe(200)
    expect(Buffer.concat(got).equals(body)).toBe(true)
    await expect
      .poll(async () => (await receipt(id))?.request.features)
      .toMatchObject({ body_bytes: body.length, message_count: 1 })
  })

  it('gets the answer of an upstream that has not read it to its end', async () => {
    handle = (request, response) => {
      request.once('data', () => {
        response.writeHead(401, { 'content-type': 'application/json' })
        response.end('{"type":"error","error":{"type":"authentication_error","message":"no"}}')
      })
      request.resume()
    }
    const asked = upload()
    const answer = answerOf(asked)
    asked.write(body.subarray(0, 200_000))
    const { status, text, id } = await answer
    expect(status).toBe(401)
    expect(text).toContain('authentication_error')
    asked.on('error', () => undefined).destroy()
    await expect.poll(async () => (await receipt(id))?.final.status).toBe(401)
  })

  it('ends at the upstream when its client leaves in the middle', async () => {
    const begun = Promise.withResolvers<IncomingMessage>()
    const closed = Promise.withResolvers<void>()
    handle = request => {
      request.on('error', () => undefined).on('close', closed.resolve)
      request.once('data', () => begun.resolve(request))
    }
    const asked = upload()
    asked.on('error', () => undefined)
    asked.write(body.subarray(0, 500_000))
    const there = await begun.promise
    asked.destroy()
    await closed.promise
    expect(there.complete).toBe(false)
    const newest = async () => traceList.parse(await get('/-/traces?limit=1')).traces[0]?.final.served_from
    await expect.poll(newest).toBe('aborted')
  })
})

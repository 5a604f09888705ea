import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { type Listening, listen, listenAt } from './serve.ts'

const opened: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

/** A service whose connections are accepted elsewhere, as by another process: here by a bare server. */
async function servedElsewhere(
  answer: () => Promise<Response>,
): Promise<{ listening: Listening; client: () => Promise<Socket> }> {
  let take: (socket: Socket) => void = () => undefined
  const front = createServer({ allowHalfOpen: true }, socket => take(socket))
  const bind = { host: '127.0.0.1', port: 0 }
  const origin = await listenAt(front, bind)
  const each = (given: typeof take) => {
    take = given
  }
  const listening = await listen({ bind, fetch: answer, bodyMs: 60_000, accepted: { origin, each } })
  opened.push(front)
  return {
    listening,
    async client() {
      const socket = connect(Number(new URL(origin).port), '127.0.0.1').setEncoding('latin1')
      await once(socket, 'connect')
      return socket
    },
  }
}

async function textOf(socket: Socket): Promise<string> {
  let text = ''
  for await (const piece of socket) text += String(piece)
  return text
}

const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'

it('ends when what is open is answered, and lets an idle connection make one more call before', async () => {
  const go = Promise.withResolvers<void>()
  let calls = 0
  const { listening, client } = await servedElsewhere(async () => {
    if (++calls === 1) await go.promise
    return new Response(`answer ${calls}`)
  })
  const [busy, idle] = [await client(), await client()]
  busy.write(REQUEST)
  await expect.poll(() => calls).toBe(1)
  const answers = [textOf(busy), textOf(idle)]
  let isClosed = false
  const closed = listening.close(10_000, 1000).then(() => {
    isClosed = true
  })
  idle.write(REQUEST)
  expect(await answers[1]).toMatch(/connection: close.*answer 2$/is)
  expect(isClosed).toBe(false)
  go.resolve()
  expect(await answers[0]).toMatch(/connection: close/i)
  await closed
})

import { expect, it } from 'vitest'
import { api } from './api.ts'

it('what claims to come from another control plane is read in turns, as any long body without a key', async () => {
  const on = await api({
    masterKey: new Uint8Array(32).fill(1),
    bodyBytesAtATime: 1024 * 1024,
    peer: { url: 'http://localhost', fetch: async () => new Response(null, { status: 503 }) },
  })
  let started = 0
  const ends: (() => void)[] = []
  function post(bytes: number) {
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(stream) {
          started++
          await new Promise<void>(resolve => ends.push(resolve))
          stream.enqueue(new Uint8Array(bytes))
          stream.close()
        },
      },
      { highWaterMark: 0 },
    )
    const headers = { 'content-length': String(bytes) }
    const request = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
    return on.runtime.fetch(new Request('http://localhost/internal/peer', request))
  }
  const all = Array.from({ length: 20 }, () => post(600_000))
  const little = post(500)
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(started).toBe(2)
  let answered = false
  void Promise.all([...all, little]).then(() => (answered = true))
  while (!answered) {
    for (const end of ends.splice(0)) end()
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  for (const one of [...all, little]) expect((await one).status).toBe(401)
  await on.close()
})

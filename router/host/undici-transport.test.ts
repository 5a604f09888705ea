import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { expectWithin } from '../../tests/crowding.ts'
import { undiciTransport } from './undici-transport.ts'

it('gives a call up at once while a connection is still being made, and fails once', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/`
  const transport = undiciTransport({ connectMs: 500 })
  const timeouts = { connectMs: 500, firstByteMs: 5000, idleMs: 5000 }
  const stop = new AbortController()
  const began = performance.now()
  const sent = transport.send({ method: 'POST', url, headers: [], body: null, signal: stop.signal, timeouts })
  const over = new Error('over')
  setTimeout(() => stop.abort(over), 50)
  await expect(sent).rejects.toBe(over)
  expectWithin(performance.now() - began, 450)

  const failures: unknown[] = []
  const unused = () => expect.unreachable()
  const cut = transport.relay(
    { method: 'POST', url, headers: [], body: null, timeouts },
    { head: unused, chunk: unused, end: unused, fail: error => void failures.push(error) },
  )
  cut(over)
  await new Promise(resolve => setTimeout(resolve, 1800))
  expect(failures).toEqual([over])
  await transport.close()
  silent.close()
})

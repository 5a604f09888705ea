import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { serveRouter } from './node.ts'
import { usualRouter } from './probe-router.ts'

it('takes the first usual address at which a router answers, and the first of all where none does', async () => {
  const page = createServer((_, answer) => answer.end('<h1>It works</h1>'))
  await new Promise<void>(resolve => page.listen(0, '127.0.0.1', resolve))
  const router = await serveRouter({ ROUTER_BIND: '127.0.0.1:0', ROUTER_DB: ':memory:', RUST_LOG: 'off' })
  const other = { host: '127.0.0.1', port: (page.address() as AddressInfo).port }
  const own = { host: '127.0.0.1', port: Number(new URL(router.origin).port) }
  expect(await usualRouter([other, own])).toEqual(own)
  expect(await usualRouter([own, other])).toEqual(own)
  await router.close()
  expect(await usualRouter([other, own])).toEqual(other)
  page.close()
})

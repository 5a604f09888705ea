import { expect, it } from 'vitest'
import { afterBody } from './after-body.ts'

async function isSettled(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<boolean>(resolve => setImmediate(resolve, false))])
}

it('passes an answer on and tells when its last byte was taken', async () => {
  const { response, taken } = afterBody(new Response('all of it', { status: 201, headers: { 'x-it': 'yes' } }))
  expect([response.status, response.headers.get('x-it'), await isSettled(taken)]).toEqual([201, 'yes', false])
  expect(await response.text()).toBe('all of it')
  expect(await isSettled(taken)).toBe(true)
})

it('tells at once of an answer without a body', async () => {
  const { response, taken } = afterBody(new Response(null, { status: 204 }))
  expect([response.status, await isSettled(taken)]).toEqual([204, true])
})

it('tells when nobody takes any more, and when the answer breaks off', async () => {
  let cancelled: unknown
  const left = afterBody(
    new Response(
      new ReadableStream({
        cancel(why) {
          cancelled = why
        },
      }),
    ),
  )
  await left.response.body?.cancel('gone')
  expect([cancelled, await isSettled(left.taken)]).toEqual(['gone', true])

  const broken = afterBody(new Response(new ReadableStream({ pull: stream => stream.error(new Error('cut')) })))
  await expect(broken.response.text()).rejects.toThrow('cut')
  expect(await isSettled(broken.taken)).toBe(true)
})

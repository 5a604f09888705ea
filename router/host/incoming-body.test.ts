import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { incomingBody } from './incoming-body.ts'

const bytes = (size: number) => new Uint8Array(size).fill(size % 251)
const quiet = () => undefined

async function read(chunks: AsyncIterable<Uint8Array>): Promise<number[]> {
  const sizes: number[] = []
  for await (const chunk of chunks) sizes.push(chunk.length)
  return sizes
}

describe('a body that comes in', () => {
  it('is read whole and in order, whoever is ahead', async () => {
    const step = fc.record({ size: fc.integer({ min: 1, max: 90_000 }), waits: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
        const body = incomingBody(quiet, quiet)
        const all = read(body.chunks)
        for (const { size, waits } of steps) {
          body.push(bytes(size))
          if (waits) await turn()
        }
        body.end()
        expect(await all).toEqual(steps.map(({ size }) => size))
      }),
    )
  })

  it('holds its connection up while much waits, and lets it go on when all of that is read', async () => {
    const more = vi.fn()
    const body = incomingBody(more, quiet)
    const reader = body.chunks[Symbol.asyncIterator]()
    expect(body.push(bytes(60_000))).toBe(true)
    expect(body.push(bytes(60_000))).toBe(false)
    await reader.next()
    expect(more).not.toHaveBeenCalled()
    await reader.next()
    expect(more).toHaveBeenCalledTimes(1)
  })

  it('gives what came before an error, then the error, and then is at its end', async () => {
    const body = incomingBody(quiet, quiet)
    body.push(bytes(3))
    body.fail(new Error('cut'))
    const reader = body.chunks[Symbol.asyncIterator]()
    expect((await reader.next()).value).toHaveLength(3)
    await expect(reader.next()).rejects.toThrow('cut')
    expect(await reader.next()).toEqual({ done: true, value: undefined })
  })

  it('tells a reader that waits of an error', async () => {
    const body = incomingBody(quiet, quiet)
    const all = read(body.chunks)
    await turn()
    body.fail(new Error('cut'))
    await expect(all).rejects.toThrow('cut')
  })

  it('says once that its reader left, and only before its end', async () => {
    const left = vi.fn()
    const body = incomingBody(quiet, left)
    body.push(bytes(1))
    for await (const _ of body.chunks) break
    await body.chunks[Symbol.asyncIterator]().return?.()
    expect(left).toHaveBeenCalledTimes(1)
    const whole = incomingBody(quiet, left)
    whole.end()
    await whole.chunks[Symbol.asyncIterator]().return?.()
    expect(left).toHaveBeenCalledTimes(1)
  })
})

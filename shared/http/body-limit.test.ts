import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bodiesInTurn } from './body-limit.ts'

const KB = 1024

describe('long bodies', () => {
  let read: string[]
  let answers: Map<string, () => void>
  let app: Hono
  beforeEach(() => {
    vi.useFakeTimers()
    read = []
    answers = new Map()
    app = new Hono()
    app.post('/:name', bodiesInTurn(250 * KB), async c => {
      const name = c.req.param('name')
      read.push(name)
      await new Promise<void>(done => answers.set(name, done))
      return c.text(name)
    })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const post = (name: string, length: number | undefined) =>
    app.request(`/${name}`, {
      method: 'POST',
      headers: length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) },
    })
  const turn = () => vi.advanceTimersByTimeAsync(0)

  it('are read in the order in which they came, as far as there is room', async () => {
    const all = [post('a', 150 * KB), post('b', undefined), post('c', 150 * KB), post('small', 64 * KB)]
    await turn()
    expect(read).toEqual(['a', 'small'])
    answers.get('a')?.()
    await turn()
    expect(read).toEqual(['a', 'small', 'b'])
    answers.get('b')?.()
    await turn()
    for (const name of ['c', 'small']) answers.get(name)?.()
    expect(await Promise.all(all.map(async one => (await one).text()))).toEqual(['a', 'b', 'c', 'small'])
  })

  it('one that is longer than the room is read by itself', async () => {
    const [first, second] = [post('a', 900 * KB), post('b', 100 * KB)]
    await turn()
    expect(read).toEqual(['a'])
    answers.get('a')?.()
    await turn()
    answers.get('b')?.()
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200])
  })

  it('a slow one keeps others waiting for ten seconds, and gives its room back once', async () => {
    const first = post('a', 200 * KB)
    const others = [post('b', 200 * KB), post('c', 200 * KB)]
    await vi.advanceTimersByTimeAsync(9999)
    expect(read).toEqual(['a'])
    await vi.advanceTimersByTimeAsync(1)
    expect(read).toEqual(['a', 'b'])
    answers.get('a')?.()
    await first
    await turn()
    expect(read).toEqual(['a', 'b'])
    answers.get('b')?.()
    await turn()
    answers.get('c')?.()
    await Promise.all(others)
  })

  it('of one caller hold up no other: each leaves an eighth of the room, and the next is of the one that has the least', async () => {
    const shared = new Hono()
    shared.post(
      '/:name',
      bodiesInTurn(800 * KB, c => c.req.header('x-caller') ?? ''),
      async c => {
        const name = c.req.param('name')
        read.push(name)
        await new Promise<void>(done => answers.set(name, done))
        return c.text(name)
      },
    )
    const send = (caller: string, name: string) =>
      shared.request(`/${name}`, {
        method: 'POST',
        headers: { 'x-caller': caller, 'content-length': String(100 * KB) },
      })
    const all = Array.from({ length: 20 }, (_, n) => send('mallory', `m${n}`))
    await turn()
    expect(read).toHaveLength(7)
    const first = send('victim', 'v0')
    const second = send('victim', 'v1')
    await turn()
    expect(read.slice(7)).toEqual(['v0'])
    answers.get('v0')?.()
    await first
    await turn()
    expect(read.slice(7)).toEqual(['v0', 'v1'])
    await vi.advanceTimersByTimeAsync(10_000)
    for (let rounds = 0; rounds < 20; rounds++) {
      for (const answer of answers.values()) answer()
      await turn()
    }
    await Promise.all([second, ...all])
    expect(read).toHaveLength(22)
  })
})

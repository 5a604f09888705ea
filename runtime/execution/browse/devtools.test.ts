import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../shared/sign/bytes.ts'
import type { SandboxPipe } from '../sandbox/sandboxes.ts'
import { devtools } from './devtools.ts'

const forever = new AbortController().signal

/** A browser by what it answers to each message. */
function saying(answer: (asked: { id: number; method: string }) => Uint8Array[]) {
  const chunks: Uint8Array[] = []
  let more = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<string>()
  let over = false
  const add = (next: readonly Uint8Array[]) => {
    chunks.push(...next)
    more.resolve()
  }
  async function* stdout() {
    while (!over || chunks.length > 0) {
      const next = chunks.shift()
      if (next) yield next
      else {
        await more.promise
        more = Promise.withResolvers<void>()
      }
    }
  }
  const pipe: SandboxPipe = {
    stdout: stdout(),
    unread: 0,
    write: bytes => add(answer(JSON.parse(new TextDecoder().decode(bytes.subarray(0, -1))))),
    ended: ended.promise,
    kill() {
      over = true
      more.resolve()
      ended.resolve('SIGKILL')
    },
  }
  return { pipe, add, end: ended.resolve, killed: () => over }
}

describe('the protocol of a browser', () => {
  it('joins what comes in pieces, and gives each answer to who asked', async () => {
    const browser = saying(({ id, method }) => {
      const whole = utf8(
        `{"method":"Page.x","params":{"frameId":"é"}}\0{"id":${id},"result":{"of":"${method}"}}\0{"id":999,"result":{}}\0`,
      )
      return Array.from(whole, byte => new Uint8Array([byte]))
    })
    const talk = devtools(browser.pipe, forever)
    const heard: unknown[] = []
    talk.onEvent((method, params) => heard.push([method, params]))
    expect(await Promise.all([talk.send('A'), talk.send('B')])).toEqual([{ of: 'A' }, { of: 'B' }])
    expect(heard[0]).toEqual(['Page.x', { frameId: 'é' }])
    await talk.close()
    expect(browser.killed()).toBe(true)
  })

  it('says what was declined, without an end to the talk', async () => {
    const browser = saying(({ id }) => [utf8(`{"id":${id},"error":{"code":-32000,"message":"no such page"}}\0`)])
    const talk = devtools(browser.pipe, forever)
    await expect(talk.send('A')).rejects.toMatchObject({ name: 'Declined', message: 'no such page' })
    await expect(talk.send('B')).rejects.toMatchObject({ name: 'Declined' })
    await talk.close()
  })

  it.each([
    ['no JSON', [utf8('<html>\0')]],
    ['JSON that is no message', [utf8('{"id":"one"}\0')]],
    ['a message without end', Array<Uint8Array>(25).fill(new Uint8Array(1024 * 1024).fill(97))],
  ])('ends with %s, and the browser with it', async (_, answer) => {
    const browser = saying(() => answer)
    const talk = devtools(browser.pipe, forever)
    const failed = { code: 'sandbox_failed', message: expect.stringContaining('what no browser says') }
    await expect(talk.send('A')).rejects.toMatchObject(failed)
    await expect(talk.send('B')).rejects.toMatchObject(failed)
    expect(browser.killed()).toBe(true)
  })

  it('tells who waits why it is over: the browser ended, or it was stopped', async () => {
    const [one, two, stop] = [saying(() => []), saying(() => []), new AbortController()]
    const waits = devtools(one.pipe, forever).send('A')
    one.pipe.kill()
    await expect(waits).rejects.toThrow('the browser ended: SIGKILL')
    const other = devtools(two.pipe, stop.signal).send('A')
    stop.abort(new Error('the time is over'))
    await expect(other).rejects.toThrow('the time is over')
    expect(two.killed()).toBe(true)
  })
})

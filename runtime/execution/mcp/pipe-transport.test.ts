import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../shared/sign/bytes.ts'
import type { SandboxPipe } from '../sandbox/sandboxes.ts'
import { pipeTransport } from './pipe-transport.ts'

/** A program that writes these pieces and ends; what it receives, and what its reader gets. */
async function spoken(pieces: readonly Uint8Array[], end = 'exit code 0', last?: Promise<Uint8Array>) {
  const written: string[] = []
  const heard: unknown[] = []
  const errors: string[] = []
  let killed = 0
  const pipe: SandboxPipe = {
    stdout: (async function* () {
      yield* pieces
      if (last) yield await last
    })(),
    write: bytes => written.push(new TextDecoder().decode(bytes)),
    get unread() {
      return written.length
    },
    ended: Promise.resolve(end),
    kill: () => void killed++,
  }
  const transport = pipeTransport(pipe)
  const closed = Promise.withResolvers<void>()
  transport.onmessage = message => heard.push(message)
  transport.onerror = error => errors.push(error.message)
  transport.onclose = closed.resolve
  await transport.start()
  return { transport, closed: closed.promise, written, heard, errors, killed: () => killed }
}

const cut = (bytes: Uint8Array, at: readonly number[]) => {
  const places = [...new Set(at.map(one => one % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((from, n) => bytes.subarray(from, places[n] ?? bytes.length))
}

describe('a pipe to an MCP server', () => {
  it('gives every message in order, wherever its bytes are cut', async () => {
    const text = fc.string({ unit: 'grapheme' })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ method: text })), fc.array(fc.nat(5000)), async (messages, at) => {
        const bytes = utf8(messages.map(one => `${JSON.stringify(one)}\n`).join(''))
        const { closed, heard, errors } = await spoken(cut(bytes, at))
        await closed
        expect(heard).toEqual(messages)
        expect(errors).toEqual(['the server ended: exit code 0'])
      }),
    )
  })

  it('gives the digits of a number beyond 2^53 in the result of a call, and leaves a list of tools as it is', async () => {
    const result = '"result":{"max":18446744073709551615,"n":1}}\n'
    const lines = Promise.withResolvers<Uint8Array>()
    const { transport, closed, heard } = await spoken([], 'exit code 0', lines.promise)
    const params = { name: 'find', arguments: {} }
    await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    await transport.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params })
    lines.resolve(utf8(`{"jsonrpc":"2.0","id":1,${result}{"jsonrpc":"2.0","id":2,${result}`))
    await closed
    expect(heard).toMatchObject([
      { id: 1, result: { max: 2 ** 64, n: 1 } },
      { id: 2, result: { max: '18446744073709551615', n: 1 } },
    ])
  })

  it('passes over what somebody prints, and tells how the program ended', async () => {
    const { closed, heard, errors } = await spoken([utf8('ready!\n\n{"id":1}\n{"id":2')], 'exit code 3: no licence')
    await closed
    expect(heard).toEqual([{ id: 1 }])
    expect(errors).toEqual(['the server wrote a line that is no message', 'the server ended: exit code 3: no licence'])
  })

  it('ends a program whose line has no end', async () => {
    const piece = new Uint8Array(1024 * 1024).fill(97)
    const { closed, errors, killed } = await spoken(Array.from({ length: 40 }, () => piece))
    await closed
    expect(errors).toEqual([expect.stringContaining('a line of more than')])
    expect(killed()).toBe(1)
  })

  it('answers a server that reads nothing a few times, and goes on calling its tools', async () => {
    const { transport, written } = await spoken([], '', new Promise(() => undefined))
    for (let id = 0; id < 1000; id++) await transport.send({ jsonrpc: '2.0', id, result: {} })
    expect(written.length).toBe(16)
    await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'look' } })
    expect(written.length).toBe(17)
    written.length = 0
    await transport.send({ jsonrpc: '2.0', id: 1000, result: {} })
    expect(written.length).toBe(1)
  })

  it('writes one line for each message, and none once it is closed', async () => {
    const { transport, written, killed } = await spoken([])
    await transport.send({ jsonrpc: '2.0', method: 'a\nb' })
    await transport.close()
    await expect(transport.send({ jsonrpc: '2.0', method: 'late' })).rejects.toThrow('the server has ended')
    expect(written).toEqual(['{"jsonrpc":"2.0","method":"a\\nb"}\n'])
    expect(killed()).toBe(1)
  })
})

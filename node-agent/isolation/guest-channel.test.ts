import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  encodeFrame,
  execPayload,
  FROM_GUEST,
  frameReader,
  PROTOCOL,
  portPayload,
  readReady,
  TO_GUEST,
} from '../guest/frames.ts'
import { collect } from './byte-queue.ts'
import { guestChannel } from './guest-channel.ts'
import { inWorkspace, readListing } from './sandbox-files.ts'

/** A far end by script: it sees the type and id of each frame of the host, and writes what it likes. */
function scripted(answer: (frame: { type: number; id: number }, write: (bytes: Uint8Array) => void) => void) {
  const remote = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      answer({ type: chunk[4]!, id: chunk.readUInt32BE(5) }, bytes => remote.push(bytes))
      done()
    },
  })
  const kills: string[] = []
  const channel = guestChannel({
    input: remote,
    output: remote,
    heartbeatMs: 60,
    kill: reason => kills.push(reason),
    ended: () => {},
  })
  return { channel, remote, kills }
}

const text = (value: string) => new TextEncoder().encode(value)
const hello = { now: new Date(), entropy: new Uint8Array(32), session: 's', diskMb: 1, tmpMb: 1, memoryMb: 1, pids: 1 }
const ready = encodeFrame(FROM_GUEST.ready, 0, new Uint8Array([PROTOCOL, ...text('6.1.0\0s')]))
const joined = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts))
const opened = (id: number) => encodeFrame(FROM_GUEST.opened, id, portPayload(7))
const data = (length: number) => encodeFrame(FROM_GUEST.fromConn, 1, new Uint8Array(length))
const ended = encodeFrame(FROM_GUEST.fromConnEnd, 1)
const command = { argv: ['x'] as [string], deadlineMs: 2000, outputBytes: 100 }

async function greeted(answer: Parameters<typeof scripted>[0]) {
  const made = scripted((frame, write) => {
    if (frame.type === TO_GUEST.hello) write(ready)
    else if (frame.type === TO_GUEST.ping) write(encodeFrame(FROM_GUEST.pong, frame.id))
    else answer(frame, write)
  })
  await made.channel.hello(hello, 1000)
  return made
}

describe('a guest that lies', () => {
  it.each<[string, (id: number) => Uint8Array]>([
    ['announces a frame of gigabytes', () => new Uint8Array([0xff, 0xff, 0xff, 0xff, 67, 0, 0, 0, 1])],
    ['sends a type that does not exist', id => encodeFrame(200, id)],
    ['sends a type that is the host’s', id => encodeFrame(TO_GUEST.exec, id)],
    ['speaks of a command that does not run', () => encodeFrame(FROM_GUEST.stdout, 4242, text('hi'))],
    ['reports an end that cannot be read', id => encodeFrame(FROM_GUEST.exit, id, new Uint8Array([7]))],
    ['answers a ping that was not sent', () => encodeFrame(FROM_GUEST.pong, 999)],
    ['counts input in a way that cannot be read', id => encodeFrame(FROM_GUEST.taken, id, new Uint8Array([1]))],
  ])('and %s is killed, and its command is lost', async (_what, lie) => {
    const { channel, kills } = await greeted(({ type, id }, write) => {
      if (type === TO_GUEST.exec) setImmediate(() => write(lie(id)))
    })
    const exec = await channel.exec(command)
    expect(await exec.exit).toMatchObject({ kind: 'lost' })
    expect(kills).toHaveLength(1)
    await expect(channel.exec(command)).rejects.toMatchObject({ code: 'exec_failed' })
  })

  it.each<[string, (write: (bytes: Uint8Array) => void) => void]>([
    ['opens a port that nobody answers', write => write(encodeFrame(FROM_GUEST.opened, 1, portPayload(8)))],
    ['opens a connection twice', write => write(joined(opened(1), opened(1)))],
    [
      'opens more than an agent has room for',
      write => write(joined(...Array.from({ length: 33 }, (_, at) => opened(at + 1)))),
    ],
    ['speaks on a connection that is not open', write => write(encodeFrame(FROM_GUEST.fromConn, 5, text('hi')))],
    [
      'sends more than it was granted',
      write => write(joined(opened(1), ...Array.from({ length: 8 }, () => data(32_768)))),
    ],
    ['ends a connection twice', write => write(joined(opened(1), ended, ended))],
    ['goes on after an end', write => write(joined(opened(1), ended, data(1)))],
  ])('and %s is killed', async (_what, lie) => {
    const { channel, kills, remote } = await greeted(() => {})
    // There is no reader: what is granted is what there was at the start.
    await channel.serve(7, () => {})
    lie(bytes => remote.push(bytes))
    await expect.poll(() => kills).toHaveLength(1)
  })

  it('and is gone keeps nobody waiting for an answer, whenever it was asked', async () => {
    const { channel, remote } = await greeted(() => {})
    remote.destroy()
    await channel.close('it is gone')
    await channel.ping()
  })

  it('and never greets is given up', async () => {
    const { channel } = scripted(() => {})
    await expect(channel.hello(hello, 50)).rejects.toMatchObject({ code: 'start_failed' })
  })

  it('and sends rubbish, whatever it is, ends in a kill or in nothing, never in a crash', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 60 }), async rubbish => {
        const { channel, remote, kills } = await greeted(({ type, id }, write) => {
          if (type === TO_GUEST.kill) write(encodeFrame(FROM_GUEST.exit, id, new Uint8Array([1, 9, 0])))
        })
        const exec = await channel.exec({ ...command, deadlineMs: 30 })
        remote.push(rubbish)
        const exit = await exec.exit
        expect(['lost', 'limit', 'code', 'signal']).toContain(exit.kind)
        expect(kills.length).toBeLessThanOrEqual(1)
        await channel.close('done')
      }),
      { numRuns: 30 },
    )
  })
})

describe('a guest that does not do as it is told', () => {
  it('and ignores the kill of its command loses the sandbox', async () => {
    const { channel, kills } = await greeted(() => {})
    const exec = await channel.exec({ ...command, deadlineMs: 20 })
    expect(await exec.exit).toMatchObject({ kind: 'limit', limit: 'time' })
    expect(kills).toEqual(['a command that was killed did not end'])
  })

  it('and floods is cut at the cap, with what came before', async () => {
    const { channel } = await greeted(({ type, id }, write) => {
      if (type === TO_GUEST.exec)
        for (let n = 0; n < 50; n++) write(encodeFrame(FROM_GUEST.stdout, id, text('0123456789')))
      if (type === TO_GUEST.kill) write(encodeFrame(FROM_GUEST.exit, id, new Uint8Array([1, 9, 0])))
    })
    const exec = await channel.exec(command)
    expect((await collect(exec.stdout)).length).toBe(100)
    expect(await exec.exit).toMatchObject({ kind: 'limit', limit: 'output' })
  })
})

describe('frames', () => {
  it('are read the same however the stream is cut', () => {
    const type = fc.constantFrom(...Object.values(FROM_GUEST))
    const frames = fc.array(fc.record({ type, id: fc.nat(), payload: fc.uint8Array({ maxLength: 30 }) }), {
      maxLength: 8,
    })
    fc.assert(
      fc.property(frames, fc.integer({ min: 1, max: 20 }), (given, step) => {
        const bytes = Buffer.concat(given.map(one => encodeFrame(one.type, one.id, one.payload)))
        const read = frameReader()
        const seen = []
        for (let at = 0; at < bytes.length; at += step) seen.push(...read(bytes.subarray(at, at + step)))
        expect(seen.map(one => ({ ...one, payload: [...one.payload] }))).toEqual(
          given.map(one => ({ ...one, payload: [...one.payload] })),
        )
      }),
    )
  })

  it('of a command that holds a NUL or is too long are not made', () => {
    expect(execPayload('/work', ['a\0b'], {})).toBeUndefined()
    expect(execPayload('/work', ['x'.repeat(300_000)], {})).toBeUndefined()
    expect(
      execPayload(
        '/work',
        Array.from({ length: 5000 }, () => 'x'),
        {},
      ),
    ).toBeUndefined()
    expect(new TextDecoder().decode(execPayload('/w', ['a', 'b'], { C: 'd' })!.subarray(4))).toBe('/w\0a\0b\0C=d\0')
  })

  it('of another version are refused', () => {
    expect(() => readReady(new Uint8Array([9, ...text('6.1\0s')]))).toThrow('speaks version 9')
  })
})

describe('names of files', () => {
  it('never lead out of the workspace', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('..', '.', 'a', '/', '', 'work', '//')), parts => {
        const path = parts.join('/')
        try {
          expect(inWorkspace(path)).toMatch(/^\/work(?:\/(?!.*\.\.)|$)/)
        } catch (error) {
          expect(error).toMatchObject({ code: 'file_failed' })
        }
      }),
    )
  })

  it('in a list that a guest made up are refused', () => {
    expect(readListing(text('f\x005\0name\0'))).toEqual([{ name: 'name', kind: 'file', bytes: 5 }])
    for (const lie of ['x\x005\0name\0', 'f\0-5\0name\0', 'f\x005\0', 'toString\x001\0n\0']) {
      expect(() => readListing(text(lie))).toThrow('cannot be read')
    }
  })
})

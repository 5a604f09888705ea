import { Duplex } from 'node:stream'
import {
  FROM_GUEST,
  type Frame,
  FrameError,
  numberPayload,
  readNumber,
  readPort,
  TO_GUEST,
  WINDOW,
} from '../guest/frames.ts'

/** Connections that the agent has room for. */
const MAX_CONNECTIONS = 32
const PIECE = 32_768

const OF_CONNECTIONS: ReadonlySet<number> = new Set([
  FROM_GUEST.opened,
  FROM_GUEST.fromConn,
  FROM_GUEST.fromConnEnd,
  FROM_GUEST.connTaken,
  FROM_GUEST.gone,
])

export const isOfConnection = ({ type }: Frame): boolean => OF_CONNECTIONS.has(type)

interface Connection {
  stream: Duplex
  /** Bytes that came and were not granted again. */
  owed: number
  /** Of those, what the reader has not asked for yet. */
  unread: number
  /** How much the guest takes. */
  window: number
  wake: (() => void) | undefined
  /** The guest says no more. */
  ended: boolean
}

/**
 * The host's end of connections that commands in a sandbox open to ports of their loopback. There is no network between the
 * two: each connection is a stream of frames in the agent's channel, in which neither side may send more than was granted.
 */
export function guestConnections(send: (type: number, id: number, payload?: Uint8Array) => void) {
  const open = new Map<number, Connection>()
  const answering = new Map<number, (stream: Duplex) => void>()

  function grant(id: number, one: Connection, bytes: number): void {
    if (bytes === 0 || one.ended) return
    one.owed -= bytes
    send(TO_GUEST.credit, id, numberPayload(bytes))
  }

  async function deliver(id: number, one: Connection, chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      while (one.window === 0) {
        await new Promise<void>(resolve => {
          one.wake = resolve
        })
      }
      if (one.stream.destroyed) return
      const piece = chunk.subarray(at, at + Math.min(one.window, PIECE))
      one.window -= piece.length
      at += piece.length
      send(TO_GUEST.toConn, id, piece)
    }
  }

  function begin(id: number, accept: (stream: Duplex) => void): void {
    const stream: Duplex = new Duplex({
      allowHalfOpen: true,
      read() {
        const { unread } = one
        one.unread = 0
        grant(id, one, unread)
      },
      write(chunk: Uint8Array, _encoding, done) {
        deliver(id, one, chunk).then(() => done(), done)
      },
      final(done) {
        send(TO_GUEST.toConnEnd, id)
        done()
      },
      destroy(error, done) {
        one.window = 1
        one.wake?.()
        // After an orderly end the guest is about to say that it is gone; what it has left to write it writes.
        if (!one.ended || !stream.writableFinished) send(TO_GUEST.reset, id)
        done(error)
      },
    })
    const one: Connection = {
      stream,
      owed: 0,
      unread: 0,
      window: WINDOW,
      wake: undefined,
      ended: false,
    }
    open.set(id, one)
    // A guest that hangs up is no fault.
    stream.on('error', () => undefined)
    accept(stream)
  }

  function receive(id: number, one: Connection, payload: Uint8Array): void {
    one.owed += payload.length
    if (one.owed > WINDOW) throw new FrameError(`The guest sent more on connection ${id} than it was granted.`)
    if (one.ended) throw new FrameError(`The guest went on after the end of connection ${id}.`)
    if (one.stream.destroyed) return
    one.unread += payload.length
    if (one.stream.push(payload.slice())) {
      const { unread } = one
      one.unread = 0
      grant(id, one, unread)
    }
  }

  return {
    /** How connections to a port are handled; the caller informs the agent. */
    answer(port: number, accept: (stream: Duplex) => void): void {
      answering.set(port, accept)
    },

    answers: (port: number): boolean => answering.has(port),

    take({ type, id, payload }: Frame): void {
      if (type === FROM_GUEST.opened) {
        const accept = answering.get(readPort(payload))
        if (accept === undefined || open.has(id) || open.size >= MAX_CONNECTIONS) {
          throw new FrameError(`The guest opened a connection ${id} that no agent opens.`)
        }
        begin(id, accept)
        return
      }
      const one = open.get(id)
      if (one === undefined) throw new FrameError(`The guest spoke of the connection ${id}, which is not open.`)
      if (type === FROM_GUEST.fromConn) receive(id, one, payload)
      else if (type === FROM_GUEST.fromConnEnd) {
        if (one.ended) throw new FrameError(`The guest ended connection ${id} twice.`)
        one.ended = true
        if (!one.stream.destroyed) one.stream.push(null)
      } else if (type === FROM_GUEST.gone) {
        open.delete(id)
        // It let go of it in the middle only when it was told to, or is lying, and then the stream has no end.
        if (!one.ended) one.stream.destroy()
      } else {
        one.window = Math.min(WINDOW, one.window + readNumber(payload))
        const { wake } = one
        one.wake = undefined
        wake?.()
      }
    },

    /** The channel is gone, and so is every connection. */
    close(): void {
      for (const { stream } of open.values()) stream.destroy()
      open.clear()
    },
  }
}

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

type Send = (type: number, id: number, payload?: Uint8Array) => void

/** One connection: a stream for the host's side, and what its frames do. Neither side sends more than it was granted. */
function connection(id: number, send: Send) {
  /** Bytes that came and were not granted again. */
  let owed = 0
  /** Of those, what the reader has not asked for yet. */
  let unread = 0
  /** How much the guest takes. */
  let window = WINDOW
  let wake: (() => void) | undefined
  /** The guest says no more. */
  let ended = false

  function grant(): void {
    const bytes = unread
    unread = 0
    if (bytes === 0 || ended) return
    owed -= bytes
    send(TO_GUEST.credit, id, numberPayload(bytes))
  }

  async function deliver(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      while (window === 0) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
      if (stream.destroyed) return
      const piece = chunk.subarray(at, at + Math.min(window, PIECE))
      window -= piece.length
      at += piece.length
      send(TO_GUEST.toConn, id, piece)
    }
  }

  const stream: Duplex = new Duplex({
    allowHalfOpen: true,
    read: grant,
    write(chunk: Uint8Array, _encoding, done) {
      deliver(chunk).then(() => done(), done)
    },
    final(done) {
      send(TO_GUEST.toConnEnd, id)
      done()
    },
    destroy(error, done) {
      window = 1
      wake?.()
      // After an orderly end the guest is about to say that it is gone; what it has left to write it writes.
      if (!ended || !stream.writableFinished) send(TO_GUEST.reset, id)
      done(error)
    },
  })
  // A guest that hangs up is no fault.
  stream.on('error', () => undefined)

  return {
    stream,
    receive(payload: Uint8Array): void {
      owed += payload.length
      if (owed > WINDOW) throw new FrameError(`The guest sent more on connection ${id} than it was granted.`)
      if (ended) throw new FrameError(`The guest went on after the end of connection ${id}.`)
      if (stream.destroyed) return
      unread += payload.length
      if (stream.push(payload.slice())) grant()
    },
    end(): void {
      if (ended) throw new FrameError(`The guest ended connection ${id} twice.`)
      ended = true
      if (!stream.destroyed) stream.push(null)
    },
    /** It let go of it in the middle only when it was asked to, or is lying, and then the stream has no end. */
    gone(): void {
      if (!ended) stream.destroy()
    },
    credit(bytes: number): void {
      window = Math.min(WINDOW, window + bytes)
      const waiting = wake
      wake = undefined
      waiting?.()
    },
  }
}

/**
 * The host's end of connections that commands in a sandbox open to ports of their loopback. There is no network between the
 * two: each connection is a stream of frames in the agent's channel.
 */
export function guestConnections(send: Send) {
  const open = new Map<number, ReturnType<typeof connection>>()
  const answering = new Map<number, (stream: Duplex) => void>()

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
        const one = connection(id, send)
        open.set(id, one)
        accept(one.stream)
        return
      }
      const one = open.get(id)
      if (one === undefined) throw new FrameError(`The guest spoke of the connection ${id}, which is not open.`)
      if (type === FROM_GUEST.fromConn) one.receive(payload)
      else if (type === FROM_GUEST.fromConnEnd) one.end()
      else if (type === FROM_GUEST.gone) {
        open.delete(id)
        one.gone()
      } else one.credit(readNumber(payload))
    },

    /** The channel is gone, and so is every connection. */
    close(): void {
      for (const { stream } of open.values()) stream.destroy()
      open.clear()
    },
  }
}

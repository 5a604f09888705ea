import { createServer, type Socket } from 'node:net'
import type { Bind } from '../../http/bind.ts'
import { listenAt } from '../serve.ts'

interface Taker {
  send: (connection: number, socket: Socket) => void
  /** What it has not confirmed, the oldest first. */
  pending: Map<number, { socket: Socket; sinceMs: number }>
}

/** A process that has not confirmed a connection for so long is stopped, or computes: others are given what comes. */
const LATE_MS = 1000

/** Connections that wait for a process to be started, at most. */
const WAITING = 1024

/** Of all connections of this process, whichever door they came by. */
let count = 0

export type Acceptor = Awaited<ReturnType<typeof acceptor>>

/**
 * Accepts the connections of a service and hands each to the next of its processes. Each is held open here until its process confirms it, before
 * that process reads any of it; where a process ends first, another one gets the connection.
 */
export async function acceptor(bind: Bind, monotonic: () => number = () => performance.now()) {
  const takers: Taker[] = []
  const waiting: Socket[] = []
  let next = 0
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, socket => {
    socket.on('error', () => undefined)
    hand(socket)
  })
  const origin = await listenAt(server, bind)

  function isLate({ pending }: Taker): boolean {
    const [oldest] = pending.values()
    return oldest !== undefined && monotonic() - oldest.sinceMs > LATE_MS
  }

  /** The next in turn that confirms what it is sent; where none does, the next in turn. */
  function nextTaker(): Taker | undefined {
    const first = takers[next++ % Math.max(1, takers.length)]
    for (let tried = 1, one = first; one !== undefined && tried <= takers.length; tried++) {
      if (!isLate(one)) return one
      one = takers[next++ % takers.length]
    }
    return first
  }

  function hand(socket: Socket): void {
    const taker = nextTaker()
    if (taker === undefined) {
      if (waiting.length < WAITING) waiting.push(socket)
      else socket.destroy()
      return
    }
    taker.pending.set(++count, { socket, sinceMs: monotonic() })
    taker.send(count, socket)
  }

  return {
    origin,
    /** From now on it gets connections. */
    join(send: Taker['send']) {
      const taker: Taker = { send, pending: new Map() }
      takers.push(taker)
      for (const socket of waiting.splice(0)) hand(socket)
      const leave = () => {
        const at = takers.indexOf(taker)
        if (at >= 0) takers.splice(at, 1)
      }
      return {
        took(connection: number): void {
          taker.pending.get(connection)?.socket.destroy()
          taker.pending.delete(connection)
        },
        /** It gets no more. */
        leave,
        /** It ended. */
        ended(): void {
          leave()
          const left = [...taker.pending.values()]
          taker.pending.clear()
          for (const { socket } of left) hand(socket)
        },
      }
    },
    /** Accepts no more; what no process has taken is closed. */
    close(): void {
      server.close()
      for (const socket of waiting.splice(0)) socket.destroy()
    },
  }
}

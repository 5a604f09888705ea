import type { Reached } from '../../shared/wire/runtime/journal.ts'

interface Destination {
  host: string
  port: number
  address?: string
}

/** What counts its own bytes, as a socket does. */
interface Counted {
  readonly bytesRead: number
  readonly bytesWritten: number
  once(event: 'close', listener: () => void): unknown
}

/** Places of one step that have a row of their own; a journal must not grow with what a program scans. */
const MOST_PLACES = 100
const MORE = '(more)'

export type ReachedPlaces = ReturnType<typeof reachedPlaces>

/** Which places a sandbox has reached since this was last asked for, with the bytes that passed; open connections count as they go. */
export function reachedPlaces() {
  let rows = new Map<string, Reached>()
  const open = new Map<Counted, { place: Destination; sent: number; received: number }>()

  function row({ host, ...more }: Destination): Reached {
    // No name of a host is longer.
    const place: Destination = { host: host.slice(0, 253), ...more }
    const key = `${place.host} ${place.port} ${place.address ?? ''}`
    const known = rows.get(key) ?? (rows.size < MOST_PLACES ? undefined : rows.get(MORE))
    if (known) return known
    const named: Destination = rows.size < MOST_PLACES ? place : { host: MORE, port: 0 }
    const made = { ...named, calls: 0, refused: 0, sentBytes: 0, receivedBytes: 0 }
    rows.set(rows.size < MOST_PLACES ? key : MORE, made)
    return made
  }

  function settle(socket: Counted): void {
    const seen = open.get(socket)
    if (!seen) return
    const [sent, received] = [socket.bytesWritten - seen.sent, socket.bytesRead - seen.received]
    if (sent === 0 && received === 0) return
    const one = row(seen.place)
    one.sentBytes += sent
    one.receivedBytes += received
    seen.sent += sent
    seen.received += received
  }

  return {
    refused(place: Destination): void {
      row(place).refused += 1
    },
    connected(place: Destination, socket: Counted): void {
      row(place).calls += 1
      open.set(socket, { place, sent: 0, received: 0 })
      socket.once('close', () => {
        settle(socket)
        open.delete(socket)
      })
    },
    take(): Reached[] {
      for (const socket of open.keys()) settle(socket)
      const taken = [...rows.values()]
      rows = new Map()
      return taken
    },
  }
}

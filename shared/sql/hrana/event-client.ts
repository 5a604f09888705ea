import { readLane } from './read-lane.ts'
import { type HranaLanes, hranaClient, type ServerClient } from './server-client.ts'
import { type HranaStream, type HranaTransport, hranaStream } from './stream.ts'
import { bare } from './wire.ts'
import { writeLane } from './write-lane.ts'
import { writeWatch } from './write-watch.ts'

export interface EventClientOptions {
  url: string
  transport: HranaTransport
  monotonic?: () => number
}

/** How many idle streams are kept. A server ends each after 10 s. */
const MOST_IDLE = 4

/**
 * A client for a host whose timers and connections end with the event that opened them, where one store serves many events. Each call sends
 * a request of its own, in the event of its caller, and waits for no other call. What events hand to each other is an idle stream, which is a
 * name at the server. A stream whose event ended in the middle of a request is lost, and the server undoes what it left open.
 */
export function eventClient({ url, transport, monotonic }: EventClientOptions): ServerClient {
  const idle: HranaStream[] = []
  const open = () => hranaStream({ url, transport, ...(monotonic && { monotonic }) })

  async function borrow<T>(act: (stream: HranaStream) => Promise<T>): Promise<T> {
    const stream = idle.pop() ?? open()
    try {
      return await act(stream)
    } finally {
      if (idle.length < MOST_IDLE) idle.push(stream)
      else await stream.close()
    }
  }

  const atOnce = async () => undefined
  const reader: ReturnType<HranaLanes['reader']> = {
    execute: statement => borrow(stream => readLane(stream, atOnce).execute(statement)),
    batch: statements => borrow(stream => readLane(stream, atOnce).batch(statements)),
  }
  const watch = writeWatch({ read: () => reader.execute(bare('select 1')) })
  const lane = (stream: HranaStream) => writeLane({ stream, once: open, timed: watch.timed })
  const forget = async () => void (await Promise.all(idle.splice(0).map(stream => stream.close())))

  return hranaClient({
    health: watch.health,
    reader: () => reader,
    writer: () => ({
      execute: statement => borrow(stream => lane(stream).execute(statement)),
      transaction: statements => borrow(stream => lane(stream).transaction(statements)),
      script: sql => borrow(stream => lane(stream).script(sql)),
    }),
    renew: forget,
    async end() {
      await forget()
      await transport.close()
    },
  })
}

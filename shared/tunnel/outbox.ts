import { type Log, REPEATS_OMITTED, rateLimitedLog } from '../log/log.ts'
import { systemClock } from '../time/clock.ts'
import { sleep } from '../time/sleep.ts'
import type { Channel, Frame } from './channel.ts'

export interface OutboxRow<Out> {
  id: number
  frame: Out
}

/** Frames that stand in a store until the other end has acted on them, in the order of their ids. */
export interface OutboxStore<Out> {
  read(afterId: number, most: number): Promise<OutboxRow<Out>[]>
  /** Everything up to this id has arrived. */
  remove(upToId: number): Promise<void>
}

export interface Outbox {
  /** Something new may be in the store; `soon`: a caller waits for it. Cheap to call often. */
  wake(soon?: boolean): void
  /** For the channel's `onAcked`. */
  acked(seq: number): void
  close(): Promise<void>
}

/** Makes one frame of many, where the other end takes such. */
export interface Bundling<Out> {
  on: () => boolean
  bundle: (frames: Out[]) => Out
  /** About how many bytes a frame takes on the wire. */
  weigh: (frame: Out) => number
}

const PAGE = 500
/** An eighth of what a frame may be. */
const MOST_BUNDLE_BYTES = 512 * 1024
const AGAIN_MS = 500
/** What comes within this time goes out together, so that both ends commit once for it. */
const GATHER_MS = 5
/** While frames keep coming that no caller waits for, more is gathered: each batch is a commit with an fsync at the other end. */
const STEADY_MS = 50
const STEADY_FOR_MS = 100
/** Frames that have arrived are removed this much later, all at once; nothing waits for that. */
const TAKE_OUT_MS = 100

/** Moves what is in the store over a channel, in order, and takes out of it what has arrived. */
export function outbox<Out extends Frame, In extends Frame>(
  store: OutboxStore<Out>,
  channel: () => Channel<Out, In>,
  log: Log,
  bundling?: Bundling<Out>,
): Outbox {
  const once = rateLimitedLog(systemClock)
  let sentId = 0
  let again = true
  let working: Promise<void> | undefined
  let closed = false
  let sentAtMs = Number.NEGATIVE_INFINITY
  /** Which row went out under which number. */
  const numbers: { seq: number; id: number }[] = []
  let arrived = 0
  let removed = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let removing: Promise<void> = Promise.resolve()
  let awaited = false
  let hurry = () => {}

  /** A frame that a caller waits for goes at once where the other end is idle; where it is still at the last batch, the next is larger. */
  async function gather(): Promise<void> {
    const steady = performance.now() - sentAtMs < STEADY_FOR_MS
    if (steady && !awaited) {
      const hurried = new AbortController()
      hurry = () => hurried.abort()
      await sleep(STEADY_MS - GATHER_MS, hurried.signal).catch(() => undefined)
      hurry = () => {}
    }
    await sleep(GATHER_MS)
    awaited = false
  }

  async function pump(): Promise<void> {
    while (again && !closed) {
      await gather()
      again = false
      if (closed) break
      try {
        for (;;) {
          const rows = await store.read(sentId, PAGE)
          for (const { id, frame } of bundled(rows, bundling)) {
            if (closed) return
            const seq = await channel().send(frame)
            sentId = id
            numbers.push({ seq, id })
          }
          if (rows.length > 0) sentAtMs = performance.now()
          if (rows.length < PAGE) break
        }
      } catch (error) {
        // It stands in the store for the next process.
        if (closed) break
        once('read', () =>
          log.error(`what waits for the other end could not be read and is tried again; ${REPEATS_OMITTED}`, { error }),
        )
        again = true
        await sleep(AGAIN_MS)
      }
    }
    working = undefined
  }

  async function takeOut(): Promise<void> {
    timer = undefined
    if (arrived === removed) return
    try {
      const upTo = arrived
      await store.remove(upTo)
      removed = upTo
    } catch (error) {
      // It goes out once more after the next start; the other end knows it by then.
      once('removed', () =>
        log.warn(`what has arrived could not be taken out of the store; ${REPEATS_OMITTED}`, { error }),
      )
    }
  }

  return {
    wake(soon = false) {
      again = true
      if (soon && channel().unacknowledged === 0) {
        awaited = true
        hurry()
      }
      if (!closed && working === undefined) working = pump()
    },
    acked(seq) {
      while (numbers[0] !== undefined && numbers[0].seq <= seq) arrived = numbers.shift()!.id
      if (arrived === removed || closed) return
      timer ??= setTimeout(() => {
        removing = takeOut()
      }, TAKE_OUT_MS)
    },
    async close() {
      closed = true
      clearTimeout(timer)
      await removing
      await takeOut()
    },
  }
}

/** The same rows in fewer frames, each under the id of the last one in it. */
function* bundled<Out>(
  rows: readonly OutboxRow<Out>[],
  bundling: Bundling<Out> | undefined,
): Generator<OutboxRow<Out>> {
  if (!bundling?.on()) return yield* rows
  let open: OutboxRow<Out>[] = []
  let bytes = 0
  const close = (): OutboxRow<Out>[] => {
    const last = open.at(-1)
    const made =
      last && open.length > 1 ? { id: last.id, frame: bundling.bundle(open.map(({ frame }) => frame)) } : last
    open = []
    bytes = 0
    return made ? [made] : []
  }
  for (const row of rows) {
    const size = bundling.weigh(row.frame)
    if (bytes + size > MOST_BUNDLE_BYTES) yield* close()
    open.push(row)
    bytes += size
  }
  yield* close()
}

import { wasi } from '@bjorn3/browser_wasi_shim'

const SUBSCRIPTION_BYTES = 48
const EVENT_BYTES = 32
const never = new Int32Array(new SharedArrayBuffer(4))

/** `poll_oneoff` of preview 1: files and streams are always ready, and a clock is waited for by sleeping. */
export function poll(memory: DataView, [inAt = 0, outAt = 0, count = 0, readyAt = 0]: readonly number[]): number {
  if (count === 0) return wasi.ERRNO_INVAL
  const asked = Array.from({ length: count }, (_, index) => subscription(memory, inAt + index * SUBSCRIPTION_BYTES))
  if (asked.every(({ type }) => type === wasi.EVENTTYPE_CLOCK)) {
    const soonest = Math.min(...asked.map(({ msLeft }) => msLeft()))
    if (soonest > 0) Atomics.wait(never, 0, 0, soonest)
  }
  const ready = asked.filter(({ type, msLeft }) => type !== wasi.EVENTTYPE_CLOCK || msLeft() <= 0)
  // A timer may wake a moment early, and an answer without an event is none.
  for (const [index, one] of (ready.length > 0 ? ready : asked.slice(0, 1)).entries()) {
    const at = outAt + index * EVENT_BYTES
    for (let word = 0; word < EVENT_BYTES; word += 8) memory.setBigUint64(at + word, 0n, true)
    memory.setBigUint64(at, one.userdata, true)
    memory.setUint8(at + 10, one.type)
    if (one.type !== wasi.EVENTTYPE_CLOCK) memory.setBigUint64(at + 16, 1n, true)
  }
  memory.setUint32(readyAt, Math.max(ready.length, 1), true)
  return wasi.ERRNO_SUCCESS
}

function subscription(memory: DataView, at: number) {
  const [clock, flags] = [memory.getUint32(at + 16, true), memory.getUint16(at + 40, true)]
  const now = () => (clock === wasi.CLOCKID_REALTIME ? Date.now() : performance.now())
  const time = Number(memory.getBigUint64(at + 24, true)) / 1e6
  const until = (flags & wasi.SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME) !== 0 ? time : now() + time
  return { userdata: memory.getBigUint64(at, true), type: memory.getUint8(at + 8), msLeft: () => until - now() }
}

/** Frames between the host and the agent in a sandbox (agent.c): u32 length, u8 type, u32 id, payload; big endian. */
export const TO_GUEST = {
  hello: 1,
  ping: 2,
  exec: 3,
  stdin: 4,
  stdinEnd: 5,
  kill: 6,
  // Connections that commands open to a port on which the host answers.
  listen: 7,
  toConn: 8,
  toConnEnd: 9,
  credit: 10,
  reset: 11,
} as const
export const FROM_GUEST = {
  ready: 65,
  pong: 66,
  stdout: 67,
  stderr: 68,
  taken: 69,
  exit: 70,
  failed: 71,
  opened: 72,
  fromConn: 73,
  fromConnEnd: 74,
  connTaken: 75,
  gone: 76,
} as const

export const PROTOCOL = 2
const HEADER = 9
/** No honest agent sends more than 32 KiB at once. */
const MAX_FROM_GUEST = 64 * 1024
/** What the agent accepts; a command line of this size is refused before it is sent. */
export const MAX_TO_GUEST = 256 * 1024
/** How much input of one command, or of one connection in each direction, may be under way. */
export const WINDOW = 64 * 1024

export interface Frame {
  type: number
  id: number
  payload: Uint8Array
}

/** The guest sent what no agent sends. It is not spoken to again. */
export class FrameError extends Error {
  override name = 'FrameError'
}

export function encodeFrame(type: number, id: number, payload: Uint8Array = new Uint8Array()): Uint8Array {
  const frame = new Uint8Array(HEADER + payload.length)
  const view = new DataView(frame.buffer)
  view.setUint32(0, payload.length)
  view.setUint8(4, type)
  view.setUint32(5, id)
  frame.set(payload, HEADER)
  return frame
}

const KNOWN: ReadonlySet<number> = new Set(Object.values(FROM_GUEST))

/** Takes bytes as they come and gives back whole frames; keeps at most one unfinished one. */
export function frameReader() {
  let kept = new Uint8Array()
  return (chunk: Uint8Array): Frame[] => {
    const bytes = new Uint8Array(kept.length + chunk.length)
    bytes.set(kept)
    bytes.set(chunk, kept.length)
    const view = new DataView(bytes.buffer)
    const frames: Frame[] = []
    let at = 0
    while (bytes.length - at >= HEADER) {
      const length = view.getUint32(at)
      const type = view.getUint8(at + 4)
      if (length > MAX_FROM_GUEST) throw new FrameError(`The guest announced a frame of ${length} bytes.`)
      if (!KNOWN.has(type)) throw new FrameError(`The guest sent a frame of the unknown type ${type}.`)
      if (bytes.length - at < HEADER + length) break
      const id = view.getUint32(at + 5)
      frames.push({ type, id, payload: bytes.subarray(at + HEADER, at + HEADER + length) })
      at += HEADER + length
    }
    kept = bytes.slice(at)
    return frames
  }
}

export interface Hello {
  now: Date
  entropy: Uint8Array
  session: string
  diskMb: number
  tmpMb: number
  memoryMb: number
  pids: number
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export function helloPayload({ now, entropy, session, diskMb, tmpMb, memoryMb, pids }: Hello): Uint8Array {
  const name = encoder.encode(session)
  const payload = new Uint8Array(56 + name.length)
  const view = new DataView(payload.buffer)
  view.setBigUint64(0, BigInt(now.getTime()))
  view.setUint32(8, diskMb)
  view.setUint32(12, tmpMb)
  view.setUint32(16, memoryMb)
  view.setUint32(20, pids)
  payload.set(entropy.subarray(0, 32), 24)
  payload.set(name, 56)
  return payload
}

/** What READY says: the kernel inside, and the session it was greeted with. */
export function readReady(payload: Uint8Array): { kernelRelease: string; session: string } {
  if (payload[0] !== PROTOCOL) throw new FrameError(`The guest speaks version ${payload[0]}, not ${PROTOCOL}.`)
  const [kernelRelease, session] = decoder.decode(payload.subarray(1)).split('\0')
  if (kernelRelease === undefined || session === undefined || !/^[\w.+~-]{1,80}$/.test(kernelRelease)) {
    throw new FrameError('The guest sent a greeting that cannot be read.')
  }
  return { kernelRelease, session }
}

/** Undefined when it is too long for the agent, or holds a NUL, which would end a word early. */
export function execPayload(cwd: string, argv: readonly string[], env: Readonly<Record<string, string>>) {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const words = [cwd, ...argv, ...variables]
  if (words.some(word => word.includes('\0')) || argv.length + variables.length > 4000) return undefined
  const texts = encoder.encode(words.map(word => `${word}\0`).join(''))
  if (texts.length + 4 > MAX_TO_GUEST) return undefined
  const payload = new Uint8Array(4 + texts.length)
  const view = new DataView(payload.buffer)
  view.setUint16(0, argv.length)
  view.setUint16(2, variables.length)
  payload.set(texts, 4)
  return payload
}

export interface GuestExit {
  signalled: boolean
  value: number
  /** Limits of which the agent saw the counters move, or the file system full. */
  seen: { memory: boolean; pids: boolean; disk: boolean }
}

export function readExit(payload: Uint8Array): GuestExit {
  const [signalled, value, flags] = payload
  if (signalled === undefined || value === undefined || flags === undefined || signalled > 1) {
    throw new FrameError('The guest reported an end that cannot be read.')
  }
  return {
    signalled: signalled === 1,
    value,
    seen: { memory: (flags & 1) !== 0, pids: (flags & 2) !== 0, disk: (flags & 4) !== 0 },
  }
}

/** Of LISTEN and OPENED. */
export function portPayload(port: number): Uint8Array {
  return new Uint8Array([port >> 8, port & 255])
}

export function readPort(payload: Uint8Array): number {
  if (payload.length !== 2) throw new FrameError('The guest sent a port that cannot be read.')
  return (payload[0]! << 8) | payload[1]!
}

export function numberPayload(value: number): Uint8Array {
  const payload = new Uint8Array(4)
  new DataView(payload.buffer).setUint32(0, value)
  return payload
}

/** The one number of TAKEN and FAILED. */
export function readNumber(payload: Uint8Array): number {
  if (payload.length !== 4) throw new FrameError('The guest sent a number that cannot be read.')
  return new DataView(payload.buffer, payload.byteOffset, 4).getUint32(0)
}

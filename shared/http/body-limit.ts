import type { Context, MiddlewareHandler } from 'hono'
import { createMiddleware } from 'hono/factory'
import { joined } from '../sign/bytes.ts'
import { ApiError } from './api-error.ts'

/** Refuses a body that announces itself as too large before a byte of it is read, whatever the path. */
export function announcedBodyLimit(maxBytes: number) {
  return createMiddleware(async (c, next) => {
    const announced = c.req.header('content-length')
    if (announced !== undefined && Number(announced) > maxBytes) throw tooLarge(maxBytes)
    await next()
  })
}

/** Bodies up to this wait for no other. */
const SMALL = 64 * 1024
/** What a body counts that does not say its length: most are short, and calls that wait for minutes must not take each other's turns for them. */
const UNSAID = 128 * 1024
/** So long a body keeps others waiting at most: its sender may be slow, and a call may wait for minutes after it has been read. */
const LONGEST_TURN_MS = 10_000

/** A caller of which others wait for room, or that has some. */
interface Caller {
  taken: number
  waiting: { bytes: number; enter: () => void }[]
}

/**
 * Whether one of several that share a room leaves the others some of it (decision 122): it takes at most seven times what stays free, so that
 * one alone leaves an eighth, and any number of them leaves something.
 */
export const leavesRoom = (own: number, free: number): boolean => own <= 7 * free

/**
 * Long bodies are read in turns, so that what they become in memory, several times their length, has a bound however many come at once. The
 * next is of the caller that has the least, and none takes all of the room: its bodies may be slow.
 */
export function bodiesInTurn(room: number, callerOf?: (context: Context) => string): MiddlewareHandler {
  const callers = new Map<string, Caller>()
  let taken = 0
  const mayTake = ({ taken: own }: Caller, bytes: number) => {
    if (callerOf === undefined || own === 0) return true
    return leavesRoom(own + bytes, room - taken - bytes)
  }

  function next(): Caller | undefined {
    let least: Caller | undefined
    for (const one of callers.values()) {
      const [first] = one.waiting
      if (first && one.taken < (least?.taken ?? Number.POSITIVE_INFINITY) && mayTake(one, first.bytes)) least = one
    }
    return least
  }

  function serve(): void {
    for (let one = next(); one; one = next()) {
      const { bytes, enter } = one.waiting[0]!
      if (taken > 0 && taken + bytes > room) return
      one.waiting.shift()
      one.taken += bytes
      taken += bytes
      enter()
    }
  }

  return async (c, next) => {
    const bytes = lengthOf(c.req.raw.headers)
    if (bytes <= SMALL) return next()
    const name = callerOf?.(c) ?? ''
    const caller = callers.get(name) ?? { taken: 0, waiting: [] }
    callers.set(name, caller)
    let isIn = false
    const turn = new Promise<void>(resolve => {
      const enter = () => {
        isIn = true
        resolve()
      }
      caller.waiting.push({ bytes, enter })
      serve()
    })
    if (!isIn) await turn
    let isOver = false
    const over = () => {
      if (isOver) return
      isOver = true
      taken -= bytes
      caller.taken -= bytes
      if (caller.taken === 0 && caller.waiting.length === 0) callers.delete(name)
      serve()
    }
    const late = setTimeout(over, LONGEST_TURN_MS)
    try {
      await next()
    } finally {
      clearTimeout(late)
      over()
    }
  }
}

function lengthOf(headers: Headers): number {
  const announced = headers.get('content-length')
  if (announced !== null) return Number(announced)
  return headers.has('transfer-encoding') ? UNSAID : 0
}

/** Reads a whole body, and stops at the limit when it was sent without a length. */
export async function readBody(
  request: Pick<Request, 'headers' | 'body' | 'arrayBuffer'>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = request.headers.get('content-length')
  // A host reads no further than was announced, and reads that in one piece faster than as a stream.
  if (announced !== null && Number(announced) <= maxBytes) {
    const body = new Uint8Array(await request.arrayBuffer())
    // A request that never was on a wire may announce what it likes.
    if (body.length > maxBytes) throw tooLarge(maxBytes)
    return body
  }
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body) {
    size += chunk.byteLength
    if (size > maxBytes) throw tooLarge(maxBytes)
    chunks.push(chunk)
  }
  return joined(chunks)
}

export function tooLarge(maxBytes: number): ApiError<'payload_too_large'> {
  const message = `the body is larger than the limit of ${maxBytes} bytes`
  // What is left of the body is not worth reading, so the connection cannot be used again.
  return new ApiError('payload_too_large', message, { headers: { connection: 'close' } })
}

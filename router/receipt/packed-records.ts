import type { Span } from '../../shared/dialects/json-scan.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { bytesToHash, type CallContext, type Recorded, type Unhashed } from './unhashed.ts'

/** Records on their way to another thread: themselves as JSON, and the bodies that are hashed there as one run of bytes. */
export interface PackedRecords {
  heads: string
  bytes: Uint8Array<ArrayBuffer>
}

/** Of the body, how many bytes; of what was sent, how many or that it is the body; nothing of either for a record that is whole. */
type Head =
  | [record: UnsealedTrace, context: CallContext | null]
  | [
      record: Unhashed['record'],
      context: CallContext | null,
      body: number,
      prompt: readonly Span[] | null,
      sent: number | 'body' | null,
    ]

export function packRecords(records: readonly Recorded[]): PackedRecords {
  const { bytes, put } = byteRun(records.reduce((sum, one) => sum + ('body' in one ? bytesToHash(one) : 0), 0))
  const heads = records.map((one): Head => {
    const context = one.context ?? null
    if (!('body' in one)) return [one.whole, context]
    const { record, body, prompt, sent } = one
    return [record, context, put(body), prompt ?? null, sent === null ? null : sent === body ? 'body' : put(sent)]
  })
  return { heads: JSON.stringify(heads), bytes }
}

export function unpackRecords({ heads, bytes }: PackedRecords): Recorded[] {
  const take = takeFrom(bytes)
  return (readJson(heads) as Head[]).map(head => {
    const context = head[1] ?? undefined
    if (head.length === 2) return { whole: head[0], context }
    const [record, , length, prompt, how] = head
    const body = take(length)
    const sent = how === 'body' ? body : how === null ? null : take(how)
    return { record, body, prompt: prompt ?? undefined, sent, context }
  })
}

/** Bytes of many bodies one behind the other, so that they change hands at once. */
export function byteRun(size: number) {
  const bytes = new Uint8Array(size)
  let at = 0
  return {
    bytes,
    /** Adds a part and tells how long it is. */
    put(part: Uint8Array): number {
      bytes.set(part, at)
      at += part.length
      return part.length
    },
  }
}

/** Takes the parts of a run in the order in which they were put there. */
export function takeFrom(bytes: Uint8Array<ArrayBuffer>): (length: number) => Uint8Array<ArrayBuffer> {
  let at = 0
  return length => {
    at += length
    return bytes.subarray(at - length, at)
  }
}

import { decoding, fail, Undecodable, upstreamFailed } from '../accumulator.ts'
import type { Decoded } from '../candidate.ts'
import { tryParsePlain } from '../json-text.ts'
import { isArray, isObject } from '../json-value.ts'
import { errorIn } from '../upstream-error.ts'
import { chatCandidate } from './answer.ts'

/** The candidate in a chat answer that was not streamed; the body stays the bytes that came. */
export function decodeChat(body: Uint8Array): Decoded {
  return decoding(() => {
    if (body.length === 0) fail('empty', 'the body is empty')
    const completion = tryParsePlain(body)
    if (completion === undefined) fail('not_json', 'the body is not JSON')
    const error = errorIn(completion)
    if (error !== null) throw new Undecodable(upstreamFailed(error))
    if (!isObject(completion) || !isArray(completion.choices)) fail('not_an_answer', 'the body has no choices')
    return { ok: true as const, candidate: chatCandidate(completion), body, replayable: false }
  })
}

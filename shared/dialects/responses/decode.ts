import { decoding, fail, Undecodable, upstreamFailed } from '../accumulator.ts'
import type { Decoded, UpstreamError } from '../candidate.ts'
import { tryParsePlain } from '../json-text.ts'
import type { JsonObject } from '../json-value.ts'
import { isArray, isObject } from '../json-value.ts'
import { errorIn } from '../upstream-error.ts'
import { responsesCandidate } from './answer.ts'

/** The candidate in a response that was not streamed; the body stays the bytes that came. */
export function decodeResponses(body: Uint8Array): Decoded {
  return decoding(() => {
    if (body.length === 0) fail('empty', 'the body is empty')
    const response = tryParsePlain(body)
    if (response === undefined) fail('not_json', 'the body is not JSON')
    if (!isObject(response)) fail('not_an_answer', 'the body is not an object')
    const error = failureOf(response) ?? (isArray(response.output) ? null : errorIn(response))
    if (error !== null) throw new Undecodable(upstreamFailed(error))
    if (!isArray(response.output)) fail('not_an_answer', 'the body has no output')
    return { ok: true as const, candidate: responsesCandidate(response), body, replayable: false }
  })
}

/** What a response says of its own failure; null for one that did not fail. */
export function failureOf({ status, error = null }: JsonObject): UpstreamError | null {
  const said = errorIn({ error })
  if (said !== null || status !== 'failed') return said
  return { type: null, message: 'The response failed.', code: null, param: null }
}

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { type EndedCall, readCall } from './ended-call.ts'
import { packCalls, readForTravel, unpackCalls } from './packed-calls.ts'

const hashing = { sha256: nativeSha256, salt: new Uint8Array(32) }
const time = fc.double({ min: 0, max: 1e6, noNaN: true, noDefaultInfinity: true }).map(Math.abs)
const headers = fc.array(
  fc.tuple(
    fc.constantFrom('User-Agent', 'x-router-session', 'X-Request-Id', 'content-type', 'Authorization', 'x-api-key'),
    fc.constantFrom('application/json', 'text/event-stream', 'claude-cli/1', 'secret'),
  ),
  { maxLength: 6 },
)
const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc
    .string()
    .map(text => new TextEncoder().encode(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: text }] }))),
  fc.string().map(text => new TextEncoder().encode(JSON.stringify(messagesAnswer(text)))),
)
const call: fc.Arbitrary<EndedCall> = fc.record({
  traceId: fc.uuid(),
  tenantId: fc.string(),
  routeIx: fc.option(fc.nat()),
  arrivedAt: fc.date({ noInvalidDate: true }),
  api: fc.constantFrom('messages' as const, 'chat' as const, 'messages.count_tokens' as const),
  headers,
  request: fc.array(body, { maxLength: 3 }),
  answer: fc.option(
    fc.record({
      status: fc.constantFrom(200, 400, 529),
      headers,
      content: fc.record({ raw: body, encoded: fc.boolean() }),
    }),
    { nil: undefined },
  ),
  end: fc.constantFrom('complete' as const, 'client_abort' as const, 'transport' as const),
  sent: fc.boolean(),
  times: fc.record({ called: time, firstByte: fc.option(time, { nil: undefined }), lastByte: time, done: time }),
})

/** What a receipt is made from; the headers that it does not read may stay behind. */
async function read(ended: EndedCall) {
  const { answer, ...rest } = await readCall(ended, hashing)
  const type = answer?.headers.filter(([name]) => name === 'content-type')
  return { ...rest, answer: answer && { ...answer, headers: type, errorBody: [...(answer.errorBody ?? [])] } }
}

describe('calls packed for another thread', () => {
  it('say there what they say here, as bytes and as what was read of them', () =>
    fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 5 }), async calls => {
        const here = await Promise.all(calls.map(read))
        expect(await Promise.all(unpackCalls(packCalls(calls)).map(read))).toEqual(here)
        const light = await Promise.all(calls.map(one => readForTravel(one, hashing)))
        expect(await Promise.all(unpackCalls(packCalls(light)).map(read))).toEqual(here)
      }),
      { numRuns: 200 },
    ))

  it('carry no header that a receipt is not made from', () =>
    fc.assert(
      fc.property(fc.array(call, { maxLength: 5 }), calls => {
        const { heads } = packCalls(calls)
        expect(heads.toLowerCase()).not.toMatch(/authorization|x-api-key/)
      }),
    ))
})

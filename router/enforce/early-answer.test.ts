import fc from 'fast-check'
import { expect, it } from 'vitest'
import { dialects } from '../../shared/dialects/dialects.ts'
import { sseReader } from '../../shared/http/sse-read.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { buildGates } from '../gates/build-gates.ts'
import type { Gate, GateVerdict } from '../gates/gate.ts'
import type { GateConfig } from '../gates/gate-kinds.ts'
import { regexJobs } from '../gates/regex-job.ts'
import { base, never } from '../gates/testing/fake-gate.ts'
import { inputOf } from '../gates/testing/subject.ts'
import { earlyAnswer } from './early-answer.ts'

const jobs = regexJobs()
const configs: GateConfig[] = [
  { ...base, id: 'n', kind: 'non-empty', acceptToolCalls: true, refusal: 'fail', minChars: 2 },
  { ...base, id: 'l', kind: 'length', minChars: null, maxChars: 9, minTokens: null, maxTokens: null },
  { ...base, id: 'r', kind: 'regex', must: [], mustNot: ['bad'], flags: 'u', window: 5 },
]
const built = buildGates(configs, { regexRunner: { run: async job => jobs(job) } }).gates
const judge = async (gate: Gate, text: string): Promise<GateVerdict> => gate.run(inputOf({ text }), never)

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const frame = (type: string, rest: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
const streams = {
  chat: (pieces: readonly string[], finish: string) => [
    chunk({ role: 'assistant', content: '' }),
    ...pieces.map(content => chunk({ content })),
    chunk({}, finish === 'refusal' ? 'content_filter' : 'stop'),
    'data: [DONE]\n\n',
  ],
  messages: (pieces: readonly string[], finish: string) => [
    frame('message_start', { message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 1 } } }),
    frame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...pieces.map(text => frame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
    frame('content_block_stop', { index: 0 }),
    frame('message_delta', { delta: { stop_reason: finish }, usage: { output_tokens: 1 } }),
    frame('message_stop', {}),
  ],
  responses: (pieces: readonly string[], finish: string) => [
    frame('response.created', { response: { id: 'r', output: [] } }),
    frame('response.output_item.added', { output_index: 0, item: { id: 'i', type: 'message', content: [] } }),
    frame('response.content_part.added', { ...PLACE, part: { type: 'output_text', text: '' } }),
    ...pieces.map(delta => frame('response.output_text.delta', { ...PLACE, delta })),
    frame('response.output_item.done', { output_index: 0, item: itemOf(pieces) }),
    frame('response.completed', {
      response: { id: 'r', status: finish === 'refusal' ? 'incomplete' : 'completed', output: [itemOf(pieces)] },
    }),
  ],
}
const PLACE = { item_id: 'i', output_index: 0, content_index: 0 }
const itemOf = (pieces: readonly string[]) => ({
  id: 'i',
  type: 'message',
  content: [{ type: 'output_text', text: pieces.join('') }],
})

/** How many frames carry an answer; the rest say how it ends. */
const ENDS = { chat: 2, messages: 2, responses: 1 }

it('never lets a frame go with which a gate has failed, nor one that ends the answer, and keeps the order', async () => {
  let flowed = 0
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('chat' as const, 'messages' as const, 'responses' as const),
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'd', ' ', '😀'), maxLength: 4 }), { maxLength: 6 }),
      fc.subarray(['n', 'l', 'r']),
      fc.constantFrom('end_turn', 'refusal'),
      fc.boolean(),
      async (dialect, pieces, ids, finish, slow) => {
        const gates = ids.map(id => built.get(id)!)
        const out: { text: string; frame: number }[] = []
        const accumulator = dialects[dialect].accumulator()
        const reader = sseReader({ maxFrameBytes: 10_000 })
        const early = earlyAnswer(gates, judge, {
          begin: () => undefined,
          send: raw => void out.push({ text: new TextDecoder().decode(raw), frame: out.length }),
        })
        const frames = streams[dialect](pieces, finish)
        const prefixes: string[] = []
        for (const text of frames) {
          for (const one of reader.push(utf8(text))) {
            accumulator.push(one)
            early.frame(one.raw, accumulator.progress, { status: 200, headers: [] })
          }
          prefixes.push(accumulator.progress.text)
          if (!slow) await new Promise(resolve => setImmediate(resolve))
        }
        await early.verdicts()
        const before = out.length
        await new Promise(resolve => setImmediate(resolve))
        expect(out.length).toBe(before)
        expect(early.sent).toBe(out.length)
        expect(out.map(({ text }) => text)).toEqual(frames.slice(0, out.length))
        expect(out.length).toBeLessThanOrEqual(frames.length - ENDS[dialect])
        if (out.length > 0) flowed += 1
        const released = prefixes[out.length - 1] ?? ''
        for (const gate of gates) {
          if (out.length > 0) expect((await judge(gate, released)).verdict).toBe('pass')
        }
        const passes = (await Promise.all(gates.map(gate => judge(gate, pieces.join(''))))).every(
          ({ verdict }) => verdict === 'pass',
        )
        // Where the text is long enough to decide on and passes, all that may flow has flowed.
        if (passes && !slow && [...pieces.join('')].length >= 5) {
          expect(out.length).toBe(frames.length - ENDS[dialect])
        }
      },
    ),
    { numRuns: 500 },
  )
  expect(flowed).toBeGreaterThan(50)
})

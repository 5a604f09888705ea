import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../../shared/json/read-json.ts'
import type { GateInput } from './gate.ts'
import type { GateConfig } from './gate-kinds.ts'
import { readJsonAnswer } from './json-answer.ts'
import { base, builtGate } from './testing/fake-gate.ts'
import { type AnswerParts, inputOf, type SubjectParts } from './testing/subject.ts'

const judge = (config: GateConfig, input: GateInput) => builtGate(config).inline!(input)
const said = ({ verdict, reason }: { verdict: string; reason?: string }) => (reason ? `${verdict} ${reason}` : verdict)

describe('non-empty', () => {
  const gate: GateConfig<'non-empty'> = {
    ...base,
    kind: 'non-empty',
    acceptToolCalls: true,
    refusal: 'fail',
    minChars: 1,
  }

  it.each<[string, AnswerParts, SubjectParts, Partial<GateConfig<'non-empty'>>, string]>([
    ['text', { text: 'yes' }, {}, {}, 'pass'],
    ['nothing', { text: '' }, {}, {}, 'fail empty'],
    ['white space', { text: ' \n\t ' }, {}, {}, 'fail empty'],
    ['too little text', { text: ' ab ' }, {}, { minChars: 3 }, 'fail too_short'],
    ['characters outside the first plane', { text: '😀😀' }, {}, { minChars: 3 }, 'fail too_short'],
    ['a tool call alone', { calls: [['ls', '{}']] }, {}, {}, 'pass'],
    ['a tool call alone in messages', { calls: [['ls', '{}']] }, { dialect: 'messages' }, {}, 'pass'],
    ['a tool call that is not enough', { calls: [['ls', '{}']] }, {}, { acceptToolCalls: false }, 'fail empty'],
    ['sound alone', { extras: ['audio'] }, {}, {}, 'pass'],
    ['a picture alone', { extras: ['image_generation_call'] }, { dialect: 'responses' }, {}, 'pass'],
    ['reasoning alone', { extras: ['reasoning'] }, { dialect: 'responses' }, {}, 'fail empty'],
    ['a cut text', { text: 'yes', finish: 'length' }, {}, {}, 'pass'],
    ['a refusal', { refusal: 'I will not' }, {}, {}, 'fail refusal'],
    ['a content filter', { text: 'half', finish: 'content_filter' }, {}, {}, 'fail refusal'],
    [
      'a messages refusal',
      { text: 'no', refusal: 'no', finish: 'refusal' },
      { dialect: 'messages' },
      {},
      'fail refusal',
    ],
    ['a refusal that is fine', { refusal: 'I will not' }, {}, { refusal: 'pass' }, 'pass'],
    ['a refusal nobody judges', { refusal: 'I will not' }, {}, { refusal: 'abstain' }, 'abstain refusal'],
    ['an empty refusal beside text', { text: 'yes', refusal: '' }, {}, {}, 'pass'],
  ])('judges %s', (_, parts, options, config, expected) => {
    expect(said(judge({ ...gate, ...config }, inputOf(parts, options)))).toBe(expected)
  })
})

describe('json-valid', () => {
  const gate: GateConfig<'json-valid'> = { ...base, kind: 'json-valid', fences: true, onToolCall: 'pass' }
  const fence = '```'

  it.each<[string, AnswerParts, SubjectParts, Partial<GateConfig<'json-valid'>>, string]>([
    ['an object', { text: '{"a":1}' }, {}, {}, 'pass'],
    ['a scalar with space around', { text: ' 12 \n' }, {}, {}, 'pass'],
    ['repeated keys', { text: '{"a":1,"a":2}' }, {}, {}, 'pass'],
    ['prose', { text: 'Here: {"a":1}' }, {}, {}, 'fail not_json'],
    ['nothing', { text: ' ' }, {}, {}, 'fail empty'],
    ['a fence', { text: `\n${fence}json\n{"a":1}\n${fence}\n` }, {}, {}, 'pass'],
    ['a fence without a language', { text: `${fence}\n[1]\n${fence}` }, {}, {}, 'pass'],
    ['a tilde fence', { text: '~~~\n[1]\n~~~' }, {}, {}, 'pass'],
    ['a fence with CRLF', { text: `${fence}json\r\n[1]\r\n${fence}\r\n` }, {}, {}, 'pass'],
    ['a fence inside a string', { text: `${fence}\n{"a":"${fence}"}\n${fence}` }, {}, {}, 'pass'],
    ['a fence with words around', { text: `Sure!\n${fence}\n[1]\n${fence}` }, {}, {}, 'fail not_json'],
    ['two fences', { text: `${fence}\n[1]\n${fence}\n${fence}\n[2]\n${fence}` }, {}, {}, 'fail not_json'],
    ['a fence that is not closed', { text: `${fence}json\n[1]\n` }, {}, {}, 'fail not_json'],
    ['a fence closed by fewer marks', { text: `${fence}\`\n[1]\n${fence}` }, {}, {}, 'fail not_json'],
    ['a fence on one line', { text: `${fence}[1]${fence}` }, {}, {}, 'fail not_json'],
    ['a fence where none is allowed', { text: `${fence}\n[1]\n${fence}` }, {}, { fences: false }, 'fail not_json'],
    ['valid JSON cut at the token limit', { text: '{"a":1}', finish: 'length' }, {}, {}, 'fail truncated'],
    ['the same in messages', { text: '1', finish: 'max_tokens' }, { dialect: 'messages' }, {}, 'fail truncated'],
    ['a tool call', { text: 'let me look', calls: [['ls', '{}']] }, {}, {}, 'pass'],
    ['an unwanted tool call', { calls: [['ls', '{}']] }, {}, { onToolCall: 'fail' }, 'fail tool_call'],
    ['an unjudged tool call', { calls: [['ls', '{}']] }, {}, { onToolCall: 'abstain' }, 'abstain tool_call'],
    ['a cut tool call', { calls: [['ls', '{']], finish: 'length' }, {}, {}, 'fail truncated'],
  ])('judges %s', (_, parts, options, config, expected) => {
    expect(said(judge({ ...gate, ...config }, inputOf(parts, options)))).toBe(expected)
  })

  it('reads any JSON back, bare and fenced', () => {
    const space = fc.stringMatching(/^[ \n\r\t]{0,4}$/)
    fc.assert(
      fc.property(fc.json(), space, space, fc.constantFrom('', 'json', 'JSON5 x'), (json, before, after, info) => {
        const fenced = `${before}\`\`\`${info}\n${json}\n\`\`\`${after}`
        for (const text of [before + json + after, fenced])
          expect(readJsonAnswer(text, true)).toMatchObject({ ok: true, value: readJson(json) })
        expect(readJsonAnswer(fenced, false)).toEqual({ ok: false })
      }),
    )
  })
})

describe('length', () => {
  const gate: GateConfig<'length'> = {
    ...base,
    kind: 'length',
    minChars: null,
    maxChars: null,
    minTokens: null,
    maxTokens: null,
  }

  it.each<[string, string, Partial<GateConfig<'length'>>, string]>([
    ['at the most', 'abc', { maxChars: 3 }, 'pass'],
    ['one over', 'abcd', { maxChars: 3 }, 'fail too_long'],
    ['characters, not code units', '😀😀😀', { maxChars: 3, minChars: 3 }, 'pass'],
    ['one under', 'ab', { minChars: 3 }, 'fail too_short'],
    ['five bytes as two tokens', 'abcde', { minTokens: 2, maxTokens: 2 }, 'pass'],
    ['nine bytes as three tokens', 'abcdefghi', { maxTokens: 2 }, 'fail too_long'],
    ['bytes of UTF-8', '€€€', { maxTokens: 2 }, 'fail too_long'],
    ['too few tokens', 'abcd', { minTokens: 2 }, 'fail too_short'],
    ['nothing at all', '', { maxChars: 0 }, 'pass'],
  ])('counts %s', (_, text, config, expected) => {
    expect(said(judge({ ...gate, ...config }, inputOf({ text })))).toBe(expected)
  })

  it('sees neither tool calls nor the token limit of the model', () => {
    const input = inputOf({ text: 'abc', calls: [['ls', '{"path":"/a/long/one"}']], finish: 'length' })
    expect(judge({ ...gate, maxChars: 3 }, input).verdict).toBe('pass')
  })
})

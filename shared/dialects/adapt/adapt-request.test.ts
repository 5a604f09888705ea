import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../../json/read-json.ts'
import { type Accepted, acceptedBy } from '../../models/model-table.ts'
import type { DialectName } from '../candidate.ts'
import { dialects } from '../dialects.ts'
import { spelling } from '../testing/spelling.ts'
import { ADVISORY, adaptRequest } from './adapt-request.ts'
import type { Change } from './draft.ts'
import { withEdits } from './splice.ts'

interface Options {
  refused?: string[]
  jsonByGate?: boolean
  stripsThinking?: boolean
}

function adapt(
  dialect: DialectName,
  text: string,
  accepted: Accepted,
  { refused = [], jsonByGate = false, stripsThinking = false }: Options = {},
) {
  const body = new TextEncoder().encode(text)
  const scan = dialects[dialect].scan(body)
  if (!scan.ok) throw new Error(scan.message)
  const made = adaptRequest({
    body,
    dialect,
    facts: scan.facts,
    accepted,
    refused: new Set(refused),
    jsonByGate,
    stripsThinking,
  })
  return { ...made, text: new TextDecoder().decode(withEdits(body, made.edits)) }
}

const summed = (changes: readonly Change[]) =>
  changes.map(({ path, from, to, why }) => `${path}: ${from ?? '-'} -> ${to ?? 'removed'} (${why})`)

const haiku = acceptedBy('claude-haiku-4-5', 'messages')!
const opus45 = acceptedBy('claude-opus-4-5', 'messages')!
const opus46 = acceptedBy('claude-opus-4-6', 'messages')!
const opus48 = acceptedBy('claude-opus-4-8', 'messages')!
const fable = acceptedBy('claude-fable-5', 'messages')!
const sonnet55 = acceptedBy('claude-sonnet-5-5', 'messages')!
const claude3 = acceptedBy('claude-3-5-haiku', 'messages')!
const gpt4o = acceptedBy('gpt-4o', 'chat')!
const o3 = acceptedBy('o3', 'chat')!
const gpt51 = acceptedBy('gpt-5.1', 'chat')!

const ASK = '"messages":[{"role":"user","content":"thinking"}]'
const CLEAR = '{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}'
const PLAIN_CALL = `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}]`
const THOUGHT_CALL = PLAIN_CALL.replace(
  '[{"type":"tool_use"',
  '[{"type":"thinking","thinking":"x","signature":"y"},{"type":"tool_use"',
)

describe('a messages request', () => {
  it.each<[string, Accepted, string, string, string[], Options?]>([
    [
      'of a coding agent becomes one with a budget',
      haiku,
      `{ "max_tokens": 32000 , "thinking": {"type":"adaptive"}, ${ASK}, "context_management": ${CLEAR},\n"output_config":{"effort":"medium"} }`,
      `{ "max_tokens": 32000 , "thinking": {"type":"enabled","budget_tokens":4096}, ${ASK}, "context_management": ${CLEAR} }`,
      ['thinking: adaptive -> enabled 4096 (unsupported)', 'output_config.effort: medium -> removed (unsupported)'],
    ],
    [
      'that goes on after calls without thinking has none, and no edit of it',
      haiku,
      `{"max_tokens":32000,"thinking":{"type":"adaptive"},"context_management":${CLEAR},${PLAIN_CALL}}`,
      `{"max_tokens":32000,${PLAIN_CALL}}`,
      ['thinking: adaptive -> removed (unsupported)', 'context_management: - -> removed (thinking_off)'],
    ],
    [
      'that goes on after calls with thinking keeps it',
      haiku,
      `{"max_tokens":32000,"thinking":{"type":"adaptive"},${THOUGHT_CALL}}`,
      `{"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":16000},${THOUGHT_CALL}}`,
      ['thinking: adaptive -> enabled 16000 (unsupported)'],
    ],
    [
      'that goes on after calls whose thinking is cut out has none',
      haiku,
      `{"max_tokens":32000,"thinking":{"type":"adaptive"},${THOUGHT_CALL}}`,
      `{"max_tokens":32000,${THOUGHT_CALL}}`,
      ['thinking: adaptive -> removed (unsupported)'],
      { stripsThinking: true },
    ],
    [
      'with too little room thinks not at all',
      haiku,
      `{"thinking":{"type":"adaptive"},"max_tokens":2000,${ASK}}`,
      `{"max_tokens":2000,${ASK}}`,
      ['thinking: adaptive -> removed (unsupported)'],
    ],
    [
      'that forces a call thinks not at all, and keeps its other edits',
      haiku,
      `{"thinking":{"type":"adaptive"},"max_tokens":9000,"tool_choice":{"type":"any"},"context_management":{"edits":[{"type":"clear_thinking_20251015"}, {"type":"clear_tool_uses_20250919"}]},${ASK}}`,
      `{"max_tokens":9000,"tool_choice":{"type":"any"},"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},${ASK}}`,
      ['thinking: adaptive -> removed (unsupported)', 'context_management.edits[]: - -> removed (thinking_off)'],
    ],
    [
      'with a budget becomes adaptive, with the effort that the budget stands for',
      opus48,
      `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"temperature":1,"top_k":5,${ASK}}`,
      `{"max_tokens":9000,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},"temperature":1,${ASK}}`,
      ['top_k: 5 -> removed (unsupported)', 'thinking: enabled 2000 -> adaptive low (unsupported)'],
    ],
    [
      'with a budget keeps the effort that it names',
      opus48,
      `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"output_config":{"effort":"max"},${ASK}}`,
      `{"max_tokens":9000,"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},${ASK}}`,
      ['thinking: enabled 2000 -> adaptive (unsupported)'],
    ],
    [
      'without thinking cannot say so to a model that always thinks',
      fable,
      `{"max_tokens":9,"thinking":{"type":"disabled"},"temperature":0.2,"top_p":0.5,${ASK}}`,
      `{"max_tokens":9,${ASK}}`,
      [
        'temperature: 0.2 -> removed (unsupported)',
        'top_p: 0.5 -> removed (unsupported)',
        'thinking: disabled -> removed (unsupported)',
      ],
    ],
    [
      'for more than a model writes is brought down, with its budget',
      claude3,
      `{"max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":30000},"context_management":{},${ASK}}`,
      `{"max_tokens":8192,${ASK}}`,
      [
        'max_tokens: 64000 -> 8192 (too_large)',
        'thinking: enabled 30000 -> removed (unsupported)',
        'context_management: - -> removed (unsupported)',
      ],
    ],
    [
      'has its budget brought down with its limit',
      { ...haiku, maxOutput: 8000 },
      `{"max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":30000},${ASK}}`,
      `{"max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":4000},${ASK}}`,
      ['max_tokens: 64000 -> 8000 (too_large)', 'thinking: enabled 30000 -> enabled 4000 (too_large)'],
    ],
    [
      'gets the highest effort up to the one it names',
      opus46,
      `{"output_config":{"effort":"xhigh","format":{"type":"json_schema"}},${ASK}}`,
      `{"output_config":{"effort":"high","format":{"type":"json_schema"}},${ASK}}`,
      ['output_config.effort: xhigh -> high (unsupported)'],
    ],
    [
      'names temperature or top_p where a model takes one',
      opus45,
      `{"temperature":0.2,"top_p":0.5,${ASK}}`,
      `{"temperature":0.2,${ASK}}`,
      ['top_p: 0.5 -> removed (unsupported)'],
    ],
    [
      'keeps the form of its answer, unless a gate decides on it',
      claude3,
      `{"output_config":{"format":{"type":"json_schema"}},${ASK}}`,
      `{"output_config":{"format":{"type":"json_schema"}},${ASK}}`,
      [],
    ],
    [
      'has no form of its answer where a gate decides on it',
      claude3,
      `{"output_config":{"format":{"type":"json_schema"}},${ASK}}`,
      `{${ASK}}`,
      ['output_config.format: - -> removed (unsupported)'],
      { jsonByGate: true },
    ],
    [
      'has cache entries of the usual lifetime',
      { longCache: false },
      `{"system":[{"type":"text","text":"ttl","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"t","input_schema":{"cache_control":{"ttl":1}}, "cache_control":{"ttl":"1h","type":"ephemeral"}}],${ASK}}`,
      `{"system":[{"type":"text","text":"ttl","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"t","input_schema":{"cache_control":{"ttl":1}}, "cache_control":{"type":"ephemeral"}}],${ASK}}`,
      ['cache_control.ttl: - -> removed (unsupported)'],
    ],
    [
      'does not think on a model whose only form without thinking is the one between tools',
      sonnet55,
      `{${ASK},"thinking":{"type":"disabled"},"context_management":${CLEAR}}`,
      `{${ASK},"thinking":{"type":"between_tools"},"context_management":${CLEAR}}`,
      ['thinking: disabled -> between_tools (unsupported)'],
    ],
    [
      'does not think on a model that does not know the form between tools',
      opus48,
      `{${ASK},"thinking":{"type":"between_tools"},"context_management":${CLEAR}}`,
      `{${ASK},"thinking":{"type":"disabled"}}`,
      ['thinking: between_tools -> disabled (unsupported)', 'context_management: - -> removed (thinking_off)'],
    ],
    [
      'thinks on a model that always does, and keeps the edits of it',
      fable,
      `{${ASK},"thinking":{"type":"between_tools"},"context_management":${CLEAR}}`,
      `{${ASK},"context_management":${CLEAR}}`,
      ['thinking: between_tools -> removed (unsupported)'],
    ],
    ...(['disabled', 'between_tools'] as const).map((type): [string, Accepted, string, string, string[]] => [
      `has an effort up to high without thinking, as ${type}`,
      acceptedBy(type === 'disabled' ? 'claude-opus-5' : 'claude-sonnet-5-5', 'messages')!,
      `{${ASK},"thinking":{"type":"${type}"},"output_config":{"effort":"max"}}`,
      `{${ASK},"thinking":{"type":"${type}"},"output_config":{"effort":"high"}}`,
      ['output_config.effort: max -> high (unsupported)'],
    ]),
    [
      'has every effort where it thinks',
      sonnet55,
      `{${ASK},"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}}`,
      `{${ASK},"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}}`,
      [],
    ],
    [
      'thinks between tools where the model takes it',
      sonnet55,
      `{${ASK},"thinking":{"type":"between_tools"}}`,
      `{${ASK},"thinking":{"type":"between_tools"}}`,
      [],
    ],
    [
      'does not think where its form between tools was refused: that form is without thinking, too',
      {},
      `{${ASK},"thinking":{"type":"between_tools"},"context_management":${CLEAR}}`,
      `{${ASK},"thinking":{"type":"disabled"}}`,
      ['thinking: between_tools -> disabled (refused)', 'context_management: - -> removed (thinking_off)'],
      { refused: ['thinking="between_tools"'] },
    ],
    [
      'is without what was refused',
      {},
      `{${ASK},"metadata":{"user_id":"u"},"thinking":{"type":"adaptive"},"context_management":${CLEAR},"output_config":{"effort":"low"}}`,
      `{${ASK}}`,
      [
        'metadata: - -> removed (refused)',
        'thinking: adaptive -> removed (refused)',
        'output_config.effort: low -> removed (refused)',
        'context_management: - -> removed (thinking_off)',
      ],
      { refused: ['metadata', 'thinking', 'output_config.effort'] },
    ],
    [
      'in which the system speaks among the turns has a word of the user there, and goes on after tools all the same',
      haiku,
      `{"max_tokens":32000,"thinking":{"type":"adaptive"},${PLAIN_CALL.slice(0, -1)},{"content":"role: system","r\\u006fle": "system"}]}`,
      `{"max_tokens":32000,${PLAIN_CALL.slice(0, -1)},{"content":"role: system","r\\u006fle": "user"}]}`,
      ['messages[].role: system -> user (unsupported)', 'thinking: adaptive -> removed (unsupported)'],
    ],
    [
      'in which the system speaks among the turns stays so for a model that takes it',
      opus48,
      '{"messages":[{"role":"user","content":"q"},{"role":"system","content":"s"}]}',
      '{"messages":[{"role":"user","content":"q"},{"role":"system","content":"s"}]}',
      [],
    ],
    [
      'that a model takes as it is stays as it is',
      haiku,
      `{"max_tokens":64000,"temperature":0,${ASK}}`,
      `{"max_tokens":64000,"temperature":0,${ASK}}`,
      [],
    ],
    [
      'with values of no known kind is the provider’s to refuse',
      haiku,
      `{"max_tokens":"9","thinking":"adaptive","output_config":[1],${ASK}}`,
      `{"max_tokens":"9","thinking":"adaptive","output_config":[1],${ASK}}`,
      [],
    ],
  ])('%s', (_, accepted, before, after, changes, options) => {
    const made = adapt('messages', before, accepted, options)
    expect(made.text).toBe(after)
    expect(summed(made.changes)).toEqual(changes)
  })

  it('says which limit holds, so that a budget reserves for it', () => {
    expect(adapt('messages', `{"max_tokens":64000,${ASK}}`, claude3).maxTokens).toBe(8192)
    expect(adapt('messages', `{"max_tokens":64,${ASK}}`, claude3).maxTokens).toBeUndefined()
    // To some hosts this is no limit at all, and the first of two may be the one that counts.
    expect(adapt('messages', `{"max_tokens":0,${ASK}}`, claude3).maxTokens).toBeUndefined()
    expect(adapt('messages', `{"max_tokens":99999,"max_tokens":5,${ASK}}`, claude3).maxTokens).toBeUndefined()
    expect(adapt('messages', `{${ASK}}`, claude3).maxTokens).toBeUndefined()
  })
})

describe('a chat request', () => {
  it.each<[string, Accepted, string, string, string[], Options?]>([
    [
      'has no effort and no verbosity for a model without reasoning',
      gpt4o,
      `{"reasoning_effort":"high","verbosity":"low",${ASK},"max_tokens":20000}`,
      `{${ASK},"max_tokens":16384}`,
      [
        'max_tokens: 20000 -> 16384 (too_large)',
        'reasoning_effort: high -> removed (unsupported)',
        'verbosity: - -> removed (unsupported)',
      ],
    ],
    [
      'names its limit as a reasoning model does, and samples as it does',
      o3,
      `{"temperature":0.2,"top_p":1,"presence_penalty":0,"frequency_penalty":1.5,"m\\u0061x_tokens":99,"reasoning_effort":"minimal",${ASK}}`,
      `{"top_p":1,"presence_penalty":0,"max_completion_tokens":99,"reasoning_effort":"low",${ASK}}`,
      [
        'max_tokens: - -> max_completion_tokens (renamed)',
        'reasoning_effort: minimal -> low (unsupported)',
        'temperature: 0.2 -> removed (unsupported)',
        'frequency_penalty: 1.5 -> removed (unsupported)',
      ],
    ],
    [
      'with both names of the limit keeps the one that is known',
      o3,
      `{"max_tokens":99,"max_completion_tokens":98,${ASK}}`,
      `{"max_completion_tokens":98,${ASK}}`,
      ['max_tokens: - -> removed (unsupported)'],
    ],
    [
      'has the limit that is one, where the name that is known says nothing',
      o3,
      `{"max_tokens":99,"max_completion_tokens":null,${ASK}}`,
      `{"max_completion_tokens":99,${ASK}}`,
      ['max_completion_tokens: - -> removed (unsupported)', 'max_tokens: - -> max_completion_tokens (renamed)'],
    ],
    [
      'keeps its sampling while the model does not reason',
      gpt51,
      `{"temperature":0.2,"reasoning_effort":"none",${ASK}}`,
      `{"temperature":0.2,"reasoning_effort":"none",${ASK}}`,
      [],
    ],
    [
      'loses its sampling where the model reasons',
      gpt51,
      `{"temperature":0.2,"reasoning_effort":"xhigh",${ASK}}`,
      `{"reasoning_effort":"high",${ASK}}`,
      ['reasoning_effort: xhigh -> high (unsupported)', 'temperature: 0.2 -> removed (unsupported)'],
    ],
    [
      'has the older name of its limit for a host that refused the newer one',
      {},
      `{"max_completion_tokens":9,"store":false,"logprobs":true,"parallel_tool_calls":false,${ASK}}`,
      `{"max_tokens":9,"logprobs":true,"parallel_tool_calls":false,${ASK}}`,
      ['store: - -> removed (refused)', 'max_completion_tokens: - -> max_tokens (renamed)'],
      { refused: ['max_completion_tokens', 'store', 'logprobs', 'parallel_tool_calls'] },
    ],
  ])('%s', (_, accepted, before, after, changes, options) => {
    const made = adapt('chat', before, accepted, options)
    expect(made.text).toBe(after)
    expect(summed(made.changes)).toEqual(changes)
  })
})

describe('a request of the Responses API', () => {
  it.each<[string, Accepted, string, string, string[], Options?]>([
    [
      'has no reasoning for a model without',
      gpt4o,
      '{"input":"hi","reasoning":{"effort":"high"},"include":["reasoning.encrypted_content"],"text":{"verbosity":"low"}}',
      '{"input":"hi"}',
      [
        'reasoning: - -> removed (unsupported)',
        'include: - -> removed (unsupported)',
        'text.verbosity: - -> removed (unsupported)',
      ],
    ],
    [
      'keeps what else it includes, and its format',
      gpt4o,
      '{"input":"hi","include":["file_search_call.results","reasoning.encrypted_content"],"text":{"format":{"type":"text"},"verbosity":"low"}}',
      '{"input":"hi","include":["file_search_call.results"],"text":{"format":{"type":"text"}}}',
      ['include[]: - -> removed (unsupported)', 'text.verbosity: - -> removed (unsupported)'],
    ],
    [
      'has an effort that the model takes, and no summary where that was refused',
      o3,
      '{"reasoning":{"summary":"auto","effort":"none"},"input":"hi"}',
      '{"reasoning":{"effort":"low"},"input":"hi"}',
      ['reasoning.effort: none -> low (unsupported)', 'reasoning.summary: text -> removed (refused)'],
      { refused: ['reasoning.summary'] },
    ],
  ])('%s', (_, accepted, before, after, changes, options) => {
    const made = adapt('responses', before, accepted, options)
    expect(made.text).toBe(after)
    expect(summed(made.changes)).toEqual(changes)
  })
})

describe('a body that repeats itself', () => {
  it('is adapted however many times it names what has to go', () => {
    const parts = Array.from({ length: 150_000 }, () => '{"cache_control":{"type":"ephemeral","ttl":"1h"}}')
    const members = Array.from({ length: 150_000 }, (_, at) => `"ttl":"1h","x${at}":1`)
    const one = `{"cache_control":{${members.join()}}}`
    const body = `{"model":"m","max_tokens":9,"system":[${parts.join()},${one}],"messages":[]}`
    const made = adapt('messages', body, { longCache: false })
    expect(made.text).not.toContain('ttl')
    expect(readJson(made.text)).toHaveProperty('system.length', 150_001)
  })
})

describe('whatever is left out', () => {
  const member = fc.constantFrom('temperature', 'top_p', 'metadata', 'service_tier', 'thinking', 'stream', 'x')
  const request = fc
    .uniqueArray(fc.tuple(member, fc.constantFrom<unknown>(0.5, 'a,b', { type: 'enabled' }, [1, '}'], null)), {
      selector: ([name]) => name,
      maxLength: 7,
    })
    .map(members => Object.fromEntries(members))

  it('every other member means the same and stands in its own bytes, for any spelling', () => {
    fc.assert(
      fc.property(spelling(request), fc.subarray(Object.keys(ADVISORY)), ({ value, text }, refused) => {
        const made = adapt('messages', text, {}, { refused })
        const kept = Object.entries(value).filter(([name, given]) => {
          if (!refused.includes(name)) return true
          return name === 'thinking' && !(typeof given === 'object' && given !== null && 'type' in given)
        })
        expect(readJson(made.text)).toEqual(Object.fromEntries(kept))
        if (made.changes.length === 0) expect(made.text).toBe(text)
      }),
      { numRuns: 3000 },
    )
  })

  it('is gone however often it stands there, and a body that repeats without end is left as it is', () => {
    const twice = adapt('messages', '{"top_k":1,"a":2,"top_k":3 }', {}, { refused: ['top_k'] })
    expect(twice.text).toBe('{"a":2 }')
    const many = `{${'"top_k":1,'.repeat(1000)}"a":1}`
    expect(adapt('messages', many, {}, { refused: ['top_k'] }).text).toBe(many)
  })

  it('is never what the request is about', () => {
    for (const name of [
      'messages',
      'input',
      'tools',
      'system',
      'instructions',
      'model',
      'response_format',
      'text',
      'output_config',
      'stop',
    ])
      expect(Object.hasOwn(ADVISORY, name)).toBe(false)
  })
})

describe('ids of calls, for models of Mistral', () => {
  const mistral = acceptedBy('mistral-small', 'chat')!
  const call = (id: unknown) => ({ id, type: 'function', function: { name: 'f', arguments: '{"id":"toolu_1"}' } })
  const request = (ids: unknown[]) =>
    JSON.stringify({
      tool_call_id: 'stays',
      messages: [
        { role: 'user', content: 'call_1' },
        { role: 'assistant', content: null, tool_calls: ids.map(call) },
        ...ids.map(id => ({ role: 'tool', tool_call_id: id, content: 'call_1' })),
      ],
    })

  it('become nine letters and digits, the same at the call and at its result', () => {
    const { text, changes } = adapt('chat', request(['toolu_01', 'toolu_02', 'D681PevKs', 'ca"ll']), mistral)
    const { messages, tool_call_id } = JSON.parse(text)
    const ids = messages[1].tool_calls.map(({ id }: { id: string }) => id)
    expect(messages.slice(2).map((message: { tool_call_id: string }) => message.tool_call_id)).toEqual(ids)
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9]{9}$/)
    expect(ids[2]).toBe('D681PevKs')
    expect([tool_call_id, messages[0].content, messages[2].content]).toEqual(['stays', 'call_1', 'call_1'])
    expect(messages[1].tool_calls[0].function.arguments).toBe('{"id":"toolu_1"}')
    expect(summed(changes)).toEqual(['messages[].tool_calls[].id: - -> nine letters and digits (unsupported)'])
  })

  it('stay where all are its own, and for any other model', () => {
    const own = request(['D681PevKs', 7])
    expect(adapt('chat', own, mistral)).toMatchObject({ text: own, changes: [] })
    const foreign = request(['toolu_01'])
    expect(adapt('chat', foreign, gpt4o)).toMatchObject({ text: foreign, changes: [] })
  })

  it('differ as the ids do', () => {
    const ids = Array.from({ length: 3000 }, (_, n) => `call_${n}`)
    const { messages } = JSON.parse(adapt('chat', request(ids), mistral).text)
    expect(new Set(messages[1].tool_calls.map(({ id }: { id: string }) => id)).size).toBe(3000)
  })
})

describe('calls without a signature', () => {
  const gemini = acceptedBy('gemini-3.8-flash', 'chat')!
  const own = { google: { thought_signature: 'c2ln' } }
  const request = (extra?: object) =>
    JSON.stringify({
      messages: [
        { role: 'user', content: 'q' },
        {
          role: 'assistant',
          tool_calls: ['a', 'b', 7].map((id, at) => ({
            id,
            type: 'function',
            function: { name: 'f', arguments: '{"id":"a"}' },
            ...((extra ?? at > 0) && { extra_content: extra ?? own }),
          })),
        },
        { role: 'tool', tool_call_id: 'a', content: 'r' },
        { role: 'tool', tool_call_id: 'b', content: 'r' },
        { role: 'assistant', tool_calls: [{ id: 'c\\n', function: { name: 'f', arguments: '{}' } }] },
      ],
    })

  it('say so to models of Gemini that want one, and keep those that they have', () => {
    const { text, changes } = adapt('chat', request(), gemini)
    const { messages } = JSON.parse(text)
    const none = { google: { thought_signature: 'skip_thought_signature_validator' } }
    const extras = (at: number) => messages[at].tool_calls.map((call: { extra_content: unknown }) => call.extra_content)
    expect([...extras(1), ...extras(4)]).toEqual([none, own, own, none])
    expect(messages[2]).toEqual({ role: 'tool', tool_call_id: 'a', content: 'r' })
    expect(summed(changes)).toEqual(['messages[].tool_calls[].extra_content: - -> no signature (unsupported)'])
  })

  it('stay as they are for any other model', () => {
    for (const model of ['gemini-2.5-flash', 'gpt-4o']) {
      const accepted = acceptedBy(model, 'chat')!
      expect(adapt('chat', request(), accepted)).toMatchObject({ text: request(), changes: [] })
    }
  })
})

describe('what models write into their turns', () => {
  const history = JSON.stringify({
    model: 'm',
    messages: [
      { role: 'user', content: 'q' },
      {
        role: 'assistant',
        reasoning_content: 'hm "',
        content: null,
        tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{"extra_content":1}' }, extra_content: { x: 1 } }],
      },
      { role: 'tool', tool_call_id: 'a', content: '{"reasoning_content":1}' },
      { reasoning_content: '', role: 'assistant', content: 'r', extra_content: {} },
      { role: 'assistant', content: 's' },
      { role: 'user', content: 'u' },
    ],
  })
  const read = (text: string) => JSON.parse(text).messages as Record<string, unknown>[]
  const thinks = acceptedBy('deepseek-v4-pro', 'chat')!

  it('is cut out where a host has refused it, and nothing else', () => {
    const refused = ['messages[].extra_content', 'messages[].reasoning_content']
    const { text, changes } = adapt('chat', history, thinks, { refused })
    const due = read(history).map(({ reasoning_content: _, extra_content: __, ...turn }) => turn)
    due[1]!.tool_calls = [{ id: 'a', function: { name: 'f', arguments: '{"extra_content":1}' } }]
    expect(read(text)).toEqual(due)
    expect(summed(changes)).toEqual([
      'messages[].extra_content: - -> removed (refused)',
      'messages[].reasoning_content: - -> removed (refused)',
    ])
    expect(adapt('chat', history, {}, { refused: ['messages[].reasoning'] })).toMatchObject({ text: history })
  })

  it('is said to be nothing, to models that want to see what they thought', () => {
    for (const name of ['deepseek-v4-pro', 'deepseek-reasoner', 'kimi-k2.5', 'kimi-k2p6', 'kimi-k2-thinking']) {
      const { text, changes } = adapt('chat', history, acceptedBy(name, 'chat')!)
      expect(read(text).map(turn => turn.reasoning_content)).toEqual([
        undefined,
        'hm "',
        undefined,
        ' ',
        ' ',
        undefined,
      ])
      expect(summed(changes)).toEqual(['messages[].reasoning_content: - -> no thoughts (unsupported)'])
    }
    for (const name of ['deepseek-chat', 'kimi-k2-instruct', 'gpt-5'])
      expect(adapt('chat', history, acceptedBy(name, 'chat')!).text).toBe(history)
  })
})

describe('who speaks when', () => {
  const deepseek = acceptedBy('deepseek-v4-flash', 'chat')!
  const mistral = acceptedBy('mistral-small', 'chat')!
  const said = (...messages: object[]) => JSON.stringify({ model: 'm', messages })
  const developer = said(
    { role: 'developer', content: 'developer' },
    { content: 'hi', role: 'user' },
    { role: 'developer', content: 'more' },
  )

  it('is the system where a model knows no developer', () => {
    const { text, changes } = adapt('chat', developer, deepseek)
    expect(text).toBe(developer.replaceAll('"role":"developer"', '"role":"system"'))
    expect(summed(changes)).toEqual(['messages[].role: developer -> system (unsupported)'])
    for (const name of ['gpt-5.5', 'gpt-4o', 'chatgpt-4o', 'o3', 'codex-mini'])
      expect(adapt('chat', developer, acceptedBy(name, 'chat') ?? {}).text).toBe(developer)
  })

  it('is the assistant between a tool and the user, for models of Mistral', () => {
    const tool = { role: 'tool', tool_call_id: 'D681PevKs', content: 'user' }
    const turns = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [] },
      tool,
      tool,
      { content: 'and now', role: 'user' },
      { role: 'user', content: 'more' },
    ]
    const { text, changes } = adapt('chat', said(...turns), mistral)
    expect(JSON.parse(text).messages).toEqual([
      ...turns.slice(0, 4),
      { role: 'assistant', content: 'OK.' },
      ...turns.slice(4),
    ])
    expect(summed(changes)).toEqual(['messages[].role: user after tool -> assistant between (unsupported)'])
    expect(adapt('chat', said(...turns), acceptedBy('llama-3', 'chat')!).text).toBe(said(...turns))
  })
})

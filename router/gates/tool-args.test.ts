import { afterAll, describe, expect, it } from 'vitest'
import { regexWorkers } from '../host/regex-worker.ts'
import type { GateConfig } from './gate-kinds.ts'
import type { RegexRunner } from './regex-runner.ts'
import { base, builtGate, never } from './testing/fake-gate.ts'
import { type AnswerParts, inputOf } from './testing/subject.ts'

const workers = regexWorkers({ size: 1 })
afterAll(() => workers.close())

const config: GateConfig<'tool-args'> = { ...base, kind: 'tool-args', allow: null, deny: [], requireKnown: true }
const toolArgsGate = (config: GateConfig<'tool-args'>, regexRunner?: RegexRunner) =>
  builtGate(config, regexRunner && { regexRunner }).run
const weather = { type: 'object', required: ['city'], properties: { city: { type: 'string' } } }
const code = { type: 'object', properties: { code: { type: 'string', pattern: '^[a-z]+$' } } }
const messages = [{ role: 'user', content: 'hi' }]

const requests = {
  chat: {
    model: 'auto',
    messages,
    tools: [
      { type: 'function', function: { name: 'weather', parameters: weather } },
      { type: 'function', function: { name: 'code', parameters: code } },
      { type: 'function', function: { name: 'ping' } },
      { type: 'function', function: { name: 'broken', parameters: { type: 'objekt' } } },
      { type: 'custom', custom: { name: 'shell' } },
    ],
  },
  messages: {
    model: 'auto',
    max_tokens: 9,
    messages,
    tools: [
      { name: 'weather', input_schema: weather },
      { name: 'code', input_schema: code },
      { type: 'bash_20250124', name: 'ping' },
      { name: 'broken', input_schema: { $ref: 'https://example.com/schema' } },
    ],
  },
}

async function judge(dialect: 'chat' | 'messages', parts: AnswerParts, more: Partial<GateConfig<'tool-args'>> = {}) {
  const gate = toolArgsGate({ ...config, ...more }, workers)
  const { verdict, reason } = await gate(inputOf(parts, { dialect, request: requests[dialect] }), never)
  return reason === undefined ? verdict : `${verdict} ${reason}`
}

describe.each(['chat', 'messages'] as const)('tool-args on a %s request', dialect => {
  const cut = dialect === 'chat' ? 'length' : 'max_tokens'

  it.each<[string, AnswerParts, Partial<GateConfig<'tool-args'>>, string]>([
    ['no calls', { text: 'hello' }, {}, 'pass'],
    ['a cut answer without calls', { text: 'hello', finish: cut }, {}, 'pass'],
    ['arguments that match', { calls: [['weather', '{"city":"Bonn"}']] }, {}, 'pass'],
    [
      'a missing argument',
      { calls: [['weather', '{}']] },
      {},
      'fail call 0: arguments do not match the schema (required)',
    ],
    [
      'the second of two calls',
      {
        calls: [
          ['ping', ''],
          ['weather', '{"city":1}'],
        ],
      },
      {},
      'fail call 1: arguments do not match the schema (type)',
    ],
    ['arguments that are not JSON', { calls: [['weather', '{"city":']] }, {}, 'fail call 0: arguments are not JSON'],
    ['a cut call', { calls: [['weather', '{"city":"B"}']], finish: cut }, {}, 'fail truncated'],
    ['no arguments where none are needed', { calls: [['ping', ' ']] }, {}, 'pass'],
    [
      'no arguments where some are',
      { calls: [['weather', '']] },
      {},
      'fail call 0: arguments do not match the schema (required)',
    ],
    ['a tool without a schema', { calls: [['ping', '{"any":1}']] }, {}, 'pass'],
    ['an unknown tool', { calls: [['rm', '{}']] }, {}, 'fail call 0: unknown tool'],
    ['an unknown tool that may be', { calls: [['rm', '{}']] }, { requireKnown: false }, 'pass'],
    [
      'an unknown tool with broken arguments',
      { calls: [['rm', '{']] },
      { requireKnown: false },
      'fail call 0: arguments are not JSON',
    ],
    ['a denied tool', { calls: [['weather', '{"city":"B"}']] }, { deny: ['weather'] }, 'fail call 0: denied tool'],
    ['a tool that is not allowed', { calls: [['ping', '']] }, { allow: ['weather'] }, 'fail call 0: tool not allowed'],
    ['a pattern that matches', { calls: [['code', '{"code":"abc"}']] }, {}, 'pass'],
    [
      'a pattern that does not',
      { calls: [['code', '{"code":"A"}']] },
      {},
      'fail call 0: arguments do not match the schema (pattern)',
    ],
    ['a schema of the client that is none', { calls: [['broken', '{}']] }, {}, 'abstain call 0: bad_tool_schema'],
    [
      'a bad call beside it',
      {
        calls: [
          ['broken', '{}'],
          ['rm', '{}'],
        ],
      },
      {},
      'fail call 1: unknown tool',
    ],
  ])('judges %s', async (_, parts, more, expected) => {
    expect(await judge(dialect, parts, more)).toBe(expected)
  })
})

describe('tool-args', () => {
  it('takes free text for a custom tool of the chat dialect', async () => {
    expect(await judge('chat', { calls: [['shell', 'ls -l']] })).toBe('pass')
  })

  it('finds the older functions of the chat dialect', async () => {
    const request = { model: 'auto', messages, functions: [{ name: 'weather', parameters: weather }] }
    const gate = toolArgsGate(config, workers)
    const say = async (args: string) =>
      (await gate(inputOf({ calls: [['weather', args]], finish: 'function_call' }, { request }), never)).verdict
    expect([await say('{"city":"Bonn"}'), await say('{}')]).toEqual(['pass', 'fail'])
  })

  it('holds no error against itself for a schema it cannot use', async () => {
    const bad = inputOf({ calls: [['broken', '{}']] }, { request: requests.chat })
    expect((await toolArgsGate(config, workers)(bad, never)).error).toBeUndefined()
  })

  it('abstains without a runner where a schema can take any time', async () => {
    const gate = toolArgsGate(config)
    const say = async (name: string, args: string) =>
      (await gate(inputOf({ calls: [[name, args]] }, { request: requests.chat }), never)).verdict
    expect([await say('code', '{"code":"abc"}'), await say('weather', '{"city":"B"}')]).toEqual(['abstain', 'pass'])
  })

  it('ends a schema of a client that asks much of each of many values', async () => {
    const parameters = {
      properties: { list: { items: { allOf: Array.from({ length: 20_000 }, () => ({ type: 'integer' })) } } },
    }
    const request = { model: 'auto', messages, tools: [{ type: 'function', function: { name: 'much', parameters } }] }
    const args = JSON.stringify({ list: Array.from({ length: 2000 }, (_, i) => i) })
    const running = toolArgsGate(config, workers)(
      inputOf({ calls: [['much', args]] }, { request }),
      AbortSignal.timeout(150),
    )
    await expect(running).rejects.toThrow('timeout')
    const few = toolArgsGate(config)(inputOf({ calls: [['much', '{"list":[1,2]}']] }, { request }), never)
    expect((await few).verdict).toBe('pass')
  })

  it('ends a schema of a client that doubles its work with each reference', async () => {
    const links = Array.from({ length: 40 }, (_, i) => [
      `d${i}`,
      { anyOf: [1, 2].map(() => ({ $ref: `#/$defs/d${i + 1}` })) },
    ])
    const bomb = { $ref: '#/$defs/d0', $defs: { ...Object.fromEntries(links), d40: { type: 'string' } } }
    const request = {
      model: 'auto',
      messages,
      tools: [{ type: 'function', function: { name: 'bomb', parameters: bomb } }],
    }
    const running = toolArgsGate(config, workers)(
      inputOf({ calls: [['bomb', '{}']] }, { request }),
      AbortSignal.timeout(150),
    )
    await expect(running).rejects.toThrow('timeout')
  })
})

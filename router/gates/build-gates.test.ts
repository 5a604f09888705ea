import { describe, expect, it } from 'vitest'
import { loadConfig } from '../config/load-config.ts'
import { buildGates } from './build-gates.ts'
import type { GateHost } from './gate-host.ts'
import type { GateConfig } from './gate-kinds.ts'
import { base, never } from './testing/fake-gate.ts'
import { inputOf } from './testing/subject.ts'

const host: Required<GateHost> = {
  runProcess: async () => ({ kind: 'spawn_failed' }),
  fetch: async () => Response.json({ verdict: 'pass' }),
  functions: { grade: () => ({ verdict: 'pass' }) },
  regexRunner: { run: async () => ({ verdict: 'pass' }) },
  env: name => (name === 'TOKEN' ? 't' : undefined),
}
const length = { ...base, kind: 'length', minChars: null, maxChars: 5, minTokens: null, maxTokens: null } as const
const regex = { ...base, kind: 'regex', must: ['a'], mustNot: [], flags: 'u', window: null } as const
const http = {
  ...base,
  kind: 'http',
  url: 'https://g/',
  headersEnv: { authorization: 'TOKEN' },
  method: 'POST',
} as const
const schema = {
  ...base,
  kind: 'schema',
  schema: { pattern: 'a' },
  draft: '2020-12',
  fences: true,
  onToolCall: 'pass',
} as const
const subprocess = { ...base, kind: 'subprocess', cmd: ['x'], cwd: null, envPass: [], stdin: 'json' } as const
const fn = { ...base, kind: 'function', name: 'grade' } as const

describe('buildGates', () => {
  it('has the built-in gates without a block, and a block of the same id takes their place', async () => {
    const gate = { id: 'json-valid', kind: 'length', max_chars: 5 }
    const loaded = loadConfig({ gate: [gate] }, { hostHasProcesses: false })
    const { gates, problems } = buildGates(loaded.ok ? Object.values(loaded.config.gates) : [], {})
    expect([[...gates.keys()].sort(), problems]).toEqual([['json-valid', 'non-empty'], []])
    expect([gates.get('non-empty')!.kind, gates.get('json-valid')!.kind]).toEqual(['non-empty', 'length'])
    expect(gates.get('non-empty')!.onPrefix).toBeDefined()
    expect((await gates.get('non-empty')!.run(inputOf({ text: '' }), never)).verdict).toBe('fail')
  })

  it('makes every kind this host can run, with what the config says of it', async () => {
    const kinds: GateConfig[] = [
      length,
      regex,
      http,
      schema,
      subprocess,
      fn,
      { ...base, kind: 'tool-args', allow: null, deny: [], requireKnown: true },
    ]
    const configs = kinds.map((kind, i) => ({
      ...kind,
      id: `g${i}`,
      timeoutMs: 77,
      cost: 5,
      onAbstain: 'fail-closed' as const,
    }))
    const { gates, problems } = buildGates(configs, host)
    expect(problems).toEqual([])
    for (const { id, kind } of configs) {
      const gate = gates.get(id)!
      expect(gate).toMatchObject({
        id,
        kind,
        timeoutMs: 77,
        costNano: 5,
        onAbstain: 'fail-closed',
        onPrefix: undefined,
      })
      const { verdict } = await gate.run(inputOf({ text: '"abc"' }), never)
      expect(verdict).toBe(kind === 'subprocess' ? 'abstain' : 'pass')
    }
  })

  it.each<[string, GateConfig, GateHost, string, RegExp]>([
    ['a program without processes', subprocess, {}, 'host', /cannot start processes: use an http gate/],
    ['a pattern without worker threads', regex, {}, 'host', /no worker threads/],
    ['a pattern in a schema without worker threads', schema, {}, 'host', /its schema uses pattern/],
    ['a function nobody gave', { ...fn, name: 'toString' }, host, 'unknown_function', /no function "toString"/],
    [
      'a variable that is not set',
      { ...http, headersEnv: { a: 'NONE' } },
      host,
      'missing_variable',
      /variable NONE is not set/,
    ],
    ['a call where there is no network', http, {}, 'host', /no outgoing calls/],
  ])('refuses %s with a sentence', (_, config, on, code, message) => {
    const { gates, problems } = buildGates([config], on)
    expect(problems).toMatchObject([{ gateId: 'g', code, message: expect.stringMatching(message) }])
    expect(problems[0]!.message).toMatch(/^gate "g": /)
    expect(gates.has('g')).toBe(false)
  })

  it('lists all problems, and builds the other gates', () => {
    const { gates, problems } = buildGates([length, { ...subprocess, id: 's' }, { ...fn, id: 'f', name: 'x' }], {})
    expect(problems.map(({ gateId, code }) => [gateId, code])).toEqual([
      ['s', 'host'],
      ['f', 'unknown_function'],
    ])
    expect(gates.has('g')).toBe(true)
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agentOf } from '../receipt/request-part.ts'
import { globMatches, type MatchFacts, matchRoute } from './match-route.ts'
import { configOf } from './testing/route-of.ts'

const facts = (over: Partial<MatchFacts> & { headers?: Record<string, string> } = {}): MatchFacts => ({
  api: 'messages',
  tenant: 'default',
  agent: 'claude-code',
  hasTools: false,
  hasImages: false,
  stream: false,
  bodyBytes: 1000,
  header: name => over.headers?.[name],
  ...over,
})
const ixOf = (text: string, over: Parameters<typeof facts>[0] = {}) =>
  matchRoute(configOf(text).routes, facts(over))?.ix

describe('globMatches', () => {
  it('agrees with the same pattern as a regular expression', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'A', 'b', '.', '*', '-'), maxLength: 8 })
    const text = fc.string({ unit: fc.constantFrom('a', 'B', 'b', '.', '-'), maxLength: 10 })
    let matched = 0
    fc.assert(
      fc.property(letters, text, (glob, value) => {
        const source = glob.replaceAll('.', '\\.').replaceAll('*', '.*')
        const wanted = new RegExp(`^${source}$`, 'i').test(value)
        if (wanted) matched++
        expect(globMatches(glob, value)).toBe(wanted)
      }),
      { numRuns: 3000 },
    )
    expect(matched).toBeGreaterThan(50)
  })

  it('stays fast on patterns that make a backtracking matcher explode', () => {
    expect(globMatches(`${'*a'.repeat(40)}b`, 'a'.repeat(5000))).toBe(false)
  })
})

describe('agentOf', () => {
  it('takes the header, then the first product of user-agent, then unknown', () => {
    expect(agentOf('Own-Agent', 'claude-cli/2.0.1')).toBe('Own-Agent')
    expect(agentOf(undefined, 'claude-cli/2.0.1 (external, cli)')).toBe('claude-code')
    expect(agentOf('  ', 'codex_cli_rs/0.4 (Linux)')).toBe('codex')
    // As `codex exec` of 0.169.0 names itself.
    expect(agentOf(undefined, 'codex_exec/0.169.0 (Linux)')).toBe('codex')
    expect(agentOf(undefined, 'OpenAI/Python 1.2')).toBe('openai')
    expect(agentOf(undefined, undefined)).toBe('unknown')
    expect(agentOf(undefined, '')).toBe('unknown')
  })
})

describe('matchRoute', () => {
  it('takes the first route whose keys all hold', () => {
    const text = `[[route]]
match = { agent = "claude-*", has_tools = true }
[[route]]
match = { agent = ["codex", "CLAUDE-CODE"] }
[[route]]
`
    expect(ixOf(text, { hasTools: true })).toBe(0)
    expect(ixOf(text)).toBe(1)
    expect(ixOf(text, { agent: 'other' })).toBe(2)
    expect(ixOf('[[route]]\nmatch = { agent = "x" }\n')).toBeUndefined()
  })

  it.each<[key: string, holds: Parameters<typeof facts>[0], fails: Parameters<typeof facts>[0]]>([
    ['model = "gpt-*"', { model: 'GPT-5' }, { model: 'claude' }],
    ['model = "*"', { model: '' }, {}],
    ['api = "chat"', { api: 'chat' }, {}],
    ['tenant = "acme"', { tenant: 'Acme' }, {}],
    ['subagent = "re*er"', { subagent: 'reviewer' }, {}],
    ['task = ["extract", "classify"]', { task: 'classify' }, { task: 'chat' }],
    ['language = "py*"', { language: 'python' }, {}],
    ['has_images = true', { hasImages: true }, {}],
    ['has_tools = false', {}, { hasTools: true }],
    ['stream = true', { stream: true }, {}],
    ['min_body_bytes = 1001', { bodyBytes: 1001 }, {}],
    ['max_body_bytes = 999', { bodyBytes: 999 }, {}],
    ['header = { X-Team = "a*" }', { headers: { 'x-team': 'Alpha' } }, { headers: { 'x-team': 'beta' } }],
    ['header = { x-team = "*" }', { headers: { 'x-team': '' } }, {}],
  ])('looks at %s', (key, holds, fails) => {
    const text = `[[route]]\nmatch = { ${key} }\n`
    expect(ixOf(text, holds)).toBe(0)
    expect(ixOf(text, fails)).toBeUndefined()
  })
})

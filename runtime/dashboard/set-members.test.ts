import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type ManifestInput, manifest } from '../../shared/wire/runtime/manifest.ts'
import { setMembers } from './pages/agent.ts'

const part = fc.record(
  {
    systemPrompt: fc.constantFrom('', 'Be brief.'),
    model: fc.constantFrom('auto', 'demo/echo'),
    isolation: fc.constantFrom('shared' as const, 'microvm' as const),
    limits: fc.record({ maxTurns: fc.constantFrom(25, 3), memoryMb: fc.constantFrom(512, 64) }, { requiredKeys: [] }),
    tools: fc.uniqueArray(
      fc.constantFrom(
        'wait' as const,
        { name: 'http_request' as const, effect: 'once' as const },
        { name: 'ask_human' as const, timeoutSeconds: 5 },
      ),
      { selector: tool => (typeof tool === 'string' ? tool : tool.name) },
    ),
    inputSchema: fc.constant({ type: 'object', properties: { a: { type: 'string', default: 'x' } } }),
    confidence: fc.constantFrom({}, { threshold: 0.5 }, { samples: 5 }),
    retry: fc.constantFrom({}, { maxAttempts: 1, jitter: false }),
    privacy: fc.constantFrom({}, { storePrompts: false }, { redact: ['email' as const] }),
    entrypoint: fc.constant({ command: 'node', args: ['x'] }),
  },
  { requiredKeys: [] },
)

it('is the same manifest when it is published again, and no longer than what was sent', () => {
  fc.assert(
    fc.property(part, given => {
      const whole = manifest.parse(given as ManifestInput)
      const kept = setMembers(whole)
      expect(manifest.parse(kept)).toEqual(whole)
      for (const name of Object.keys(kept)) expect(Object.keys(given)).toContain(name)
    }),
  )
})

it('has its members in the order of the schema, and a tool that is as usual as its name', () => {
  const whole = manifest.parse({
    tools: ['wait', { name: 'http_request', effect: 'once' }],
    model: 'demo/echo',
    systemPrompt: 'x',
  })
  expect(JSON.stringify(setMembers(whole))).toMatch(
    /^\{"systemPrompt":"x","model":"demo\/echo","tools":\["wait",\{"name":"http_request",.*\}\]\}$/,
  )
  expect(setMembers(manifest.parse({}))).toEqual({})
})

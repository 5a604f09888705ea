import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { modelAliases, modelName, providerIds } from './model-name.ts'

describe('modelName', () => {
  it.each([
    ['auto', 'auto'],
    ['reasoning-frontier', 'reasoning-frontier'],
    ['chat_small', 'chat-small'],
    ['gpt-5.5', 'openai/gpt-5.5'],
    ['o3-mini', 'openai/o3-mini'],
    ['claude-sonnet-5', 'anthropic/claude-sonnet-5'],
    ['gemini-2.5-pro', 'google/gemini-2.5-pro'],
    ['demo/echo', 'demo/echo'],
    ['openai-compatible:local/meta/llama-3', 'openai-compatible:local/meta/llama-3'],
    ['bedrock/anthropic.claude-x-v1:0', 'bedrock/anthropic.claude-x-v1:0'],
  ])('stores %s as %s', (given, stored) => {
    expect(modelName(given)?.value).toBe(stored)
  })

  it.each(['', 'Auto', 'llama', 'nobody/model', 'openai/', '/gpt-5', 'openai/a b', 'openai-compatible:/x', 'GPT-5'])(
    'does not know %j',
    given => {
      expect(modelName(given)).toBeUndefined()
    },
  )

  it('splits at the first slash only', () => {
    expect(modelName('openai-compatible/a/b/c')).toMatchObject({ provider: 'openai-compatible', model: 'a/b/c' })
  })

  it('is idempotent: what is stored reads as itself', () => {
    const given = fc.oneof(
      fc.constantFrom('auto', ...modelAliases, ...modelAliases.map(name => name.replaceAll('-', '_'))),
      fc.tuple(fc.constantFrom(...providerIds, 'other'), fc.string()).map(([a, b]) => `${a}/${b}`),
      fc.tuple(fc.constantFrom('gpt-', 'o1', 'claude-', 'gemini-', 'x'), fc.string()).map(([a, b]) => a + b),
    )
    fc.assert(
      fc.property(given, text => {
        const read = modelName(text)
        if (read) expect(modelName(read.value)).toEqual(read)
      }),
    )
  })
})

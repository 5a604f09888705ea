import { describe, expect, it } from 'vitest'
import { acceptedBy } from './model-table.ts'

describe('the model table', () => {
  it.each([
    ['claude-haiku-4-5', ['enabled', 'disabled'], [], 64_000],
    ['claude-haiku-4.5', ['enabled', 'disabled'], [], 64_000],
    ['claude-opus-4-1', ['enabled', 'disabled'], [], 32_000],
    ['claude-opus-4-5', ['enabled', 'disabled'], ['low', 'medium', 'high'], 64_000],
    ['claude-sonnet-4-6', undefined, ['low', 'medium', 'high', 'max'], 128_000],
    ['claude-opus-4-8', ['adaptive', 'disabled'], ['low', 'medium', 'high', 'xhigh', 'max'], 128_000],
    ['claude-sonnet-5', ['adaptive', 'disabled'], ['low', 'medium', 'high', 'xhigh', 'max'], 128_000],
    ['claude-fable-5', ['adaptive'], ['low', 'medium', 'high', 'xhigh', 'max'], 128_000],
    ['claude-fable-5-2', ['adaptive'], ['low', 'medium', 'high', 'xhigh', 'max'], 128_000],
    ['claude-mythos-5-2', ['adaptive'], ['low', 'medium', 'high', 'xhigh', 'max'], 128_000],
    ['claude-opus-5-5', ['adaptive'], ['low', 'medium', 'high', 'xhigh', 'max'], 128_000],
    ['claude-haiku-5-5', ['adaptive', 'disabled'], ['low', 'medium', 'high', 'xhigh', 'max'], 128_000],
    ['claude-sonnet-5-5', ['adaptive', 'between_tools'], ['low', 'medium', 'high', 'xhigh', 'max'], 128_000],
    ['claude-3-5-haiku', ['disabled'], [], 8192],
  ])('knows %s', (name, thinking, efforts, maxOutput) => {
    const found = acceptedBy(name, 'messages')
    expect([found?.thinking, found?.efforts, found?.maxOutput]).toEqual([thinking, efforts, maxOutput])
  })

  it.each([
    ['gpt-4.1-mini', [], undefined, undefined],
    ['gpt-4o', [], undefined, undefined],
    ['o3-mini', ['low', 'medium', 'high'], 'default', 'max_completion_tokens'],
    ['gpt-5-nano', ['minimal', 'low', 'medium', 'high'], 'default', 'max_completion_tokens'],
    ['gpt-5.1', ['none', 'low', 'medium', 'high'], 'without_effort', 'max_completion_tokens'],
    ['gpt-5.2', ['none', 'low', 'medium', 'high', 'xhigh'], 'without_effort', 'max_completion_tokens'],
  ])('knows %s, in chat and in responses', (name, efforts, sampling, limitName) => {
    for (const dialect of ['chat', 'responses'] as const) {
      const found = acceptedBy(name, dialect)
      expect([found?.efforts, found?.sampling, found?.limitName]).toEqual([efforts, sampling, limitName])
    }
  })

  it.each(['claude-opus-4-6-thinking', 'my-claude-haiku-4-5', 'claude-opus-9', 'gpt-5', 'llama-small', ''])(
    'says nothing of %s in messages',
    name => {
      expect(acceptedBy(name, 'messages')).toBeUndefined()
    },
  )

  it('says nothing of a model in a dialect that another host has made up for it', () => {
    expect(acceptedBy('claude-haiku-4-5', 'chat')).toEqual({ developer: false })
    expect(acceptedBy('gpt-5-turbo', 'chat')).toBeUndefined()
  })
})

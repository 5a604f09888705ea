import { describe, expect, it } from 'vitest'
import { answerToolName, closedSchema, outputRequest } from './structured-output.ts'

const total = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
const closed = { ...total, additionalProperties: false }
const optional = {
  type: 'object',
  properties: { total: { type: 'number' }, note: { type: 'string' } },
  required: ['total'],
}
const bounded = { type: 'object', properties: { total: { type: 'number', minimum: 0 } }, required: ['total'] }
const open = { type: 'object', additionalProperties: { type: 'number' } }

const claude = { provider: 'anthropic', dialect: 'messages', tools: false } as const
const gpt = { provider: 'openai', dialect: 'chat', tools: false } as const

describe('how an answer of a form is asked for', () => {
  it.each([
    ['claude-haiku-4-5', 'format'],
    ['claude-opus-4-1-20250805', 'format'],
    ['claude-sonnet-5-5', 'format'],
    ['claude-sonnet-4-20250514', 'tool'],
    ['claude-3-5-sonnet-20241022', 'tool'],
  ])('%s of Anthropic: by %s', (model, by) => {
    expect(outputRequest(total, { ...claude, model }).by).toBe(by)
  })

  it('gives Anthropic closed objects, and a tool where it cannot compile the schema', () => {
    const model = 'claude-haiku-4-5'
    expect(outputRequest(total, { ...claude, model })).toEqual({ by: 'format', schema: closed, strict: true })
    expect(outputRequest(optional, { ...claude, model }).by).toBe('format')
    for (const schema of [bounded, open])
      expect(outputRequest(schema, { ...claude, model })).toEqual({ by: 'tool', schema })
  })

  it('is strict with OpenAI only where every member is required and every word is compiled', () => {
    const model = 'gpt-4.1-mini'
    expect(outputRequest(total, { ...gpt, model })).toEqual({ by: 'format', schema: closed, strict: true })
    for (const schema of [optional, bounded, open])
      expect(outputRequest(schema, { ...gpt, model })).toEqual({ by: 'format', schema, strict: false })
    expect(outputRequest(total, { ...gpt, model: 'gpt-4-turbo' }).by).toBe('tool')
  })

  it('is a tool at hosts that nothing is known of, and at Google beside functions', () => {
    for (const provider of ['openai-compatible', 'openai-compatible:lab', 'router'] as const)
      expect(outputRequest(total, { provider, dialect: 'chat', model: 'm', tools: false }).by).toBe('tool')
    const google = { provider: 'google', dialect: 'chat', model: 'gemini-2.5-flash' } as const
    expect(outputRequest(total, { ...google, tools: false }).by).toBe('format')
    expect(outputRequest(total, { ...google, tools: true }).by).toBe('tool')
  })

  it('closes objects at every depth, and leaves notes out that no grammar reads', () => {
    const nested = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { list: { type: 'array', items: total }, one: { anyOf: [total, { type: 'null' }] } },
    }
    expect(closedSchema(nested)).toEqual({
      type: 'object',
      properties: { list: { type: 'array', items: closed }, one: { anyOf: [closed, { type: 'null' }] } },
      additionalProperties: false,
    })
    expect(closedSchema({ type: 'object', properties: { deep: open } })).toBeUndefined()
  })

  it('names its tool as no other is', () => {
    expect(answerToolName(['a'])).toBe('final_answer')
    expect(answerToolName(['final_answer', 'final_answer_'])).toBe('final_answer__')
  })
})

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { int, text } from '../../shared/wire/bounds.ts'
import { coerceArguments, readArguments, schemaOf } from './arguments.ts'
import { action } from './definition.ts'
import { path } from './path.ts'

const made = action({
  about: 'A test.',
  effect: 'read',
  arguments: z.object({
    chatId: text(1, 64),
    count: int(1, 10).default(3),
    urgent: z.boolean().optional(),
    tags: z.array(text(1, 10)).optional(),
  }),
  aliases: { chat_id: 'chatId' },
  request: ({ chatId }) => ({ path: path`/${chatId}` }),
})

describe('arguments', () => {
  it('take the text of a number for a number, and a number for its text', () => {
    expect(readArguments(made, { chatId: -1001234567890, count: '7', urgent: 'true', tags: 'one' })).toEqual({
      chatId: '-1001234567890',
      count: 7,
      urgent: true,
      tags: ['one'],
    })
  })

  it('leave out what is null or unknown, and fill in defaults', () => {
    expect(readArguments(made, { chatId: 'a', urgent: null, other: 1 })).toEqual({ chatId: 'a', count: 3 })
  })

  it('are read under their other spellings, which may not say something else', () => {
    expect(readArguments(made, { chat_id: 5 })).toEqual({ chatId: '5', count: 3 })
    expect(() => readArguments(made, { chat_id: 'a', chatId: 'b' })).toThrow('chat_id: differs from chatId')
  })

  it('are all named when they do not fit', () => {
    expect(() => readArguments(made, { count: '70', urgent: 'perhaps' })).toThrow(
      'chatId is required; count: expected an integer from 1 to 10; urgent: expected true or false',
    )
  })

  it('refuse a number that was rounded before it came', () => {
    expect(() => readArguments(made, JSON.parse('{"chatId": 9007199254740993123}') as { chatId: number })).toThrow(
      'chatId: expected a string of 1 to 64 characters',
    )
  })

  it('never hold half of a surrogate pair', () => {
    expect(coerceArguments(made, { chatId: 'a\ud800' })).toEqual({ chatId: 'a\ufffd' })
  })

  it('have a schema in which defaults are not required', () => {
    expect(schemaOf(made)).toMatchObject({
      type: 'object',
      required: ['chatId'],
      properties: { count: { type: 'integer', minimum: 1, maximum: 10, default: 3 } },
    })
    expect(schemaOf(made)).toBe(schemaOf(made))
  })
})

describe('a path', () => {
  it('encodes what it is given', () => {
    expect(path`/repos/${'a/b'}/pulls/${7}`).toBe('/repos/a%2Fb/pulls/7')
  })

  it.each(['.', '..', '', '...'])('does not take %j, which would lead elsewhere', segment => {
    expect(() => path`/repos/${segment}/pulls`).toThrow('cannot be part of a path')
  })
})

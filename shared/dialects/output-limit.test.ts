import { expect, it } from 'vitest'
import { scanChat } from './chat/parse.ts'
import { scanMessages } from './messages/parse.ts'
import type { ScanResult } from './request-facts.ts'

function factsOf(scan: (body: Uint8Array) => ScanResult, limits: string) {
  const result = scan(body(limits))
  if (!result.ok) throw new Error(result.message)
  return result.facts
}
const chat = (limits: string) => factsOf(scanChat, limits)
const messages = (limits: string) => factsOf(scanMessages, limits)
const body = (limits: string) => new TextEncoder().encode(`{"model":"m",${limits}"messages":[]}`)

it.each([
  ['none', '', undefined],
  ['one', '"max_tokens":100,', 100],
  ['null', '"max_tokens":null,', undefined],
  ['zero, which some hosts take for none', '"max_tokens":0,', undefined],
  ['minus one, likewise', '"max_tokens":-1,', undefined],
  ['a number below what can be held', '"max_tokens":-1e400,', undefined],
  ['a number above it', '"max_tokens":1e400,', undefined],
  ['one given twice, the smaller last', '"max_tokens":5000,"max_tokens":1,', 5000],
  ['one given twice, once as none', '"max_tokens":-1,"max_tokens":1,', undefined],
  ['a text, which some hosts read as its number', '"max_tokens":"9000",', undefined],
  ['one given twice, once as a text', '"max_tokens":"9000","max_tokens":1,', undefined],
])('the limit of an answer is the loosest that a host may read: %s', (_, limits, expected) => {
  expect(chat(limits).maxTokens).toBe(expected)
  expect(messages(limits).maxTokens).toBe(expected)
})

it('two names for it count together in the chat dialect', () => {
  expect(chat('"max_tokens":100000,"max_completion_tokens":1,').maxTokens).toBe(100_000)
  expect(chat('"max_tokens":null,"max_completion_tokens":7,').maxTokens).toBe(7)
  expect(chat('"max_tokens":1,"max_completion_tokens":"9000",').maxTokens).toBeUndefined()
  expect(chat('"n":50,"n":1,').n).toBe(50)
  expect(chat('"n":null,').n).toBe(1)
  // A host that reads the number in it makes as many answers.
  expect(chat('"n":"50",').n).toBe(Number.POSITIVE_INFINITY)
})

import { expect, it } from 'vitest'
import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'
import { windowOf } from './price-of-call.ts'

it('the window of a model is what the tenant says, else what the table of vendors knows', async () => {
  const windows = { 'openai-compatible/small': 8192, 'openai/gpt-4o': 64_000 }
  const of = (provider: 'openai' | 'anthropic' | 'openai-compatible' | 'router', model: string, own = {}) =>
    windowOf({ windows: own }, loadBuiltinPrices, { provider, model })
  expect(await of('openai', 'gpt-4o')).toBe(128_000)
  expect(await of('router', 'gpt-4o')).toBe(128_000)
  expect(await of('openai', 'gpt-4o', windows)).toBe(64_000)
  expect(await of('openai-compatible', 'small', windows)).toBe(8192)
  expect(await of('openai-compatible', 'other')).toBeUndefined()
  expect(await of('anthropic', 'no-such-model')).toBeUndefined()
})

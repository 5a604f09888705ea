import { expect, it } from 'vitest'
import { PLAIN_BILLING } from '../../shared/dialects/estimate.ts'
import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'
import { pricing } from './price-of-call.ts'

const { costOf } = pricing({ prices: {} }, loadBuiltinPrices, () => new Date('2026-11-26T00:00:00Z'))
const tokens = { uncached: 1_000_000, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 1_000_000 }
const claude = {
  provider: 'anthropic',
  asked: 'claude-opus-5',
  answered: 'claude-opus-5',
  dialect: 'messages',
} as const
const unknown = { ...claude, asked: 'new', answered: 'new' }
const openai = { provider: 'openai', asked: 'gpt-5', answered: 'gpt-5-2025-08-07', dialect: 'chat' } as const

it.each([
  ['at list prices', claude, {}, 30],
  ['in fast mode', claude, { rates: ['fast'] }, 60],
  ['with searches', claude, { webSearches: 100 }, 31],
  ['by the model that a provider fell back to', claude, { fallback: 'claude-haiku-4-5' }, 6],
  ['with an advisor', claude, { others: [{ model: 'claude-haiku-4-5', tokens }] }, 36],
  ['by a model without a known price, as the one asked', claude, { fallback: 'new' }, 30],
  ['with a picture of unknown price, without it', claude, { others: [{ model: null, tokens }] }, 30],
  ['that costs more than its tokens, as its provider says', claude, { stated: 31_000_000_000 }, 31],
  ['of a model without a price, as its provider says', unknown, { stated: 1_000_000 }, 0.001],
  ['by a dearer tier', openai, { rates: ['priority'] }, 22.5],
  ['by a cheaper tier', openai, { rates: ['flex'] }, 5.625],
])('a call %s costs a run what its provider bills', async (_, call, billing, usd) => {
  const cost = await costOf({ ...call, tokens, billing: { ...PLAIN_BILLING, ...billing } })
  expect((cost?.costNano ?? 0) / 1e9).toBe(usd)
  const { inputNano = 0, cacheReadNano = 0, cacheWriteNano = 0, outputNano = 0 } = cost?.parts ?? {}
  if (call !== unknown) expect(inputNano + cacheReadNano + cacheWriteNano + outputNano).toBe(cost?.costNano)
})

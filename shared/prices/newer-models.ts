import type { ListPrice } from './price.ts'

/** A model that is newer than the bundled table, with what its maker publishes. */
export interface NewerModel {
  readonly list: ListPrice
  /** Of a call with more input. */
  readonly above?: { readonly input: number; readonly list: ListPrice }
  readonly window: number
}

type Models = Readonly<Record<string, NewerModel>>

const MYTHOS: ListPrice = { input: 10, output: 50, cacheWrite5m: 12.5, cacheWrite1h: 20, cacheRead: 1 }

const FABLE: ListPrice = { input: 8, output: 40, cacheWrite5m: 10, cacheWrite1h: 16, cacheRead: 0.2 }

const ANTHROPIC: Models = {
  'claude-fable-5-2': { list: FABLE, window: 1_000_000 },
  'claude-sonnet-5-5': {
    list: { input: 2, output: 10, cacheWrite5m: 2.5, cacheWrite1h: 4, cacheRead: 0.1 },
    window: 1_000_000,
  },
  'claude-haiku-5-5': {
    list: { input: 0.1, output: 0.5, cacheWrite5m: 0.125, cacheWrite1h: 0.2, cacheRead: 0.01 },
    above: {
      input: 100_000,
      list: { input: 0.5, output: 2.5, cacheWrite5m: 0.625, cacheWrite1h: 1, cacheRead: 0.05 },
    },
    window: 1_000_000,
  },
  'claude-mythos-5': { list: MYTHOS, window: 1_000_000 },
  'claude-mythos-5-2': { list: FABLE, window: 1_000_000 },
  'claude-mythos-5-1': { list: { ...MYTHOS, cacheRead: 0.25 }, window: 1_000_000 },
  'claude-mythos-preview': { list: MYTHOS, window: 1_000_000 },
}

const OPENAI: Models = {
  'gpt-6.1-sol': {
    list: { input: 2, output: 10, cacheWrite5m: 2.5, cacheRead: 0.1 },
    above: { input: 272_000, list: { input: 4, output: 15, cacheWrite5m: 5, cacheRead: 0.2 } },
    window: 1_050_000,
  },
  'gpt-6.1-terra': {
    list: { input: 1, output: 5, cacheWrite5m: 1.25, cacheRead: 0.05 },
    above: { input: 272_000, list: { input: 2, output: 7.5, cacheWrite5m: 2.5, cacheRead: 0.1 } },
    window: 1_050_000,
  },
  'gpt-6-rosalind': {
    list: { input: 15, output: 75, cacheWrite5m: 18.75, cacheRead: 1.5 },
    above: { input: 272_000, list: { input: 30, output: 112.5, cacheWrite5m: 37.5, cacheRead: 3 } },
    window: 1_050_000,
  },
  'gpt-6-cyber': { list: { input: 20, output: 100, cacheWrite5m: 25, cacheRead: 2 }, window: 1_050_000 },
  'gpt-5.6-cyber': {
    list: { input: 12.5, output: 75, cacheWrite5m: 15.625, cacheRead: 1.25 },
    above: { input: 272_000, list: { input: 25, output: 112.5, cacheWrite5m: 31.25, cacheRead: 2.5 } },
    window: 400_000,
  },
  'gpt-5.5-cyber': { list: { input: 12.5, output: 75, cacheRead: 1.25 }, window: 400_000 },
  'gpt-5-search-api': { list: { input: 1.25, output: 10, cacheRead: 0.125 }, window: 400_000 },
}

const GOOGLE: Models = {
  'gemini-4-argon': { list: { input: 2, output: 10, cacheRead: 0.1 }, window: 1_048_576 },
  'gemini-4-hydrogen': { list: { input: 1.5, output: 7.5, cacheRead: 0.075 }, window: 1_048_576 },
}

export const NEWER: Readonly<Record<string, Models>> = { anthropic: ANTHROPIC, openai: OPENAI, google: GOOGLE }

/** By the model's name, with or without a date. */
export function newerModel(provider: string, model: string): NewerModel | undefined {
  const models = Object.hasOwn(NEWER, provider) ? NEWER[provider]! : {}
  const name = model.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, '')
  return Object.hasOwn(models, name) ? models[name] : undefined
}

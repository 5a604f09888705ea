import type { ModelAlias } from '../../shared/wire/runtime/model-name.ts'
import type { ModelSettings } from '../../shared/wire/runtime/provider.ts'

const FRONTIER = ['anthropic/claude-opus-5', 'openai/gpt-5.5', 'google/gemini-2.5-pro']
const LARGE = ['anthropic/claude-sonnet-5', 'openai/gpt-5.4', 'google/gemini-2.5-pro']
const SMALL = ['anthropic/claude-haiku-4-5', 'openai/gpt-5-mini', 'google/gemini-2.5-flash']
const EDGE = ['google/gemini-2.5-flash-lite', 'openai/gpt-5-nano', 'anthropic/claude-haiku-4-5']

const CAPABILITIES: Record<ModelAlias, readonly string[]> = {
  'reasoning-frontier': FRONTIER,
  'reasoning-large': LARGE,
  'reasoning-small': SMALL,
  'chat-large': LARGE,
  'chat-small': SMALL,
  'chat-edge': EDGE,
  'vision-large': LARGE,
  'vision-small': SMALL,
  'code-large': LARGE,
  'code-small': SMALL,
}

/** Candidates by alias until a tenant says otherwise. The router comes first: choosing a model is what it is for. */
export const DEFAULT_SETTINGS: ModelSettings = {
  aliases: {
    auto: ['router/auto', ...LARGE],
    ...Object.fromEntries(Object.entries(CAPABILITIES).map(([alias, models]) => [alias, [...models]])),
  },
  prices: {},
  windows: {},
}

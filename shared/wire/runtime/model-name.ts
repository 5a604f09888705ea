/** docs/spec/runtime.md §3, "Model values". */
export const modelAliases = [
  'reasoning-frontier',
  'reasoning-large',
  'reasoning-small',
  'chat-large',
  'chat-small',
  'chat-edge',
  'vision-large',
  'vision-small',
  'code-large',
  'code-small',
] as const
export type ModelAlias = (typeof modelAliases)[number]

/** docs/spec/runtime.md §10. `openai-compatible:<name>` is the ninth form. */
export const providerIds = [
  'anthropic',
  'openai',
  'google',
  'openai-compatible',
  'bedrock',
  'vertex',
  'router',
  'demo',
] as const
export type ProviderId = (typeof providerIds)[number] | `openai-compatible:${string}`

const COMPATIBLE = /^openai-compatible:[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
// Vendors put slashes, colons and at-signs in model names (`meta/llama`, `anthropic.claude:0`); spaces and controls never.
const MODEL = /^[\x21-\x7e]+$/

const prefixes: readonly (readonly [RegExp, string])[] = [
  [/^(gpt-|o1|o3|o4)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'google'],
]

export function isProvider(value: string): value is ProviderId {
  return (providerIds as readonly string[]).includes(value) || COMPATIBLE.test(value)
}

export type ModelName =
  | { kind: 'auto'; value: 'auto' }
  | { kind: 'alias'; value: ModelAlias }
  | { kind: 'model'; value: `${string}/${string}`; provider: ProviderId; model: string }

/** Reads a manifest's `model`; undefined when it is none of the accepted forms. `value` is what gets stored. */
export function modelName(given: string): ModelName | undefined {
  if (given === 'auto') return { kind: 'auto', value: 'auto' }
  const hyphens = given.replaceAll('_', '-')
  const alias = modelAliases.find(known => known === hyphens)
  if (alias) return { kind: 'alias', value: alias }
  if (given.length > 200 || !MODEL.test(given)) return undefined
  const slash = given.indexOf('/')
  if (slash === -1) {
    const vendor = prefixes.find(([pattern]) => pattern.test(given))?.[1]
    return vendor === undefined ? undefined : modelName(`${vendor}/${given}`)
  }
  const provider = given.slice(0, slash)
  const model = given.slice(slash + 1)
  if (!isProvider(provider) || model === '') return undefined
  return { kind: 'model', value: `${provider}/${model}`, provider, model }
}

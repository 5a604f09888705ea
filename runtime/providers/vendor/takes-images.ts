import type { ProviderId } from '../../../shared/wire/runtime/model-name.ts'

/** Claude from its third version on. */
const CLAUDE = /^claude-(?!2|instant)/
/** Models of OpenAI that take images and count at most a few thousand tokens for one: `gpt-4o-mini` counts tens of thousands. */
const GPT = /^(?:gpt-4o(?!-mini)|gpt-4\.1|gpt-5|o1(?!-mini|-preview)|o3(?!-mini)|o4-mini|chatgpt-4o)/
const NOT_GPT = /audio|realtime|search|spark|transcribe|tts/

/** Whether a model is known to take images. One that is not gets a sentence: a request that it refuses would end the run. */
export function takesImages(provider: ProviderId, model: string): boolean {
  if (provider === 'anthropic') return CLAUDE.test(model)
  if (provider === 'openai') return GPT.test(model) && !NOT_GPT.test(model)
  return provider === 'router' && CLAUDE.test(model.replace(/^anthropic\//, ''))
}

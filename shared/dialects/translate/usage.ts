import type { Tokens } from '../candidate.ts'
import type { JsonObject } from '../json-value.ts'

/** Token classes as a usage object of the messages dialect. */
export function messagesUsageOf(tokens: Tokens): JsonObject {
  return {
    input_tokens: tokens.uncached,
    cache_creation_input_tokens: tokens.cache_write_5m + tokens.cache_write_1h,
    cache_read_input_tokens: tokens.cache_read,
    cache_creation: {
      ephemeral_5m_input_tokens: tokens.cache_write_5m,
      ephemeral_1h_input_tokens: tokens.cache_write_1h,
    },
    output_tokens: tokens.output,
  }
}

/** Token classes as a usage object of the Responses API. */
export function responsesUsageOf(tokens: Tokens): JsonObject {
  const written = tokens.cache_write_5m + tokens.cache_write_1h
  const input = tokens.uncached + written + tokens.cache_read
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: tokens.cache_read, cache_write_tokens: written },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + tokens.output,
  }
}

/** Token classes as a usage object of the chat dialect, whose prompt count includes the cached parts. */
export function chatUsageOf(tokens: Tokens): JsonObject {
  const prompt = tokens.uncached + tokens.cache_write_5m + tokens.cache_write_1h + tokens.cache_read
  return {
    prompt_tokens: prompt,
    completion_tokens: tokens.output,
    total_tokens: prompt + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cache_read },
  }
}

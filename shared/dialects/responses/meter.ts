import type { SseFrame } from '../../http/sse-read.ts'
import type { Tokens, UpstreamError } from '../candidate.ts'
import { JsonSyntaxError } from '../json-scan.ts'
import { tryParseJson } from '../json-text.ts'
import type { JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isObject, tryParse } from '../json-value.ts'
import type { Meter, MeterReading } from '../meter.ts'
import { utf8Bytes } from '../text-pieces.ts'
import { tokenCount } from '../token-count.ts'
import { errorIn } from '../upstream-error.ts'

/** The last event of a stream holds the whole response, also where it failed or came to a limit. */
const LAST = new Set(['response.completed', 'response.incomplete', 'response.failed'])

/** Meters a stream of the Responses API. */
export function responsesMeter(): Meter {
  let response: JsonObject = {}
  let isOver = false
  let textBytes = 0
  let error: UpstreamError | null = null
  return {
    push({ data }: SseFrame) {
      const event = data === undefined || isOver ? undefined : tryParse(data)
      if (!isObject(event)) return
      // Of text, of a refusal, of reasoning, of the input of a tool.
      if (typeof event.delta === 'string') textBytes += utf8Bytes(event.delta)
      else if (isObject(event.response)) {
        response = event.response
        isOver = LAST.has(asString(event.type) ?? '')
      } else if (event.type === 'error') error = errorIn(event)
    },
    reading() {
      const known = readResponse(response)
      return { ...known, textBytes, error: error ?? known.error, complete: isOver && known.complete }
    },
  }
}

/** Meters a whole answer. Throws JsonSyntaxError for a body that is not a JSON object. */
export function readResponsesBody(body: Uint8Array): MeterReading {
  const answer = tryParseJson(body)
  if (!isObject(answer)) throw new JsonSyntaxError('a JSON object', 0)
  return readResponse(answer)
}

/** A response that runs in the background has no usage yet: what it will cost is not known from this answer. */
function readResponse(answer: JsonObject): MeterReading {
  const status = asString(answer.status)
  const error = errorIn({ error: answer.error ?? null })
  return {
    id: asString(answer.id),
    model: asString(answer.model),
    finish: asString(asObject(answer.incomplete_details).reason) ?? status,
    tokens: isObject(answer.usage) ? responsesTokens(answer.usage) : null,
    serviceTier: asString(answer.service_tier),
    webSearches: asArray(answer.output).filter(isWebSearch).length,
    textBytes: 0,
    complete: error === null && (status === 'completed' || status === 'incomplete'),
    error,
  }
}

/** The input count includes the cached part, which is taken out here, and the output count the reasoning. */
function responsesTokens(usage: JsonObject): Tokens | null {
  const [input, output] = [tokenCount(usage.input_tokens), tokenCount(usage.output_tokens ?? 0)]
  if (input === undefined || output === undefined) return null
  const read = tokenCount(asObject(usage.input_tokens_details).cached_tokens) ?? 0
  return { uncached: Math.max(0, input - read), cache_write_5m: 0, cache_write_1h: 0, cache_read: read, output }
}

/** To open a page and to look into it are actions of the same item, and no searches. */
function isWebSearch(item: unknown): boolean {
  const { type, action } = isObject(item as JsonObject) ? (item as JsonObject) : ({} as JsonObject)
  return type === 'web_search_call' && (asObject(action).type ?? 'search') === 'search'
}

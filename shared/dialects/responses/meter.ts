import type { SseFrame } from '../../http/sse-read.ts'
import type { UpstreamError } from '../candidate.ts'
import type { Meter, MeterReading } from '../dialect.ts'
import { JsonSyntaxError } from '../json-scan.ts'
import { tryParseJson } from '../json-text.ts'
import { asString, isObject, type JsonObject, tryParse } from '../json-value.ts'
import { utf8Bytes } from '../text-pieces.ts'
import { errorIn } from '../upstream-error.ts'
import { responsesBilling, responsesFinish, responsesTokens } from './usage.ts'

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
    finish: responsesFinish(answer),
    tokens: isObject(answer.usage) ? responsesTokens(answer.usage) : null,
    billing: responsesBilling(answer),
    textBytes: 0,
    complete: error === null && (status === 'completed' || status === 'incomplete'),
    error,
  }
}

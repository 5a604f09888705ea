import type { SseFrame } from '../../http/sse-read.ts'
import type { DialectName, Tokens } from '../candidate.ts'
import { chatBilling, chatTokens } from '../chat/usage.ts'
import type { Meter, MeterReading, PassingDialect } from '../dialect.ts'
import { dialects } from '../dialects.ts'
import { JsonSyntaxError } from '../json-scan.ts'
import { tryParseJson } from '../json-text.ts'
import { asObject, asString, isObject, type JsonObject, tryParse } from '../json-value.ts'
import { responsesTokens } from '../responses/usage.ts'

/** Reads what the answers of a vendor's other paths have in common: an id, a model, and counts of tokens under `usage`. */
export function passthroughOf(vendor: DialectName): PassingDialect {
  const { classifyFault, classifyStreamError } = dialects[vendor]
  return { scan: dialects[vendor].scan, meter, readBody, classifyFault, classifyStreamError }
}

function meter(): Meter {
  let last: JsonObject = {}
  return {
    push({ data }: SseFrame) {
      const event = data === undefined ? undefined : tryParse(data)
      if (isObject(event) && isObject(event.usage)) last = event
    },
    reading: () => reading(last),
  }
}

function readBody(body: Uint8Array): MeterReading {
  const answer = tryParseJson(body)
  if (!isObject(answer)) throw new JsonSyntaxError('a JSON object', 0)
  return reading(answer)
}

function reading(answer: JsonObject): MeterReading {
  return {
    id: asString(answer.id),
    model: asString(answer.model),
    finish: null,
    tokens: tokensOf(asObject(answer.usage)),
    billing: chatBilling(answer),
    textBytes: 0,
    complete: true,
    error: null,
  }
}

/** Older paths say prompt and completion where newer ones say input and output. */
const tokensOf = (usage: JsonObject): Tokens | null => responsesTokens(usage) ?? chatTokens(usage)

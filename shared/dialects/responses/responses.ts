import { chat } from '../chat/chat.ts'
import type { PassingDialect } from '../dialect.ts'
import { readResponsesBody, responsesMeter } from './meter.ts'
import { scanResponses } from './scan.ts'

/** The Responses API, whose calls pass: its errors are those of chat, by the same vendor. */
export const responses: PassingDialect = {
  scan: scanResponses,
  meter: responsesMeter,
  readBody: readResponsesBody,
  classifyFault: chat.classifyFault,
  classifyStreamError: chat.classifyStreamError,
}

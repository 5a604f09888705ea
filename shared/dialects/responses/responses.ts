import type { Dialect } from '../dialect.ts'
import { routerError, routerErrorEvent } from '../router-errors.ts'
import { finishKind } from '../stop-reasons.ts'
import { classifyFault, classifyStreamError } from '../upstream-fault.ts'
import { decodeResponses, responsesAccumulator } from './accumulate.ts'
import { emitResponses } from './emit.ts'
import { readResponsesBody, responsesMeter } from './meter.ts'
import { scanResponses } from './scan.ts'

/** The dialect of `/v1/responses`. Its errors are those of chat, by the same vendor. */
export const responses: Dialect = {
  name: 'responses',
  path: '/v1/responses',
  scan: scanResponses,
  meter: responsesMeter,
  readBody: readResponsesBody,
  accumulator: responsesAccumulator,
  decodeJson: decodeResponses,
  emit: body => emitResponses(body),
  keepAlive: new TextEncoder().encode(': keep-alive\n\n'),
  isKeepAlive: ({ data }) => data === undefined,
  routerError: (kind, message, requestId) => routerError('responses', kind, message, requestId),
  routerErrorEvent: (kind, message, requestId) => routerErrorEvent('responses', kind, message, requestId),
  classifyFault,
  classifyStreamError: error => classifyStreamError('responses', error),
  finishKind: finish => finishKind('responses', finish),
}

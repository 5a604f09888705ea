import { requestIdOf } from '../../shared/http/request-id.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { errorBodyFor } from '../../shared/wire/router/error.ts'
import { retryHeaders, routerErrors } from '../../shared/wire/router/error-cases.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import { dialectOf, type Refusal } from '../errors.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { Exchange } from './exchange.ts'

export interface RefusedCall {
  path: string
  traceId: string
  /** Whether answers carry `x-router-*` headers. */
  outHeaders: boolean
  /** Once it was decided that the call is passed on as it is. */
  isObserved: boolean
}

/** Answers a refusal in the dialect of the path. */
export function answerRefusal(exchange: Exchange, { name, message, headers = {} }: Refusal, call: RefusedCall): void {
  const { path, traceId, outHeaders, isObserved } = call
  const dialect = dialectOf(path)
  const body = utf8(JSON.stringify(errorBodyFor(dialect, name, message, traceId)))
  const head: HeaderList = [
    ['content-type', 'application/json'],
    ['content-length', String(body.length)],
    ['x-request-id', requestIdOf(headerValue(exchange.headers, 'x-request-id'))],
  ]
  // What the SDKs of this dialect read as the id of a request.
  if (dialect === 'messages') head.push(['request-id', traceId])
  if (outHeaders) head.push([responseHeaders.traceId, traceId])
  if (outHeaders && isObserved) head.push([responseHeaders.mode, 'observe'])
  head.push(...Object.entries(retryHeaders(name)), ...Object.entries(headers))
  exchange.answer(routerErrors[name].status, head, [body])
}

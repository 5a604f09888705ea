import type { Candidate, DialectName, Tokens } from '../../../shared/dialects/candidate.ts'
import { dialects } from '../../../shared/dialects/dialects.ts'
import { tokensOfBytes, writtenBytes } from '../../../shared/dialects/estimate.ts'
import { readAtMost } from '../../../shared/http/outbound/bounded-body.ts'
import type { Outside } from '../../../shared/http/outbound/outside.ts'
import { redactor } from '../../../shared/log/redact.ts'
import { fromUsd } from '../../../shared/money/money.ts'
import { inputTokens } from '../../../shared/prices/price.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import { VERSION } from '../../../shared/version.ts'
import { responseHeaders } from '../../../shared/wire/router/headers.ts'
import type { AskModel, ModelAnswer, ModelCall, ModelRequest } from '../../execution/models/model.ts'
import type { Connection } from '../connection.ts'
import type { CostOf } from '../pricing.ts'
import { callUrl, dialectOf, vendorOf } from '../vendors.ts'
import { type Deadlines, watchSilence } from './deadlines.ts'
import { readAnswer } from './read-answer.ts'
import { requestBody } from './request-body.ts'
import { readArguments } from './tool-arguments.ts'
import { type ToolNames, toolNames } from './tool-names.ts'
import { refused, unreached, unusable } from './vendor-failure.ts'

export interface AskDeps {
  fetch: Outside['fetch']
  now: () => Date
  deadlines: Deadlines
  costOf: CostOf
}

const MAX_ERROR_BYTES = 64 * 1024

/** One model of one provider. Makes one HTTP call for each question and never repeats it. */
export function askVendor(deps: AskDeps, model: string, open: () => Promise<Connection>): AskModel {
  return async (request, call) => {
    const connection = await open()
    const { provider } = connection
    const vendor = vendorOf(provider)
    const dialect = dialectOf(vendor, model)
    const names = toolNames(request)
    const body = requestBody(dialect, request, { model, names, vendor })
    const { candidate, headers } = await exchange(deps, connection, dialect, body, call)
    const answer = toAnswer(candidate, names)
    const answered = candidate.model || model
    const tokens = candidate.tokens ?? estimated(body, candidate)
    const routed = provider === 'router' ? routerSays(headers) : {}
    const priced = routed.costNano ?? (await deps.costOf({ provider, asked: model, answered, dialect, tokens }))
    return {
      ...answer,
      ...{ provider, model: `${provider}/${answered}` },
      spent: { tokensIn: inputTokens(tokens), tokensOut: tokens.output, costNano: priced ?? 0 },
      ...(priced === undefined && { unpriced: true }),
      ...(candidate.id && { responseId: candidate.id }),
      ...(routed.traceId && { routerTraceId: routed.traceId }),
    }
  }
}

async function exchange(
  { fetch, now, deadlines }: AskDeps,
  connection: Connection,
  dialect: DialectName,
  body: string,
  { key, signal, onDelta, onResponseId }: ModelCall,
): Promise<{ candidate: Candidate; headers: Headers }> {
  const who = connection.provider
  const plain = redactorOf(connection)
  const silence = watchSilence(signal, deadlines, who)
  try {
    const url = callUrl(connection.baseUrl, dialect)
    const headers = callHeaders(connection, dialect, key)
    const answer = await fetch(url, { method: 'POST', headers, body, signal: silence.signal })
    silence.alive()
    if (!answer.ok) {
      const { body: said } = await readAtMost(answer, MAX_ERROR_BYTES)
      throw refused(who, dialect, { status: answer.status, headers: answer.headers, body: said }, { plain, now: now() })
    }
    const { alive } = silence
    const read = await readAnswer(answer, dialect, { onDelta, onResponseId, alive, signal: silence.signal })
    if (!read.ok) throw unusable(who, dialect, read, plain)
    return { candidate: read.candidate, headers: answer.headers }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw unreached(who, silence.signal.aborted ? silence.signal.reason : error, plain)
  } finally {
    silence.end()
  }
}

/** The headers that say who is calling; `key` makes a repeated call recognisable. */
export function callHeaders(
  { apiKey, headers }: Connection,
  dialect: DialectName,
  key?: string,
): Record<string, string> {
  return {
    'content-type': 'application/json',
    accept: 'text/event-stream, application/json',
    'user-agent': `waybill/${VERSION}`,
    ...(key !== undefined && { 'idempotency-key': key }),
    ...(dialect === 'messages' && { 'anthropic-version': '2023-06-01' }),
    ...(apiKey !== undefined &&
      (dialect === 'messages' ? { 'x-api-key': apiKey } : { authorization: `Bearer ${apiKey}` })),
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  }
}

/** Providers repeat what they were sent, keys among it. */
export function redactorOf({ apiKey, headers }: Connection): (text: string) => string {
  const redact = redactor()
  redact.register(apiKey)
  for (const value of Object.values(headers)) redact.register(value)
  return redact.text
}

function toAnswer({ dialect, choices }: Candidate, names: ToolNames): Pick<ModelAnswer, 'text' | 'toolCalls' | 'stop'> {
  const choice = choices[0]!
  const toolCalls = choice.toolCalls.map(({ id, name, arguments: text }) => ({
    ...{ id, name: names.fromWire(name), arguments: readArguments(text) },
  }))
  const text = choice.text === '' ? (choice.refusal ?? '') : choice.text
  switch (dialects[dialect].finishKind(choice.finish)) {
    case 'length':
      return { text, toolCalls, stop: 'length' }
    case 'refusal':
      return { text, toolCalls, stop: 'refusal' }
    default:
      // Hosts differ in the word they finish a call with; what was called is plain to see.
      return { text, toolCalls, stop: toolCalls.length > 0 ? 'tools' : 'end' }
  }
}

/** Where a host counts nothing: about four bytes to a token, which is better than calling it free. */
function estimated(body: string, candidate: Candidate): Tokens {
  const none = { cache_write_5m: 0, cache_write_1h: 0, cache_read: 0 }
  return { ...none, uncached: tokensOfBytes(utf8(body).length), output: tokensOfBytes(writtenBytes(candidate)) }
}

function routerSays(headers: Headers): { costNano?: number; traceId?: string } {
  const cost = headers.get(responseHeaders.costUsd)
  const traceId = headers.get(responseHeaders.traceId)
  return {
    ...(cost !== null && /^\d+(\.\d+)?$/.test(cost) && { costNano: fromUsd(Number(cost)) }),
    ...(traceId !== null && { traceId }),
  }
}

/** What a try of a provider asks: as little as can be asked. */
export const SMALL_QUESTION: ModelRequest = {
  ...{ system: '', messages: [{ role: 'user', text: 'Say OK.' }], tools: [], maxOutputTokens: 16 },
}

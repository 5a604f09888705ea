import type { Candidate, DecodedAnswer, DialectName, Tokens } from '../../../shared/dialects/candidate.ts'
import { dialects } from '../../../shared/dialects/dialects.ts'
import { tokensOfBytes, writtenBytes } from '../../../shared/dialects/estimate.ts'
import { asArray, asObject, tryParse } from '../../../shared/dialects/json-value.ts'
import { readAtMost } from '../../../shared/http/outbound/bounded-body.ts'
import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import { neverSent } from '../../../shared/http/outbound/never-sent.ts'
import { redactor } from '../../../shared/log/redact.ts'
import { fromUsd } from '../../../shared/money/money.ts'
import { inputTokens } from '../../../shared/prices/price.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import { storableText } from '../../../shared/sql/sql-values.ts'
import { VERSION } from '../../../shared/version.ts'
import { requestHeaders, responseHeaders } from '../../../shared/wire/router/headers.ts'
import {
  type AskModel,
  IMAGE_TOKENS,
  type ModelAnswer,
  type ModelCall,
  type ModelRequest,
  newestImages,
  type ResultImage,
} from '../../execution/models/model.ts'
import { readArguments, unreadable, writtenArguments } from '../../execution/models/tool-arguments.ts'
import type { Connection } from '../directory.ts'
import type { CostOf } from '../price-of-call.ts'
import { callUrl, dialectOf, vendorOf } from '../vendors.ts'
import { type AnswerRoom, type Deadlines, watchSilence } from './answer-limits.ts'
import { type AnswerMeter, answerMeter } from './answer-meter.ts'
import { readAnswer } from './read-answer.ts'
import { requestBody, takesImages } from './request-body.ts'
import { answerToolName, type OutputRequest, type OutputTarget, outputRequest } from './structured-output.ts'
import { type ToolNames, toolNames } from './tool-names.ts'
import { noRoomForAnswer, refused, unreached, unusable } from './vendor-failure.ts'

export interface AskDeps {
  fetch: EgressClient['fetch']
  now: () => Date
  deadlines: Deadlines
  /** Where an attempt of a step stands in the trace of its run; undefined where nothing is traced. */
  traceparent: ((key: string) => string) | undefined
  /** What hosts refuse of every request to a model: to be asked for a count of tokens, which they give unasked, or a name of the limit. */
  unknown: Set<string>
  room: AnswerRoom
}

/** What a call is made and priced by. */
interface Opened {
  connection: Connection
  costOf: CostOf
}

const MAX_ERROR_BYTES = 64 * 1024
/** A tenant may have any number of addresses. */
const MOST_UNKNOWN = 1000
/** A route has a few; a router that is not ours may say anything. */
const MOST_GATES = 20
/** Models call a handful of tools at once. */
const MOST_CALLS = 1000

/** One model of one provider. Makes one HTTP call for each question, and repeats it only where its host does not know a word of it. */
export function askVendor(deps: AskDeps, model: string, open: () => Promise<Opened>): AskModel {
  return async (request, call) => {
    const { connection, costOf } = await open()
    const { provider } = connection
    const vendor = vendorOf(provider)
    const dialect = dialectOf(vendor, model)
    const names = toolNames(request)
    const output = outputOf(request, { provider, dialect, model })
    const images = takesImages(provider, model) ? newestImages(request.messages) : NO_IMAGES
    const words = unknownWords(deps.unknown, `${connection.baseUrl} ${model}`)
    const bodyNow = () => {
      const maxTokens = words.has(vendor.maxTokens) ? OTHER_LIMIT[vendor.maxTokens] : vendor.maxTokens
      const countsUsage = !words.has('stream_options')
      return requestBody(dialect, request, { model, names, vendor: { maxTokens }, output, images, countsUsage })
    }
    const body = bodyNow()
    const sentTokens = () => tokensSent(body, images)
    const meter = answerMeter(dialect, sentTokens)
    const routed: RouterSays = {}
    call.metered?.(async () => {
      const { tokens, estimated } = meter.tokens()
      const answered = storableText(meter.model ?? model)
      const { billing } = meter
      const priced = priceBy(routed) ?? (await costOf({ provider, asked: model, answered, dialect, tokens, billing }))
      return {
        spent: { tokensIn: inputTokens(tokens), tokensOut: tokens.output, costNano: priced?.costNano ?? 0 },
        provider,
        model: `${provider}/${answered}`,
        estimated,
        ...(priced?.parts && { parts: priced.parts }),
        ...(priced === undefined && { unpriced: true }),
      }
    })
    const again = (setting: string) => (words.learn(setting) ? bodyNow() : undefined)
    const decoded = await exchange(deps, connection, { dialect, body, meter, routed, again }, call)
    const { candidate } = decoded
    const answer = withAnswerTool(toAnswer(decoded, names), request, names, output)
    const answered = storableText(candidate.model || model)
    const tokens = candidate.tokens ?? estimated(sentTokens(), candidate)
    const { billing } = candidate
    const priced = priceBy(routed) ?? (await costOf({ provider, asked: model, answered, dialect, tokens, billing }))
    return {
      ...answer,
      provider,
      model: `${provider}/${answered}`,
      spent: { tokensIn: inputTokens(tokens), tokensOut: tokens.output, costNano: priced?.costNano ?? 0 },
      ...(priced?.parts && { parts: priced.parts }),
      ...(priced === undefined && { unpriced: true }),
      ...(candidate.id && { responseId: candidate.id }),
      ...(routed.traceId && { routerTraceId: routed.traceId }),
      ...(routed.gatesFailed && { gatesFailed: routed.gatesFailed }),
    }
  }
}

interface Exchange {
  dialect: DialectName
  body: string
  meter: AnswerMeter
  /** Filled as it comes. */
  routed: RouterSays
  /** The same without a setting that was refused; undefined where there is none. */
  again: (setting: string) => string | undefined
}

async function exchange(
  deps: AskDeps,
  connection: Connection,
  { dialect, body, meter, routed, again }: Exchange,
  call: ModelCall,
): Promise<DecodedAnswer> {
  const { fetch, now, deadlines, traceparent } = deps
  const { key, signal, onDelta, onResponseId } = call
  const who = connection.provider
  const plain = redactorOf(connection)
  const silence = watchSilence(signal, deadlines, who)
  const place = deps.room.enter(most => silence.giveUp(noRoomForAnswer(who, most)))
  try {
    const url = callUrl(connection.baseUrl, dialect)
    const isRouter = who === 'router'
    const headers = { ...(isRouter && toRouter(call, traceparent)), ...callHeaders(connection, dialect, key) }
    meter.is('sent')
    const answer = await fetch(url, { method: 'POST', headers, body, signal: silence.signal })
    silence.alive()
    const hear = (said: (name: string) => string | null) => void Object.assign(routed, routerSays(said))
    if (isRouter) hear(name => answer.headers.get(name))
    if (!answer.ok) {
      meter.is('refused')
      const { body: said } = await readAtMost(answer, MAX_ERROR_BYTES)
      const setting = await unknownSetting(answer.status, said)
      const other = setting === undefined ? undefined : again(setting)
      if (other !== undefined && other !== body)
        return await exchange(deps, connection, { dialect, body: other, meter, routed, again }, call)
      const { status, headers } = answer
      throw refused(who, dialect, { status, headers, body: said, costNano: routed.costNano }, { plain, now: now() })
    }
    const { said } = silence
    const alive = (bytes: number) => {
      silence.alive()
      place.add(bytes)
    }
    const read = await readAnswer(answer, dialect, {
      onDelta,
      onResponseId,
      meter,
      alive,
      said,
      ...(isRouter && { onComment: text => hear(name => commentOf(text, name)) }),
      signal: silence.signal,
    })
    if (!read.ok) throw unusable(who, dialect, read, { plain, isFree: routed.costNano === 0 })
    const calls = read.candidate.choices[0]?.toolCalls.length ?? 0
    if (calls > MOST_CALLS) {
      const detail = `it calls ${calls} tools at once, and at most ${MOST_CALLS} are taken`
      throw unusable(who, dialect, { ok: false, reason: 'not_an_answer', detail }, { plain })
    }
    return read
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const unbilled = neverSent(error)
    if (unbilled) meter.is('unsent')
    throw unreached(who, silence.signal.aborted ? silence.signal.reason : error, { plain, unbilled })
  } finally {
    place.leave()
    silence.end()
  }
}

async function unknownSetting(status: number, said: Uint8Array): Promise<string | undefined> {
  if (status !== 400 && status !== 422) return undefined
  const { refusedSetting } = await import('../../../shared/dialects/adapt/refused-setting.ts')
  const found = refusedSetting(status, said)
  return found?.ofValue ? undefined : found?.setting
}

/** A host that does not know one name of the limit knows the other. */
const OTHER_LIMIT = { max_tokens: 'max_completion_tokens', max_completion_tokens: 'max_tokens' } as const
const LEARNED: ReadonlySet<string> = new Set(['stream_options', ...Object.keys(OTHER_LIMIT)])

/** The settings that a model at an address does not know. */
function unknownWords(unknown: Set<string>, at: string) {
  const has = (setting: string) => unknown.has(`${setting} ${at}`)
  return {
    has,
    /** False where it cannot be left out. */
    learn(setting: string): boolean {
      if (!LEARNED.has(setting)) return false
      if (unknown.size >= MOST_UNKNOWN) unknown.clear()
      unknown.add(`${setting} ${at}`)
      return true
    },
  }
}

/** For the router beside this service: how it says what it knows late, what is one session, and the step that its trace leads back to. */
function toRouter({ key, session }: ModelCall, traceparent: AskDeps['traceparent']): Record<string, string> {
  return {
    [requestHeaders.lateHeaders]: 'true',
    ...(session !== undefined && { [requestHeaders.session]: session }),
    ...stepOf(key, traceparent),
  }
}

function stepOf(key: string | undefined, traceparent: AskDeps['traceparent']): Record<string, string> {
  const [runId, stepId] = key?.split(':') ?? []
  if (key === undefined || !runId || !stepId) return {}
  const id = `${runId}.${stepId}`
  return {
    ...(/^[\w.-]{1,64}$/.test(id) && { 'x-request-id': id }),
    ...(traceparent && { traceparent: traceparent(key) }),
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

function outputOf(
  { outputSchema, tools }: ModelRequest,
  target: Omit<OutputTarget, 'tools'>,
): OutputRequest | undefined {
  return outputSchema && outputRequest(outputSchema, { ...target, tools: tools.length > 0 })
}

type Saying = Pick<ModelAnswer, 'text' | 'toolCalls' | 'stop' | 'blocks' | 'thinking'>

/**
 * The arguments of the answer tool are the answer. Beside calls of other tools the answer came too early: those are made, and the model
 * is asked again.
 */
function withAnswerTool(
  said: Saying,
  { tools }: ModelRequest,
  names: ToolNames,
  output: OutputRequest | undefined,
): Saying {
  if (output?.by !== 'tool') return said
  const name = answerToolName(tools.map(tool => names.toWire(tool.name)))
  const others = said.toolCalls.filter(call => call.name !== name)
  const given = said.toolCalls.find(call => call.name === name)
  if (given === undefined) return said
  if (others.length > 0) return { ...said, toolCalls: others }
  return {
    ...said,
    text: writtenArguments(given.arguments) ?? unreadable(given.arguments) ?? JSON.stringify(given.arguments),
    toolCalls: [],
    stop: said.stop === 'tools' ? 'end' : said.stop,
  }
}

function toAnswer(decoded: DecodedAnswer, names: ToolNames): Saying {
  const { dialect, choices } = decoded.candidate
  const choice = choices[0]!
  const toolCalls = choice.toolCalls.map(({ id, name, arguments: text }) => ({
    id,
    name: names.fromWire(name),
    arguments: readArguments(text),
  }))
  const text = choice.text === '' ? (choice.refusal ?? '') : choice.text
  const said = { text, toolCalls, ...(choice.thinking !== '' && { thinking: choice.thinking }) }
  switch (dialects[dialect].finishKind(choice.finish)) {
    case 'length':
      return { ...said, stop: 'length' }
    case 'refusal':
      return { ...said, stop: 'refusal' }
    case 'pause':
      return { ...said, stop: 'pause', blocks: blocksOf(decoded.body) }
    default:
      if (choice.text === '' && toolCalls.length === 0 && choice.refusal) return { ...said, stop: 'refusal' }
      // Hosts differ in the word they finish a call with; what was called is plain to see.
      return { ...said, stop: toolCalls.length > 0 ? 'tools' : 'end' }
  }
}

/** The content of an answer as it was written. */
function blocksOf(body: Uint8Array): readonly unknown[] {
  return asArray(asObject(tryParse(new TextDecoder().decode(body))).content)
}

/** Where a host counts nothing: about four bytes to a token, which is better than calling it free. */
function estimated(sentTokens: number, candidate: Candidate): Tokens {
  const none = { cache_write_5m: 0, cache_write_1h: 0, cache_read: 0 }
  return { ...none, uncached: sentTokens, output: tokensOfBytes(writtenBytes(candidate)) }
}

const NO_IMAGES: ReadonlySet<ResultImage> = new Set()

function tokensSent(body: string, images: ReadonlySet<ResultImage>): number {
  const ofImages = [...images].reduce((sum, { base64 }) => sum + base64.length, 0)
  return tokensOfBytes(utf8(body).length - ofImages) + images.size * IMAGE_TOKENS
}

/** What the router beside this service says of a call: it may have asked several models, and paid for what it does not serve. */
interface RouterSays {
  costNano?: number
  traceId?: string
  /** Gates that the answer did not pass. */
  gatesFailed?: string[]
}

function routerSays(said: (name: string) => string | null): RouterSays {
  const cost = said(responseHeaders.costUsd)
  const traceId = said(responseHeaders.traceId)
  const failed = /^failed: (.+)$/.exec(said(responseHeaders.gates) ?? '')?.[1]
  return {
    // A million dollars and more is no cost of a call: the tokens are priced then.
    ...(cost !== null && /^\d{1,6}(\.\d+)?$/.test(cost) && { costNano: fromUsd(Number(cost)) }),
    ...(traceId !== null && { traceId }),
    ...(failed !== undefined && { gatesFailed: failed.split(', ', MOST_GATES) }),
  }
}

/** A value that a comment of a stream names: `: x-router-cost-usd 0.0042`. */
function commentOf(text: string, name: string): string | null {
  const [, said, value] = /^: (\S+) (\S.*?)\s*$/.exec(text) ?? []
  return said === name && value !== undefined ? value : null
}

function priceBy({ costNano }: RouterSays) {
  return costNano === undefined ? undefined : { costNano, parts: undefined }
}

/** What a try of a provider asks: as little as can be asked. */
export const SMALL_QUESTION: ModelRequest = {
  system: '',
  messages: [{ role: 'user', text: 'Say OK.' }],
  tools: [],
  maxOutputTokens: 16,
}

import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { DialectName } from '../../shared/dialects/candidate.ts'

export interface ClientOptions {
  /** Address without a path. */
  origin: string
  apiKey?: string
  headers?: Record<string, string>
  fetch?: typeof fetch
  signal?: AbortSignal
}

/** Everything that a program sees of one call through an official client. */
export type Seen =
  | { answer: unknown; requestId: string | null }
  | { events: unknown[]; final: unknown }
  | { error: string; status: unknown; body: unknown; requestId: unknown; message: string }

/** Makes the call as JSON, or twice as a stream: read event by event, and put together by the client. */
export async function callSdk(
  dialect: DialectName,
  body: object,
  stream: boolean,
  options: ClientOptions,
): Promise<Seen> {
  try {
    if (dialect === 'responses') return await callResponses(body, stream, options)
    return dialect === 'messages' ? await callMessages(body, stream, options) : await callChat(body, stream, options)
  } catch (error) {
    const { status, error: said, requestID } = error as { status?: unknown; error?: unknown; requestID?: unknown }
    const { name, message } = error as Error
    const kind = (error as object).constructor.name
    return { error: `${kind}/${name}`, status, body: plain(said), requestId: requestID, message }
  }
}

const common = ({ apiKey = 'client-key', headers = {}, fetch: own }: ClientOptions) =>
  ({
    apiKey,
    maxRetries: 0,
    logLevel: 'off',
    defaultHeaders: headers,
    ...(own && { fetch: own }),
  }) as const

async function callMessages(body: object, stream: boolean, options: ClientOptions): Promise<Seen> {
  const { messages } = new Anthropic({ ...common(options), baseURL: options.origin })
  const ask = body as Anthropic.MessageCreateParamsNonStreaming
  const more = options.signal && { signal: options.signal }
  if (!stream) {
    const { data, request_id } = await messages.create(ask, more).withResponse()
    return { answer: plain(data), requestId: request_id ?? null }
  }
  const events: unknown[] = []
  for await (const event of await messages.create({ ...ask, stream: true }, more)) events.push(plain(event))
  return { events, final: plain(await messages.stream(ask, more).finalMessage()) }
}

async function callChat(body: object, stream: boolean, options: ClientOptions): Promise<Seen> {
  const { completions } = new OpenAI({ ...common(options), baseURL: `${options.origin}/v1` }).chat
  const ask = body as OpenAI.ChatCompletionCreateParamsNonStreaming
  const more = options.signal && { signal: options.signal }
  if (!stream) {
    const { data, request_id } = await completions.create(ask, more).withResponse()
    return { answer: plain(data), requestId: request_id }
  }
  const events: unknown[] = []
  for await (const event of await completions.create({ ...ask, stream: true }, more)) events.push(plain(event))
  const { stream: _, ...asked } = ask
  return { events, final: plain(await completions.stream(asked, more).finalChatCompletion()) }
}

async function callResponses(body: object, stream: boolean, options: ClientOptions): Promise<Seen> {
  const { responses } = new OpenAI({ ...common(options), baseURL: `${options.origin}/v1` })
  const ask = body as OpenAI.Responses.ResponseCreateParamsNonStreaming
  const more = options.signal && { signal: options.signal }
  if (!stream) {
    const { data, request_id } = await responses.create(ask, more).withResponse()
    return { answer: plain(data), requestId: request_id }
  }
  const events: unknown[] = []
  for await (const event of await responses.create({ ...ask, stream: true }, more)) events.push(plain(event))
  const { stream: _, ...asked } = ask
  return { events, final: plain(await responses.stream(asked, more).finalResponse()) }
}

/** As JSON, without the members that clients add for their own parsing. */
function plain(value: unknown): unknown {
  if (value === undefined) return undefined
  const added = ['parsed', 'parsed_output', 'parsed_arguments', 'output_parsed', '_request_id']
  return JSON.parse(JSON.stringify(value, (key, member) => (added.includes(key) ? undefined : member))) as unknown
}

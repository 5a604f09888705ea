import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { Agent, request } from 'undici'
import type { DialectName } from '../../shared/dialects/candidate.ts'
import type { Exchange, Fault } from '../upstream/faults.ts'
import type { Received } from '../upstream/wire.ts'

/** No word came back, or a head and then an error. */
export interface Failed {
  failed: string
}

/** Stand in every header that could carry a secret, and in the prompt; none of them may be kept. */
export const CANARIES = ['canary-key-1f0c', 'canary-cookie-77aa', 'canary-custom-9b1e', 'canary-prompt-52d4']

const agent = new Agent({ connections: 256, headersTimeout: 30_000, bodyTimeout: 30_000 })

export function bodyFor({ dialect, stream }: Exchange, more: object = {}): string {
  if (dialect === 'responses') {
    const input = 'canary-prompt-52d4: say something'
    return JSON.stringify({
      model: 'auto',
      max_output_tokens: 100,
      input,
      store: false,
      ...(stream && { stream }),
      ...more,
    })
  }
  return JSON.stringify({
    model: 'auto',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'canary-prompt-52d4: say something' }],
    ...(stream && { stream: true, ...(dialect === 'chat' && { stream_options: { include_usage: true } }) }),
    ...more,
  })
}

/** One call, with nothing decoded and nothing followed. */
export async function ask(
  url: string,
  { id, fault, exchange }: { id: string; fault: Fault; exchange: Exchange },
): Promise<Received | Failed> {
  try {
    const { statusCode, headers, body } = await request(url, {
      dispatcher: agent,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-case': id,
        'x-request-id': id,
        authorization: 'Bearer canary-key-1f0c',
        'x-api-key': 'canary-key-1f0c',
        cookie: 'a=canary-cookie-77aa',
        'x-secret': 'canary-custom-9b1e',
      },
      body: bodyFor(exchange, fault.request),
    })
    const chunks: Uint8Array[] = []
    const complete = await (async () => {
      for await (const chunk of body) chunks.push(chunk as Uint8Array)
      return true
    })().catch(() => false)
    return { status: statusCode, headers, bytes: Buffer.concat(chunks), complete }
  } catch (error) {
    return { failed: String(error) }
  }
}

/** Whether an answer is an error as clients of the dialect read one. */
export function isErrorOf(dialect: DialectName, { bytes, complete }: Received): boolean {
  if (!complete) return false
  try {
    const body = JSON.parse(Buffer.from(bytes).toString()) as {
      type?: unknown
      error?: { type?: unknown; message?: unknown }
    }
    const said =
      typeof body.error?.type === 'string' && typeof body.error.message === 'string' && body.error.message !== ''
    return said && (dialect !== 'messages' || body.type === 'error')
  } catch {
    return false
  }
}

/** What the official client builds from the bytes of a 200. */
export async function readAsSdk(
  { dialect, stream }: Exchange,
  bytes: Uint8Array,
): Promise<{ answer: unknown } | Failed> {
  const type = stream ? 'text/event-stream' : 'application/json'
  const options = {
    apiKey: 'x',
    maxRetries: 0,
    logLevel: 'off',
    fetch: async () => new Response(bytes as Uint8Array<ArrayBuffer>, { headers: { 'content-type': type } }),
  } as const
  const asked = { model: 'm', max_tokens: 1, messages: [{ role: 'user' as const, content: 'x' }] }
  try {
    const answer = await { messages: asMessage, chat: asCompletion, responses: asResponse }[dialect]()
    return { answer: JSON.parse(JSON.stringify(answer)) as unknown }
  } catch (error) {
    return { failed: String(error) }
  }

  async function asMessage(): Promise<object> {
    const { messages } = new Anthropic(options)
    const message = stream ? await messages.stream(asked).finalMessage() : await messages.create(asked)
    if (message.type !== 'message' || !Array.isArray(message.content) || typeof message.stop_reason !== 'string') {
      throw new Error('this is no message')
    }
    return message
  }

  async function asResponse(): Promise<object> {
    const { responses } = new OpenAI(options)
    const ask = { model: 'm', input: 'x' }
    const response = stream ? await responses.stream(ask).finalResponse() : await responses.create(ask)
    if (!Array.isArray(response.output) || !['completed', 'incomplete'].includes(response.status ?? '')) {
      throw new Error('this is no answer')
    }
    return response
  }

  async function asCompletion(): Promise<object> {
    const { completions } = new OpenAI(options).chat
    const completion = stream ? await completions.stream(asked).finalChatCompletion() : await completions.create(asked)
    const choices = completion.choices ?? []
    if (choices.length === 0 || choices.some(choice => typeof choice.finish_reason !== 'string')) {
      throw new Error('this is no completion')
    }
    return completion
  }
}

import { canonicalize } from '../../shared/sign/jcs.ts'
import type { RequestMessage, StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { charactersOf } from '../execution/harness/conversation.ts'
import type { Message, ModelRequest } from '../execution/models/model.ts'

/** Characters of one text, of the messages of a page, and of the definitions of tools. */
const MOST_OF_TEXT = 256 * 1024
const MOST_OF_PAGE = 1024 * 1024
const MOST_OF_TOOLS = 512 * 1024

/** Where a message or a result came from. */
export interface Origins {
  /** The model step that said it, by the place of the message. */
  said: ReadonlyMap<number, string>
  /** The step of a call, by the place of the message and that of the result in it. */
  results: ReadonlyMap<string, { stepId: string; blob?: { sha256: string; bytes: number } }>
}

interface Weight {
  estimatedTokens?: number
  cached?: 'whole' | 'part'
}

type Page = NonNullable<StepRequest['request']>

/** One page of a conversation, from the newest message that is asked for backwards; at least one message, and never a whole book. */
export function requestPage(
  request: ModelRequest,
  usage: { tokensIn: number; cacheReadTokens: number },
  {
    exact,
    before = request.messages.length,
    origins,
  }: { exact: boolean; before?: number | undefined; origins: Origins },
): Page {
  const { system, messages, tools, maxOutputTokens, temperature, outputSchema } = request
  const sizes = [tools.length === 0 ? 0 : canonicalize(tools).length, system.length, ...messages.map(charactersOf)]
  const weights = weigh(sizes, usage)
  const to = Math.min(before, messages.length)
  const from = firstOfPage(sizes.slice(2), to)
  const shown = firstTools(tools)
  const [ofTools = {}, ofSystem = {}, ...ofMessages] = weights
  return {
    exact,
    system: { ...cutText(system), ...ofSystem },
    tools: shown.map(({ name, description, parameters }) => ({ name, description, parameters })),
    ...(shown.length < tools.length && { toolsOmitted: tools.length - shown.length }),
    ...(ofTools.estimatedTokens !== undefined && { toolTokens: ofTools.estimatedTokens }),
    ...(ofTools.cached && { toolsCached: ofTools.cached }),
    messageCount: messages.length,
    firstMessage: from,
    messages: messages.slice(from, to).map((message, at) => ({
      ...shownMessage(message, from + at, origins),
      ...ofMessages[from + at],
    })),
    maxOutputTokens,
    ...(temperature !== undefined && { temperature }),
    ...(outputSchema && { outputSchema }),
  }
}

/** As much of a text as one answer holds. */
export function cutText(text: string): { text: string; omitted?: number } {
  if (text.length <= MOST_OF_TEXT) return { text }
  const kept = text.slice(0, MOST_OF_TEXT).toWellFormed()
  return { text: kept, omitted: text.length - kept.length }
}

/** Each part by its share of the characters; a provider caches from the front: tools, system prompt, messages. */
function weigh(sizes: readonly number[], { tokensIn, cacheReadTokens }: { tokensIn: number; cacheReadTokens: number }) {
  const total = sizes.reduce((sum, size) => sum + size, 0)
  if (total === 0 || tokensIn === 0) return sizes.map((): Weight => ({}))
  let passed = 0
  return sizes.map((size): Weight => {
    const [begin, end] = [(passed / total) * tokensIn, ((passed + size) / total) * tokensIn]
    passed += size
    if (size === 0) return {}
    const cached = end <= cacheReadTokens ? 'whole' : begin < cacheReadTokens ? 'part' : undefined
    return { estimatedTokens: Math.round(end - begin), ...(cached && { cached }) }
  })
}

function firstOfPage(sizes: readonly number[], to: number): number {
  let from = to
  let room = MOST_OF_PAGE
  while (from > 0) {
    room -= Math.min(sizes[from - 1] ?? 0, MOST_OF_TEXT)
    if (room < 0 && from < to) break
    from--
  }
  return from
}

function firstTools(tools: ModelRequest['tools']): ModelRequest['tools'] {
  let room = MOST_OF_TOOLS
  const end = tools.findIndex(tool => {
    room -= canonicalize(tool).length
    return room < 0
  })
  return end === -1 ? tools : tools.slice(0, end)
}

function shownMessage(message: Message, at: number, { said, results }: Origins): RequestMessage {
  if (message.role === 'user') return { role: 'user', ...cutText(message.text) }
  if (message.role === 'assistant') {
    const stepId = said.get(at)
    return {
      role: 'assistant',
      ...cutText(message.text),
      toolCalls: message.toolCalls.map(call => ({ ...call })),
      ...(stepId !== undefined && { stepId }),
    }
  }
  return {
    role: 'tool',
    results: message.results.map(({ callId, name, content, failed }, place) => {
      const { text, ...rest } = cutText(content)
      return { callId, name, content: text, ...rest, failed, ...results.get(`${at}.${place}`) }
    }),
  }
}

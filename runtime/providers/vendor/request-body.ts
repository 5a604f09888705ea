import type { DialectName } from '../../../shared/dialects/candidate.ts'
import {
  ASSISTANT_FILLER,
  completeHistory,
  MISTRAL,
  shortCallId,
  THOUGHT_TURNS,
} from '../../../shared/dialects/chat/answer.ts'
import { type CallIds, callIds } from '../../../shared/dialects/messages/messages.ts'
import type { ProviderId } from '../../../shared/wire/runtime/model-name.ts'
import type { Message, ModelRequest, ModelTool, ResultImage, ToolResult } from '../../execution/models/model.ts'
import { writtenArguments } from '../../execution/models/tool-arguments.ts'
import type { Vendor } from '../vendors.ts'
import { ANSWER_TOOL_DESCRIPTION, answerToolName, type OutputRequest } from './structured-output.ts'
import type { ToolNames } from './tool-names.ts'

/** The request of either dialect; always streamed, so that its first event names it and silence is noticed. */
export function requestBody(dialect: DialectName, request: ModelRequest, options: BodyOptions): string {
  const body = dialect === 'messages' ? messagesBody(request, options) : chatBody(request, options)
  // Half of a surrogate pair is legal in our JSON and refused by providers.
  return JSON.stringify(body, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value))
}

function chatBody(
  { system, messages, tools, maxOutputTokens, temperature }: ModelRequest,
  { model, names, vendor, output, images, countsUsage }: BodyOptions,
) {
  const offered = offeredTools(tools, names, output)
  // A history may hold calls of another model, and end in the middle of a turn.
  const isMistral = MISTRAL.test(model)
  const idOf = isMistral ? shortCallId : (id: string) => id
  const isAfterTool = (at: number) => isMistral && messages[at]?.role === 'user' && messages[at - 1]?.role === 'tool'
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...completeHistory(
        messages.flatMap((message, at) => [
          ...(isAfterTool(at) ? [ASSISTANT_FILLER] : []),
          ...chatMessages(message, { names, images, idOf }),
        ]),
        model,
      ),
    ],
    ...(offered.length > 0 && { tools: offered.map(tool => ({ type: 'function', function: tool })) }),
    // LM Studio knows no form that names a tool; models that think between calls refuse to be forced to one, and mostly call it.
    ...(output?.by === 'tool' && !THOUGHT_TURNS.test(model) && { tool_choice: 'required' }),
    ...(output?.by === 'format' && {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: output.schema, strict: output.strict },
      },
    }),
    [vendor.maxTokens]: maxOutputTokens,
    ...(temperature !== undefined && { temperature }),
    stream: true,
    ...(countsUsage && { stream_options: { include_usage: true } }),
  }
}

function chatMessages(
  message: Message,
  { names, images, idOf }: Pick<BodyOptions, 'names' | 'images'> & { idOf: (id: string) => string },
): object[] {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: message.text }]
    case 'assistant':
      return [
        {
          role: 'assistant',
          content: message.toolCalls.length > 0 && message.text === '' ? null : message.text,
          ...(message.toolCalls.length > 0 && {
            tool_calls: message.toolCalls.map(({ id, name, arguments: given }) => ({
              id: idOf(id),
              type: 'function',
              function: { name: names.toWire(name), arguments: writtenArguments(given) ?? JSON.stringify(given) },
            })),
          }),
        },
      ]
    case 'tool':
      return [
        ...message.results.map(result => ({
          role: 'tool',
          tool_call_id: idOf(result.callId),
          content: result.content + unshown(result, images),
        })),
        ...shownByUser(message.results, images),
      ]
  }
}

type Images = ReadonlySet<ResultImage>

const shownOf = ({ images = [] }: ToolResult, sent: Images) => images.filter(image => sent.has(image))

/** What the text says of images that are not sent. */
function unshown(result: ToolResult, sent: Images): string {
  const left = (result.images?.length ?? 0) - shownOf(result, sent).length
  if (left === 0) return ''
  return `\n${left === 1 ? 'One image of this result is' : `${left} images of this result are`} not shown here.`
}

/** A result of a tool is text in this dialect, so its images follow from the user, behind all results of the turn. */
function shownByUser(results: readonly ToolResult[], sent: Images): object[] {
  const parts = results.flatMap(result =>
    shownOf(result, sent).map(({ mediaType, base64 }) => ({
      type: 'image_url',
      image_url: { url: `data:${mediaType};base64,${base64}`, detail: 'high' },
    })),
  )
  if (parts.length === 0) return []
  const words = 'The images of the results above, in their order:'
  return [{ role: 'user', content: [{ type: 'text', text: words }, ...parts] }]
}

type Block = Record<string, unknown>

const CACHED = { cache_control: { type: 'ephemeral' } }

/**
 * The request of the messages dialect, whose providers cache prefixes at markers, four at most, in the order tools, system, messages. Marked are
 * what stays for the whole run (the last tool, the system prompt), the end of the history, and where it ended in the request before: a
 * marker finds what was cached up to 20 blocks before it, and one turn may add more. Everything is written in the same shape whether
 * it is marked or not, so that a prefix stays equal when the markers move on.
 */
function messagesBody(
  { system, messages, tools, maxOutputTokens, temperature }: ModelRequest,
  { model, names, output, images }: Omit<BodyOptions, 'vendor' | 'countsUsage'>,
) {
  const offered = offeredTools(tools, names, output)
  // A question that is asked once would pay more for being kept than it saves.
  const caches = tools.length > 0 || messages.length > 1
  const ids = callIds()
  const turns = messages.map(message => messagesTurn(message, { names, ids, images }))
  const ends = messages.flatMap(({ role }, at) => (role === 'assistant' ? [] : [at])).slice(-2)
  return {
    model,
    max_tokens: maxOutputTokens,
    ...(system.trim() !== '' && { system: caches ? [{ type: 'text', text: system, ...CACHED }] : system }),
    messages: caches
      ? turns.map((turn, at) => (ends.includes(at) ? { ...turn, content: marked(turn.content) } : turn))
      : turns.map(plain),
    ...(offered.length > 0 && {
      tools: offered.map(({ name, description, parameters }, at) => ({
        name,
        description,
        input_schema: parameters,
        ...(caches && at === offered.length - 1 && CACHED),
      })),
    }),
    ...(output?.by === 'tool' && {
      tool_choice: tools.length > 0 ? { type: 'any' } : { type: 'tool', name: offered.at(-1)!.name },
    }),
    ...(output?.by === 'format' && { output_config: { format: { type: 'json_schema', schema: output.schema } } }),
    ...(temperature !== undefined && { temperature }),
    stream: true,
  }
}

function marked(content: readonly Block[]): readonly Block[] {
  return content.map((block, at) => (at === content.length - 1 ? { ...block, ...CACHED } : block))
}

/** A single text as a text. */
function plain(turn: Turn): { role: Turn['role']; content: unknown } {
  const [only, ...more] = turn.content
  return only?.type === 'text' && more.length === 0 ? { ...turn, content: only.text } : turn
}

/** This dialect refuses a text without a character in it. */
const said = (text: string): Block => ({ type: 'text', text: text.trim() === '' ? '(empty)' : text })

interface Turn {
  role: 'user' | 'assistant'
  content: readonly Block[]
}

function messagesTurn(
  message: Message,
  { names, ids, images }: Pick<BodyOptions, 'names' | 'images'> & { ids: CallIds },
): Turn {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: [said(message.text)] }
    case 'assistant': {
      const { text, toolCalls, blocks } = message
      if (blocks && blocks.length > 0) return { role: 'assistant', content: blocks as readonly Block[] }
      if (toolCalls.length === 0) return { role: 'assistant', content: [said(text)] }
      const calls = toolCalls.map(({ id, name, arguments: input }) => ({
        type: 'tool_use',
        id: ids.ofCall(id),
        name: names.toWire(name),
        input,
      }))
      return { role: 'assistant', content: [...(text.trim() === '' ? [] : [{ type: 'text', text }]), ...calls] }
    }
    case 'tool':
      return {
        role: 'user',
        content: message.results.map(result => ({
          type: 'tool_result',
          tool_use_id: ids.ofResult(result.callId),
          content: resultContent(result, images),
          ...(result.failed && { is_error: true }),
        })),
      }
  }
}

function resultContent(result: ToolResult, sent: Images): unknown {
  const text = result.content + unshown(result, sent)
  const shown = shownOf(result, sent)
  if (shown.length === 0) return text
  return [
    said(text),
    ...shown.map(({ mediaType, base64 }) => ({
      type: 'image',
      source: { type: 'base64', media_type: mediaType, data: base64 },
    })),
  ]
}

interface BodyOptions {
  model: string
  names: ToolNames
  vendor: Pick<Vendor, 'maxTokens'>
  /** Of all images of the conversation, those that are sent. */
  images: Images
  /** The answer is to say how many tokens it took. */
  countsUsage: boolean
  /** How an answer of a form is asked for. */
  output?: OutputRequest | undefined
}

/** The tools under the names that travel, and the one that the answer is given by, where there is one. */
function offeredTools(tools: readonly ModelTool[], names: ToolNames, output: OutputRequest | undefined): ModelTool[] {
  const offered = tools.map(({ name, description, parameters }) => ({
    name: names.toWire(name),
    description,
    parameters,
  }))
  if (output?.by !== 'tool') return offered
  const name = answerToolName(offered.map(tool => tool.name))
  return [...offered, { name, description: ANSWER_TOOL_DESCRIPTION, parameters: output.schema }]
}

/** Claude from its third version on. */
const CLAUDE = /^claude-(?!2|instant)/
/** Models of OpenAI that take images and count at most a few thousand tokens for one: `gpt-4o-mini` counts tens of thousands. */
const GPT = /^(?:gpt-4o(?!-mini)|gpt-4\.1|gpt-5|o1(?!-mini|-preview)|o3(?!-mini)|o4-mini|chatgpt-4o)/
const GEMINI = /^gemini-(?!embedding)/
const NOT_GPT = /audio|realtime|search|spark|transcribe|tts/

/** Whether a model is known to take images. One that is not gets a sentence: a request that it refuses would end the run. */
export function takesImages(provider: ProviderId, model: string): boolean {
  if (provider === 'anthropic') return CLAUDE.test(model)
  if (provider === 'openai') return GPT.test(model) && !NOT_GPT.test(model)
  if (provider === 'google') return GEMINI.test(model)
  return provider === 'router' && CLAUDE.test(model.replace(/^anthropic\//, ''))
}

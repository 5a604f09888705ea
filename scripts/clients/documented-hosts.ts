import { emitChat } from '../../shared/dialects/chat/emit.ts'
import { emitMessages } from '../../shared/dialects/messages/emit.ts'
import { chatAnswer, messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, type Script, stream } from '../../tests/upstream/scripted.ts'
import { ANSWER } from './provider.ts'

type Json = Record<string, unknown>

interface Asked extends Json {
  model: string
  stream?: boolean
  max_tokens?: number
  messages: { role: string; content: unknown; tool_calls?: Json[] }[]
  tools?: Json[]
}

/** What a model of a host takes, from the documents of its maker and not from the table of the router. */
interface Documented {
  thinking?: readonly string[]
  effort: boolean
  mostOutput: number
  sampling: boolean
  /** Whether the system may speak among the turns. */
  systemTurns?: boolean
}

const MODELS: Readonly<Record<string, Documented>> = {
  'claude-haiku-4-5': { thinking: ['enabled', 'disabled'], effort: false, mostOutput: 64_000, sampling: true },
  'claude-opus-4-8': {
    thinking: ['adaptive', 'disabled'],
    effort: true,
    mostOutput: 128_000,
    sampling: false,
    systemTurns: true,
  },
  'gpt-4o': { effort: false, mostOutput: 16_384, sampling: true },
}

/** Why a host refuses a request, in its own words; undefined where it takes it. */
function refusalOf(asked: Asked, isChat: boolean): string | undefined {
  const model = MODELS[asked.model]
  if (model === undefined) return `model: ${asked.model}`
  return isChat ? chatRefusal(asked, model) : messagesRefusal(asked, model)
}

function messagesRefusal(asked: Asked, model: Documented): string | undefined {
  const { type, budget_tokens: budget } = (asked.thinking ?? {}) as { type?: string; budget_tokens?: number }
  const effort = (asked.output_config as Json | undefined)?.effort
  const edits = ((asked.context_management as Json | undefined)?.edits ?? []) as Json[]
  const limit = asked.max_tokens ?? 0
  const turns = asked.messages.filter(({ role }) => role !== 'system')
  const last = turns.at(-1)
  const before = turns.at(-2)
  if (model.systemTurns !== true && asked.messages.some(({ role }) => role === 'system'))
    return 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.'
  if (limit > model.mostOutput) return `max_tokens: ${limit} > ${model.mostOutput}`
  if (type === 'adaptive' && !model.thinking?.includes(type)) return 'adaptive thinking is not supported on this model'
  if (type === 'enabled' && !model.thinking?.includes(type))
    return '"thinking.type.enabled" is not supported for this model.'
  if (budget !== undefined && budget >= limit) return '`max_tokens` must be greater than `thinking.budget_tokens`'
  if (effort !== undefined && !model.effort) return 'This model does not support the effort parameter.'
  if (!model.sampling && (asked.temperature ?? 1) !== 1) return '`temperature` is deprecated for this model.'
  const isOn = type === 'enabled' || type === 'adaptive'
  if (!isOn && edits.some(edit => String(edit.type).startsWith('clear_thinking')))
    return 'context_management: clear_thinking strategy requires thinking to be enabled'
  if (type === 'enabled' && holds(last?.content, 'tool_result') && !holds(before?.content, 'thinking'))
    return `messages.${asked.messages.length - 2}.content.0.type: Expected \`thinking\`, but found \`tool_use\`.`
  return undefined
}

function chatRefusal(asked: Asked, model: Documented): string | undefined {
  const known =
    /^(?:model|messages|stream|stream_options|tools|tool_choice|parallel_tool_calls|temperature|top_p|user|stop|max_tokens|max_completion_tokens|reasoning_effort|n|response_format)$/
  const unknown = Object.keys(asked).find(name => !known.test(name))
  if (unknown !== undefined) return `Unrecognized request argument supplied: ${unknown}`
  if (asked.reasoning_effort !== undefined && !model.effort)
    return 'Unrecognized request argument supplied: reasoning_effort'
  if (Number(asked.max_completion_tokens ?? asked.max_tokens ?? 0) > model.mostOutput) return 'max_tokens is too large'
  const open = new Set<unknown>()
  for (const { role, content, tool_calls, ...message } of asked.messages) {
    if (role === 'tool' && !open.delete((message as Json).tool_call_id)) return 'a tool message without its call'
    if (role === 'tool' && !holdsText(content)) return 'a tool message holds text'
    if (role !== 'tool' && open.size > 0)
      return 'an assistant message with tool_calls must be followed by tool messages'
    for (const { id } of tool_calls ?? []) open.add(id)
  }
  return undefined
}

const holdsText = (content: unknown) =>
  typeof content === 'string' || (Array.isArray(content) && content.every(part => (part as Json).type === 'text'))

const holds = (content: unknown, type: string) =>
  Array.isArray(content) && content.some(block => (block as Json).type === type)

/**
 * Hosts of both dialects as their makers document them. A client with a tool for commands or files is let use it, and gets its answer then; the
 * cheap model has none after the result, so that a ladder climbs in the middle of the loop.
 */
export function documentedHosts(seen: (line: string) => void): Script {
  return (response, { url, body, method }, request) => {
    const isChat = url.includes('/chat/completions')
    const asked = method === 'POST' && body.length > 0 ? (JSON.parse(String(body)) as Asked) : undefined
    const reply = (script: Script) => script(response, { url, body, method, rawHeaders: [], aborted: NEVER }, request)
    if (asked?.messages === undefined || url.includes('count_tokens')) return reply(answer(404, NOT_FOUND))
    const roles = asked.messages
      .map(({ role, content }) => (holds(content, 'thinking') ? `${role}+thinking` : role))
      .join(' ')
    const wishes = JSON.stringify([
      asked.thinking,
      asked.output_config,
      asked.reasoning_effort,
      asked.context_management,
    ])
    const refusal = refusalOf(asked, isChat)
    seen(`${asked.model} ${refusal === undefined ? '' : `REFUSED ${refusal} `}${roles.slice(0, 60)} ${wishes}`)
    if (refusal !== undefined) {
      const error = { type: 'invalid_request_error', message: refusal }
      return reply(answer(400, JSON.stringify(isChat ? { error } : { type: 'error', error })))
    }
    const made = isChat ? chatBody(asked) : messagesBody(asked)
    const text = Buffer.from(JSON.stringify(made))
    if (asked.stream !== true) return reply(answer(200, text))
    return reply(stream(isChat ? emitChat(text, { includeUsage: true }) : emitMessages(text)))
  }
}

const NEVER = new Promise<void>(() => undefined)
const NOT_FOUND = JSON.stringify({ type: 'error', error: { type: 'not_found_error', message: 'not found' } })
const isCheap = (model: string) => model !== 'claude-opus-4-8'

/** The tool that shows the note, with what it is called with. */
function callOf(tools: readonly Json[]): { name: string; input: Json } | undefined {
  const names = tools.map(({ name, function: fn }) => String(name ?? (fn as Json | undefined)?.name))
  const shell = names.find(name => /^(?:bash|run_shell_command)$/i.test(name))
  return shell === undefined
    ? undefined
    : { name: shell, input: { command: 'cat note.txt', description: 'Show the note' } }
}

function messagesBody({ model, messages, tools = [], thinking }: Asked): object {
  const whole = messagesAnswer(ANSWER, model)
  const call = callOf(tools)
  const type = (thinking as Json | undefined)?.type
  const thought =
    type === 'enabled' || type === 'adaptive' ? [{ type: 'thinking', thinking: 'So.', signature: 'c2ln' }] : []
  if (call === undefined) return whole
  if (messages.some(({ content }) => holds(content, 'tool_result'))) {
    return { ...whole, content: isCheap(model) ? [] : [...thought, { type: 'text', text: ANSWER }] }
  }
  const use = { type: 'tool_use', id: 'toolu_1', name: call.name, input: call.input }
  return { ...whole, content: [...thought, use], stop_reason: 'tool_use' }
}

function chatBody({ model, messages, tools = [] }: Asked): object {
  const call = callOf(tools)
  if (call === undefined) return chatAnswer(ANSWER, model)
  if (messages.some(({ role }) => role === 'tool')) return chatAnswer('', model)
  const whole = chatAnswer('', model)
  const calls = [
    { id: 'call_1', type: 'function', function: { name: call.name, arguments: JSON.stringify(call.input) } },
  ]
  const message = { role: 'assistant', content: null, refusal: null, tool_calls: calls }
  return { ...whole, choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }] }
}

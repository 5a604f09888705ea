import { emitChat } from '../../shared/dialects/chat/emit.ts'
import { emitMessages } from '../../shared/dialects/messages/emit.ts'
import { chatAnswer, messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, type Script, stream } from '../../tests/upstream/scripted.ts'
import { ANSWER, callFor } from './provider.ts'

type Json = Record<string, unknown>

/** A host of chat that calls a tool and has no answer to its result, and one of messages that has: a ladder of both climbs in the middle of a loop. */
export function otherHosts(seen: (line: string) => void): Script {
  return (response, asked, request) => {
    const body = JSON.parse(String(asked.body)) as { model: string; stream?: boolean; messages: Json[]; tools?: Json[] }
    const isChat = asked.url.endsWith('/chat/completions')
    seen(`${asked.url} ${body.model}: ${body.messages.map(({ role }) => String(role)).join(' ')}`)
    const text = JSON.stringify(isChat ? chatBody(body) : messagesBody())
    const frames = () =>
      isChat ? emitChat(Buffer.from(text), { includeUsage: true }) : emitMessages(Buffer.from(text))
    return (body.stream === true ? stream(frames()) : answer(200, text))(response, asked, request)
  }
}

function chatBody({ messages, tools = [] }: { messages: Json[]; tools?: Json[] }) {
  const whole = chatAnswer('')
  if (messages.at(-1)?.role === 'tool') return whole
  const flat = tools.map(({ type, function: fn }) => ({ type, ...(fn as Json) }))
  const { call_id: id, name, arguments: args } = callFor({ tools: flat }, 1)
  const calls = [{ id, type: 'function', function: { name, arguments: args } }]
  const message = { role: 'assistant', content: null, refusal: null, tool_calls: calls }
  return { ...whole, choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }] }
}

const messagesBody = () => messagesAnswer(ANSWER)

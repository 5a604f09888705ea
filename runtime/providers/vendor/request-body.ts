import type { DialectName } from '../../../shared/dialects/candidate.ts'
import type { Message, ModelRequest } from '../../execution/models/model.ts'
import type { Vendor } from '../vendors.ts'
import type { ToolNames } from './tool-names.ts'

export interface BodyOptions {
  model: string
  names: ToolNames
  vendor: Pick<Vendor, 'maxTokens'>
}

/** The request of either dialect; always streamed, so that its first event names it and silence is noticed. */
export function requestBody(dialect: DialectName, request: ModelRequest, options: BodyOptions): string {
  const body = dialect === 'messages' ? messagesBody(request, options) : chatBody(request, options)
  // Half of a surrogate pair is legal in our JSON and refused by providers.
  return JSON.stringify(body, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value))
}

function chatBody(
  { system, messages, tools, maxOutputTokens, temperature }: ModelRequest,
  { model, names, vendor }: BodyOptions,
) {
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...messages.flatMap(message => chatMessages(message, names)),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function',
        function: { name: names.toWire(name), description, parameters },
      })),
    }),
    [vendor.maxTokens]: maxOutputTokens,
    ...(temperature !== undefined && { temperature }),
    stream: true,
    stream_options: { include_usage: true },
  }
}

function chatMessages(message: Message, names: ToolNames): object[] {
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
              ...{ id, type: 'function' },
              function: { name: names.toWire(name), arguments: JSON.stringify(given) },
            })),
          }),
        },
      ]
    case 'tool':
      return message.results.map(({ callId, content }) => ({ role: 'tool', tool_call_id: callId, content }))
  }
}

function messagesBody(
  { system, messages, tools, maxOutputTokens, temperature }: ModelRequest,
  { model, names }: BodyOptions,
) {
  return {
    ...{ model, max_tokens: maxOutputTokens },
    ...(system.trim() !== '' && { system }),
    messages: messages.map(message => messagesTurn(message, names)),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        ...{ name: names.toWire(name), description, input_schema: parameters },
      })),
    }),
    ...(temperature !== undefined && { temperature }),
    stream: true,
  }
}

/** This dialect refuses a text without a character in it. */
const said = (text: string) => (text.trim() === '' ? '(empty)' : text)

function messagesTurn(message: Message, names: ToolNames): object {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: said(message.text) }
    case 'assistant': {
      const { text, toolCalls } = message
      if (toolCalls.length === 0) return { role: 'assistant', content: said(text) }
      const calls = toolCalls.map(({ id, name, arguments: input }) => ({
        ...{ type: 'tool_use', id: idOf(id), name: names.toWire(name), input },
      }))
      return { role: 'assistant', content: [...(text.trim() === '' ? [] : [{ type: 'text', text }]), ...calls] }
    }
    case 'tool':
      return {
        role: 'user',
        content: message.results.map(({ callId, content, failed }) => ({
          ...{ type: 'tool_result', tool_use_id: idOf(callId), content },
          ...(failed && { is_error: true }),
        })),
      }
  }
}

/** The id of a call that another provider made, in the characters that this dialect takes. */
function idOf(id: string): string {
  return id.replace(/[^A-Za-z0-9_-]/g, '_') || '_'
}

import type { DialectName } from '../../../shared/dialects/candidate.ts'
import type { Message, ModelRequest } from '../../execution/models/model.ts'
import { writtenArguments } from '../../execution/models/tool-arguments.ts'
import { messagesBody } from './messages-body.ts'
import { type BodyOptions, offeredTools } from './offered-tools.ts'
import type { ToolNames } from './tool-names.ts'

/** The request of either dialect; always streamed, so that its first event names it and silence is noticed. */
export function requestBody(dialect: DialectName, request: ModelRequest, options: BodyOptions): string {
  const body = dialect === 'messages' ? messagesBody(request, options) : chatBody(request, options)
  // Half of a surrogate pair is legal in our JSON and refused by providers.
  return JSON.stringify(body, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value))
}

function chatBody(
  { system, messages, tools, maxOutputTokens, temperature }: ModelRequest,
  { model, names, vendor, output }: BodyOptions,
) {
  const offered = offeredTools(tools, names, output)
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...messages.flatMap(message => chatMessages(message, names)),
    ],
    ...(offered.length > 0 && { tools: offered.map(tool => ({ type: 'function', function: tool })) }),
    ...(output?.by === 'tool' && {
      tool_choice: tools.length > 0 ? 'required' : { type: 'function', function: { name: offered.at(-1)!.name } },
    }),
    ...(output?.by === 'format' && {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: output.schema, strict: output.strict },
      },
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
              id,
              type: 'function',
              function: { name: names.toWire(name), arguments: writtenArguments(given) ?? JSON.stringify(given) },
            })),
          }),
        },
      ]
    case 'tool':
      return message.results.map(({ callId, content }) => ({ role: 'tool', tool_call_id: callId, content }))
  }
}

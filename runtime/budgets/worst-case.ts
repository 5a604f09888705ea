import { utf8Bytes } from '../../shared/dialects/text-pieces.ts'
import type { ModelRequest } from '../execution/models/model.ts'

/** Tokens that a message costs beside its text. */
const PER_MESSAGE = 8
/** Prose and code have about four bytes to a token, tables and other scripts fewer; what is held must not be too little. */
const BYTES_PER_TOKEN = 3

/** What goes with a schema: the tool that the answer is given by, and what a provider says to the model about it. */
const ANSWER_FORM_BYTES = 2048

/** The most tokens that a request is likely to be counted as. Only the provider knows the number. */
export function mostTokensIn({ system, messages, tools, outputSchema }: ModelRequest): number {
  let bytes = utf8Bytes(system)
  if (outputSchema !== undefined) bytes += ANSWER_FORM_BYTES + utf8Bytes(JSON.stringify(outputSchema))
  let pieces = 1 + messages.length + tools.length
  for (const message of messages) {
    if (message.role === 'tool') {
      pieces += message.results.length
      for (const { content, name } of message.results) bytes += utf8Bytes(content) + name.length
      continue
    }
    bytes += utf8Bytes(message.text)
    if (message.role === 'assistant') {
      for (const call of message.toolCalls) bytes += utf8Bytes(JSON.stringify(call.arguments)) + call.name.length
      pieces += message.toolCalls.length
    }
  }
  for (const { name, description, parameters } of tools) {
    bytes += name.length + utf8Bytes(description) + JSON.stringify(parameters).length
  }
  return Math.ceil(bytes / BYTES_PER_TOKEN) + pieces * PER_MESSAGE
}

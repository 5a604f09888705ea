import type { Json, JsonObject } from '../json-value.ts'
import { asObject, asString, isObject } from '../json-value.ts'
import type { Ledger } from './ledger.ts'
import { readToolList } from './tool-list.ts'

/** Function tools as messages tools; undefined when the request has none. */
export function toolsToMessages(tools: Json | undefined, book: Ledger): JsonObject[] | undefined {
  return readToolList(tools, book)?.map((tool, i) => toolToMessages(asObject(tool), `tools[${i}]`, book))
}

function toolToMessages(tool: JsonObject, path: string, book: Ledger): JsonObject {
  if (tool.type !== 'function' || !isObject(tool.function)) {
    book.refuse(path, 'only function tools can be translated')
    return {}
  }
  const { cache_control: cache } = tool
  book.only(tool, path, ['type', 'function', ...(book.lenient ? ['cache_control'] : [])])
  const { name, description, parameters, strict } = tool.function
  book.only(tool.function, `${path}.function`, ['name', 'description', 'parameters', 'strict'])
  if (asString(name) === null) book.refuse(`${path}.function.name`, 'expected text')
  if (description === null) book.drop(`${path}.function.description`)
  if (parameters === null) book.drop(`${path}.function.parameters`)
  if (strict === null) book.drop(`${path}.function.strict`)
  return {
    name,
    ...(description == null ? {} : { description }),
    input_schema: parameters ?? { type: 'object' },
    ...(strict == null ? {} : { strict }),
    ...(book.lenient && isObject(cache) ? { cache_control: cache } : {}),
  }
}

/** `tool_choice` and `parallel_tool_calls`, which the messages dialect keeps in one place. */
export function toolChoiceToMessages(request: JsonObject, hasTools: boolean, book: Ledger): JsonObject | undefined {
  const { parallel_tool_calls: parallel } = request
  const choice = readChoice(request.tool_choice, hasTools, book)
  if (parallel === undefined) return choice
  if (parallel !== false || !hasTools || choice?.type === 'none') {
    if (parallel !== null && typeof parallel !== 'boolean') book.refuse('parallel_tool_calls', 'expected true or false')
    // One call at a time needs tools to call; several at a time is what the messages dialect does anyway.
    else book.drop('parallel_tool_calls')
    return choice
  }
  return { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }
}

function readChoice(choice: Json | undefined, hasTools: boolean, book: Ledger): JsonObject | undefined {
  if (choice === undefined) return undefined
  if (choice === null || (!hasTools && (choice === 'auto' || choice === 'none'))) {
    book.drop('tool_choice')
    return undefined
  }
  if (choice === 'auto' || choice === 'none') return { type: choice }
  if (choice === 'required' && hasTools) return { type: 'any' }
  const named = isObject(choice) && choice.type === 'function' ? asObject(choice.function) : {}
  const name = asString(named.name)
  if (!isObject(choice) || name === null || !hasTools) {
    book.refuse('tool_choice', 'expected auto, none, required or a function, with tools to choose from')
    return undefined
  }
  book.only(choice, 'tool_choice', ['type', 'function'])
  book.only(named, 'tool_choice.function', ['name'])
  return { type: 'tool', name }
}

import type { Json, JsonObject } from '../json-value.ts'
import { asObject, asString, isObject } from '../json-value.ts'
import type { Ledger } from './ledger.ts'
import { offeredTools, readToolList } from './tool-list.ts'

/** Tools of the client as function tools; undefined when the request has none. */
export function toolsToChat({ tools, tool_choice }: JsonObject, book: Ledger): JsonObject[] | undefined {
  const list = readToolList(tools, book)?.map(asObject)
  if (list === undefined) return undefined
  const { type } = asObject(tool_choice)
  const types = list.map(tool => asString(tool.type) ?? undefined)
  const offered = offeredTools(types, type === 'any' || type === 'tool' ? type : 'auto', book)
  return list.flatMap((tool, i) => {
    const path = `tools[${i}]`
    if (!offered.has(i)) return [toolToChat(tool, path, book)]
    book.advise(path, 'a tool that runs at its provider')
    return []
  })
}

function toolToChat(tool: JsonObject, path: string, book: Ledger): JsonObject {
  const { type, name, description, input_schema, strict } = tool
  if (type !== undefined && type !== null && type !== 'custom') {
    book.refuse(path, `the chat dialect has no ${String(type)} tool`)
    return {}
  }
  book.only(tool, path, ['type', 'name', 'description', 'input_schema', 'strict', 'cache_control'])
  if (tool.cache_control !== undefined) book.drop(`${path}.cache_control`)
  if (asString(name) === null) book.refuse(`${path}.name`, 'expected text')
  if (!isObject(input_schema)) book.refuse(`${path}.input_schema`, 'expected an object')
  if (description === null) book.drop(`${path}.description`)
  if (strict === null) book.drop(`${path}.strict`)
  return {
    type: 'function',
    function: {
      name,
      ...(description == null ? {} : { description }),
      parameters: input_schema,
      ...(strict == null ? {} : { strict }),
    },
  }
}

/** `tool_choice` with its flag for one call at a time, as the two fields of the chat dialect. */
export function toolChoiceToChat(choice: Json | undefined, book: Ledger): JsonObject {
  if (choice === undefined) return {}
  if (choice === null) {
    book.drop('tool_choice')
    return {}
  }
  const { type, name, disable_parallel_tool_use: single } = asObject(choice)
  book.only(asObject(choice), 'tool_choice', ['type', 'name', 'disable_parallel_tool_use'])
  const parallel = single === true ? { parallel_tool_calls: false } : {}
  if (single !== undefined && single !== true) book.drop('tool_choice.disable_parallel_tool_use')
  if (type === 'auto' || type === 'none') return { tool_choice: type, ...parallel }
  if (type === 'any') return { tool_choice: 'required', ...parallel }
  if (type === 'tool' && typeof name === 'string')
    return { tool_choice: { type: 'function', function: { name } }, ...parallel }
  book.refuse('tool_choice', 'expected auto, any, none or a named tool')
  return {}
}

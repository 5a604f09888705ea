import type { Json, JsonObject } from '../json-value.ts'
import { asObject, asString, isObject, without } from '../json-value.ts'
import type { Ledger } from './ledger.ts'
import { offeredTools, readToolList } from './tool-list.ts'

/** Tools that the client runs, as chat tools; undefined when the request has none. */
export function toolsFromResponses({ tools, tool_choice }: JsonObject, book: Ledger): JsonObject[] | undefined {
  const list = readToolList(tools, book)?.map(asObject)
  if (list === undefined) return undefined
  const types = list.map(tool => asString(tool.type) ?? undefined)
  const offered = offeredTools(types, tool_choice, book)
  return list.flatMap((tool, i) => {
    const path = `tools[${i}]`
    if (!offered.has(i)) return [readTool(tool, path, book)]
    book.advise(path, `a tool of type ${String(tool.type)} runs at its provider`)
    return []
  })
}

function readTool(tool: JsonObject, path: string, book: Ledger): JsonObject {
  if (tool.type === 'function') {
    book.only(tool, path, ['type', 'name', 'description', 'parameters', 'strict'])
    return { type: 'function', function: given(without(tool, 'type')) }
  }
  if (tool.type === 'custom') {
    book.only(tool, path, ['type', 'name', 'description', 'format'])
    const format = readFormat(tool.format, `${path}.format`, book)
    return { type: 'custom', custom: given({ ...without(tool, 'type', 'format'), format }) }
  }
  book.refuse(path, `a tool of type ${String(tool.type)} runs at its provider`)
  return {}
}

function readFormat(format: Json | undefined, path: string, book: Ledger): JsonObject | undefined {
  if (format === undefined || format === null) return undefined
  const { type, syntax, definition } = asObject(format)
  if (type === 'text') return { type }
  if (type === 'grammar') return { type, grammar: { syntax, definition } }
  book.refuse(path, 'expected text or a grammar')
  return undefined
}

const given = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== undefined))

/** `tool_choice` and `parallel_tool_calls`, neither of which chat takes without tools. */
export function toolChoiceFromResponses(request: JsonObject, hasTools: boolean, book: Ledger): JsonObject {
  const { tool_choice: choice, parallel_tool_calls: parallel } = request
  const several = hasTools && typeof parallel === 'boolean' ? { parallel_tool_calls: parallel } : {}
  if (parallel !== undefined && several.parallel_tool_calls === undefined) book.drop('parallel_tool_calls')
  if (choice === undefined) return several
  if (choice === null || (!hasTools && (choice === 'auto' || choice === 'none'))) {
    book.drop('tool_choice')
    return several
  }
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { ...several, tool_choice: choice }
  const { type, name } = asObject(choice)
  if (isObject(choice) && asString(name) !== null && (type === 'function' || type === 'custom')) {
    book.only(choice, 'tool_choice', ['type', 'name'])
    return { ...several, tool_choice: { type, [type]: { name } } }
  }
  book.refuse('tool_choice', 'expected auto, none, required or one tool of the client')
  return several
}

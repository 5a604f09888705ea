import type { Validator } from '@cfworker/json-schema'
import { tryParseJson } from '../../shared/dialects/json-text.ts'
import { asArray, asObject, asString, isObject, type Json, type JsonObject } from '../../shared/dialects/json-value.ts'
import { readSchema, type SchemaDraft, schemaValidator } from '../config/json-schema.ts'
import type { GateRequest } from './gate.ts'
import { costlyKeywords, sizeOf } from './schema-value.ts'

/** How the arguments of one tool are to be checked. */
export type ToolCheck =
  /** Free text, as of a tool of type `custom` (chat and responses). */
  | { readonly kind: 'text' }
  /** JSON of any shape: the request says no more, as for a tool that the provider defines. */
  | { readonly kind: 'any' }
  | SchemaCheck
  /** The client's schema is none, or uses what is not supported. */
  | { readonly kind: 'bad_schema' }

interface SchemaCheck {
  readonly kind: 'schema'
  /** Absent where the time is not bounded by the sizes of schema and value. */
  readonly inline: { readonly validator: Validator; readonly size: number } | undefined
  readonly schema: string
  readonly draft: SchemaDraft
}

export interface DeclaredTools {
  /** undefined for a tool the request does not declare. */
  find(name: string): ToolCheck | undefined
}

/** By request body: several gates and several rungs ask the same request. */
const known = new WeakMap<Uint8Array, DeclaredTools>()

/** The tools a request declares, in any dialect. A schema is read when its tool is called. */
export function declaredTools(request: GateRequest): DeclaredTools {
  let tools = known.get(request.body)
  if (tools === undefined) {
    tools = readTools(request)
    known.set(request.body, tools)
  }
  return tools
}

function readTools({ body, facts, dialect }: GateRequest): DeclaredTools {
  const listed =
    facts.tools === undefined ? [] : asArray(tryParseJson(body.subarray(facts.tools.start, facts.tools.end)))
  // The older `functions` of the chat dialect have no place in the facts; they are rare enough to parse the body for.
  const functions =
    dialect === 'chat' && facts.toolCount > listed.length ? asArray(asObject(tryParseJson(body)).functions) : []
  const declarations = new Map<string, JsonObject>()
  for (const fn of functions) declare(asObject(fn))
  for (const tool of listed) declare(asObject(tool))
  const checks = new Map<string, ToolCheck>()

  function declare(tool: JsonObject): void {
    const name = asString(partOf(tool).name) ?? (dialect === 'responses' ? typeOf(tool) : null)
    if (name !== null) declarations.set(name, tool)
  }

  return {
    find(name) {
      const made = checks.get(name)
      const tool = declarations.get(name)
      if (made !== undefined || tool === undefined) return made
      const isText = tool.type === 'custom' && (isObject(tool.custom) || dialect === 'responses')
      const check = isText ? TEXT : checkOf(schemaOf(tool))
      checks.set(name, check)
      return check
    },
  }
}

/** Of a tool that has no name. The older type of the one for computers is called by the name of the newer. */
const typeOf = ({ type }: JsonObject) => (type === 'computer_use_preview' ? 'computer' : asString(type))

const TEXT: ToolCheck = { kind: 'text' }

/** The member that holds the name: a chat tool wraps it, a messages tool and a chat function do not. */
function partOf(tool: JsonObject): JsonObject {
  if (isObject(tool.function)) return tool.function
  return isObject(tool.custom) ? tool.custom : tool
}

function schemaOf(tool: JsonObject): Json | undefined {
  const part = partOf(tool)
  return part.input_schema ?? part.parameters
}

function checkOf(given: Json | undefined): ToolCheck {
  if (given === undefined || given === null) return { kind: 'any' }
  try {
    const read = readSchema(given)
    if ('problems' in read) return { kind: 'bad_schema' }
    const isBounded = costlyKeywords(read.schema, 'request').length === 0
    const inline = isBounded ? { validator: schemaValidator(read), size: sizeOf(read.schema) } : undefined
    return { kind: 'schema', inline, schema: JSON.stringify(read.schema), draft: read.draft }
  } catch (error) {
    // Nested deeper than the stack: nothing a model can be judged by.
    if (error instanceof RangeError) return { kind: 'bad_schema' }
    throw error
  }
}

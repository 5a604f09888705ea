import type { Validator } from '@cfworker/json-schema'
import type { ToolCall } from '../../../shared/dialects/candidate.ts'
import { tryParseJson } from '../../../shared/dialects/json-text.ts'
import {
  asArray,
  asObject,
  asString,
  isObject,
  type Json,
  type JsonObject,
  tryParse,
} from '../../../shared/dialects/json-value.ts'
import { text } from '../../../shared/wire/bounds.ts'
import { readSchema, type SchemaDraft, schemaValidator } from '../../config/json-schema.ts'
import { flag, uniqueList } from '../../config/table-fields.ts'
import { defineGate } from '../define-gate.ts'
import { fail, type GateRequest, type GateVerdict, isTruncated, PASS } from '../gate.ts'
import type { RegexAnswer, RegexJob } from '../regex-runner.ts'
import { checkValue, costlyKeywords, sizeOf } from '../schema-value.ts'

export interface Tools {
  /** null allows every tool. */
  readonly allow: readonly string[] | null
  readonly deny: readonly string[]
  readonly requireKnown: boolean
}

/**
 * Each tool call names a tool of the request and carries arguments its schema takes. Reasons hold no names: those of the
 * calls are the model's words, those of the schemas the client's. A schema that cannot be used makes the gate abstain,
 * which is no error of the gate: a client could switch it off for others.
 */
export const toolArgs = defineGate({
  kind: 'tool-args',
  about: "Each tool call names a tool of the request and has arguments that the tool's schema takes.",
  keys: {
    allow: uniqueList(text(1, 256)).optional(),
    deny: uniqueList(text(1, 256)).optional(),
    require_known: flag.default(true),
  },
  words: {
    allow: { about: 'The only tools that may be called.', unset: 'all' },
    deny: { about: 'Tools that may not be called.', unset: 'none' },
    require_known: 'Whether a tool that the request does not have fails.',
  },
  resolve: ({ allow = null, deny = [], require_known }): Tools => ({ allow, deny, requireKnown: require_known }),
  build: (config, { regexRunner }) => ({
    async run(input, signal) {
      const { toolCalls } = input.choice
      if (toolCalls.length === 0) return PASS
      if (isTruncated(input)) return fail('truncated')
      const tools = declaredTools(input.request)
      const run: Run | undefined = regexRunner && (job => regexRunner.run(job, signal, input.tenantId))
      let unsure: GateVerdict | undefined
      for (const [i, call] of toolCalls.entries()) {
        const answer = await checkCall(config, tools, run, call)
        if (answer.verdict === 'fail') return fail(`call ${i}: ${answer.reason}`)
        if (answer.verdict === 'error') unsure ??= { verdict: 'abstain', reason: `call ${i}: ${answer.reason}` }
      }
      return unsure ?? PASS
    },
  }),
})

const no = (reason: string): RegexAnswer => ({ verdict: 'fail', reason })
const unsure = (reason: string): RegexAnswer => ({ verdict: 'error', reason })

/** Where what can take long runs, within the time of the gate. */
type Run = (job: RegexJob) => Promise<RegexAnswer>

async function checkCall(
  { allow, deny, requireKnown }: Tools,
  tools: DeclaredTools,
  run: Run | undefined,
  call: ToolCall,
): Promise<RegexAnswer> {
  if (deny.includes(call.name)) return no('denied tool')
  if (allow !== null && !allow.includes(call.name)) return no('tool not allowed')
  const check = tools.find(call.name)
  if (check === undefined && requireKnown) return no('unknown tool')
  if (check?.kind === 'text') return { verdict: 'pass' }
  // Hosts write a call without arguments as an empty text too.
  const text = call.arguments.trim() === '' ? '{}' : call.arguments
  const value = tryParse(text)
  if (value === undefined) return no('arguments are not JSON')
  const answer = await checkArguments(check, run, text, value)
  return answer.verdict === 'fail' ? no(`arguments do not match the schema (${keywordOf(answer.reason)})`) : answer
}

/** Every part of a schema over every value: some 50 ms at most on the thread that serves requests. */
const MOST_STEPS = 200_000

async function checkArguments(
  check: ToolCheck | undefined,
  run: Run | undefined,
  text: string,
  value: unknown,
): Promise<RegexAnswer> {
  switch (check?.kind) {
    case 'schema': {
      const { inline, schema, draft } = check
      const isQuick = inline !== undefined && inline.size * sizeOf(value, MOST_STEPS / inline.size) <= MOST_STEPS
      if (isQuick) return checkValue(inline.validator, value)
      return run === undefined
        ? unsure('this host cannot run the schema of the tool in bounded time')
        : run({ kind: 'schema', schema, draft, value: text })
    }
    case 'bad_schema':
      return unsure('bad_tool_schema')
    default:
      return { verdict: 'pass' }
  }
}

/** Only the keyword: the rest of the place names the client's properties. */
const keywordOf = (reason: string): string => /^schema: (\w+)/.exec(reason)?.[1] ?? 'schema'

/** How the arguments of one tool are to be checked. */
type ToolCheck =
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

interface DeclaredTools {
  /** undefined for a tool the request does not declare. */
  find(name: string): ToolCheck | undefined
}

/** By request body: several gates and several rungs ask the same request. */
const known = new WeakMap<Uint8Array, DeclaredTools>()

/** The tools a request declares, in any dialect. A schema is read when its tool is called. */
function declaredTools(request: GateRequest): DeclaredTools {
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

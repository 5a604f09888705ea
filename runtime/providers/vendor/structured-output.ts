import type { DialectName } from '../../../shared/dialects/candidate.ts'
import type { ProviderId } from '../../../shared/wire/runtime/model-name.ts'

type Schema = Readonly<Record<string, unknown>>

/**
 * How a provider is asked for an answer that fits a schema: by its own structured output (`format`), or, where it has none or does not
 * take this schema, by a tool that the model has to call (`tool`). Either way the answer is validated afterwards.
 */
export type OutputRequest = { by: 'format'; schema: Schema; strict: boolean } | { by: 'tool'; schema: Schema }

export interface OutputTarget {
  provider: ProviderId
  dialect: DialectName
  model: string
  /** Whether the request offers tools of the agent beside the answer. */
  tools: boolean
}

/** Claude models with `output_config.format`: Opus 4.1, every 4.5 and later, 5 and later. */
const CLAUDE = /^claude-(?:opus-4-1(?!\d)|[a-z]+-4-[5-9](?!\d)|[a-z]+-[5-9](?!\d))/
/** OpenAI's models that came before `response_format: json_schema`. */
const OLDER_GPT = /^(?:gpt-3\.5|gpt-4(?:$|-turbo|-\d{4}|-32k)|gpt-4o-2024-05-13|chatgpt-4o|o1-(?:mini|preview))/

export function outputRequest(schema: Schema, { provider, dialect, model, tools }: OutputTarget): OutputRequest {
  if (provider === 'anthropic' && dialect === 'messages' && CLAUDE.test(model)) {
    const closed = closedSchema(schema)
    if (closed !== undefined) return { by: 'format', schema: closed, strict: true }
  }
  if (provider === 'openai' && !OLDER_GPT.test(model)) return gptFormat(schema)
  // Its compatible interface refuses a response format beside functions.
  if (provider === 'google' && !tools) return { by: 'format', schema, strict: false }
  return { by: 'tool', schema }
}

function gptFormat(schema: Schema): OutputRequest {
  const closed = closedSchema(schema)
  return closed !== undefined && requiresAll(closed)
    ? { by: 'format', schema: closed, strict: true }
    : { by: 'format', schema, strict: false }
}

/** What both providers compile into a grammar. Others are refused with a 400, or need more than this list says of them. */
const COMPILED = new Set(['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf'])
const NOTES = new Set(['title', 'description', '$schema', 'default', 'examples'])

/**
 * The schema with every object closed, as strict output wants it: what fits it fits the given one as well. Undefined where a word
 * is not among those that are compiled, or an object has no members to be closed to.
 */
export function closedSchema(schema: unknown): Schema | undefined {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return undefined
  const closed: Record<string, unknown> = {}
  for (const [word, value] of Object.entries(schema)) {
    if (NOTES.has(word)) {
      if (word === 'title' || word === 'description') closed[word] = value
      continue
    }
    if (!COMPILED.has(word)) return undefined
    const inner =
      word === 'properties' ? closedMembers(value) : word === 'anyOf' ? closedList(value) : closedWord(word, value)
    if (inner === undefined) return undefined
    closed[word] = inner
  }
  if (closed.type !== 'object') return closed.properties === undefined ? closed : undefined
  if (closed.properties === undefined) return undefined
  return { ...closed, additionalProperties: false }
}

function closedWord(word: string, value: unknown): unknown {
  if (word === 'items') return closedSchema(value)
  // `true` and a schema allow members that have no name to be closed to.
  if (word === 'additionalProperties') return value === false ? false : undefined
  if (word === 'type') return typeof value === 'string' ? value : undefined
  return value
}

function closedMembers(value: unknown): object | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const members = Object.entries(value).map(([name, inner]) => [name, closedSchema(inner)] as const)
  return members.length > 0 && members.every(([, inner]) => inner !== undefined)
    ? Object.fromEntries(members)
    : undefined
}

function closedList(value: unknown): unknown[] | undefined {
  if (!Array.isArray(value)) return undefined
  const list = value.map(closedSchema)
  return list.every(inner => inner !== undefined) ? list : undefined
}

/** OpenAI's strict output knows no member that may be left out. */
function requiresAll(schema: Schema): boolean {
  const { properties, required, items, anyOf } = schema as {
    properties?: Record<string, Schema>
    required?: readonly string[]
    items?: Schema
    anyOf?: readonly Schema[]
  }
  const names = Object.keys(properties ?? {})
  return (
    names.every(name => required?.includes(name)) &&
    [...Object.values(properties ?? {}), ...(items ? [items] : []), ...(anyOf ?? [])].every(requiresAll)
  )
}

/** The tool that an answer is given by, under a name that none of the agent's has. */
export function answerToolName(taken: Iterable<string>): string {
  const names = new Set(taken)
  let name = 'final_answer'
  while (names.has(name)) name += '_'
  return name
}

export const ANSWER_TOOL_DESCRIPTION =
  'Gives the final answer. Call it once, when nothing else is left to do; its arguments are the answer.'

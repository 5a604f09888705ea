import { utf8 } from '../../../shared/sign/bytes.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import type { McpServer } from '../../../shared/wire/runtime/manifest-parts.ts'
import type { Effect } from '../../../shared/wire/runtime/tool.ts'
import { schemaProblem } from '../../json-schema/schema-check.ts'
import { wellFormed } from '../journal/well-formed.ts'

/** A tool as a server describes it: everything that a model is shown or that decides how a call is treated. */
export interface McpDefinition {
  name: string
  title?: string | undefined
  description?: string | undefined
  inputSchema: { type: 'object'; [keyword: string]: unknown }
  outputSchema?: { [keyword: string]: unknown } | undefined
  annotations?:
    | { title?: string | undefined; readOnlyHint?: boolean | undefined; idempotentHint?: boolean | undefined }
    | undefined
}

export function definitionOf(tool: McpDefinition): McpDefinition {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool
  return wellFormed({
    name,
    inputSchema,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(outputSchema !== undefined && { outputSchema }),
    ...(annotations !== undefined && { annotations }),
  }) as McpDefinition
}

/** The same for the same definitions, in whichever order a server lists them. */
export function hashOf(definitions: readonly McpDefinition[], sha256: Sha256): string {
  const byName = definitions.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  return sha256Hex(utf8(canonicalize(byName)), sha256)
}

/** What a call may do twice. A server's hints are believed as far as the manifest names the server at all. */
export function effectOf({ name, annotations }: McpDefinition, { idempotent }: Pick<McpServer, 'idempotent'>): Effect {
  if (annotations?.readOnlyHint === true) return 'read'
  return annotations?.idempotentHint === true || idempotent.includes(name) ? 'idempotent' : 'once'
}

/** The definitions that a manifest lets an agent see, or the sentence that says what is wrong with the list. */
export function allowed(
  offered: readonly McpDefinition[],
  { name: server, allow }: Pick<McpServer, 'name' | 'allow'>,
): readonly McpDefinition[] | string {
  const byName = new Map(offered.map(one => [one.name, one]))
  if (byName.size < offered.length) return `the MCP server ${server} offers two tools of one name`
  const wanted = allow.includes('*') ? [...byName.keys()] : [...new Set(allow)]
  const missing = wanted.filter(name => !byName.has(name))
  if (missing.length > 0) {
    const offers = offered.length === 0 ? 'none' : some(offered.map(({ name }) => name))
    return `the MCP server ${server} does not offer ${some(missing)}, which its allow names; it offers ${offers}`
  }
  if (wanted.length === 0) return `the MCP server ${server} offers no tools`
  const definitions = wanted.flatMap(name => byName.get(name) ?? [])
  // A schema is held against every call, so one that breaks the check must not get that far.
  for (const { name, inputSchema } of definitions) {
    const problem = schemaProblem(inputSchema)
    if (problem !== undefined) return `the MCP server ${server} gives ${name} a schema that cannot be read: ${problem}`
  }
  return definitions
}

const MOST_NAMED = 30
const some = (names: readonly string[]) =>
  names.length > MOST_NAMED ? `${names.slice(0, MOST_NAMED).join(', ')} and more` : names.join(', ')

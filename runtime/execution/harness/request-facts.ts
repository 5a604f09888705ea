import type { InStatement } from '@libsql/client/web'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import type { EventMeta } from '../../../shared/wire/runtime/journal.ts'
import type { StepKind } from '../../../shared/wire/runtime/run.ts'
import type { FoundModel } from '../models/model.ts'
import type { StepSpec } from '../step-spec.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'

type RequestFacts = NonNullable<EventMeta['request']>

/** A tool as it was offered, with what decides whether its calls are made: as much as a request is rebuilt from. */
export interface OfferedTool extends Pick<ExposedTool, 'name' | 'description' | 'parameters' | 'family'> {
  kind: StepKind
  needsApproval: boolean
  /** Its calls may change something, whatever they are given. */
  writes: boolean
}

/** Keeps the tools of a run beside its journal. */
export type KeepTools = (digest: string, body: string) => InStatement

/** What of the requests of a run stands in no event: named in the journal, and kept with the first of them. */
export interface KeptFacts {
  facts: RequestFacts
  beside: NonNullable<StepSpec['beside']>
}

interface RequestMaker {
  model: Pick<FoundModel, 'contextTokens'>
  tools: ReadonlyMap<string, ExposedTool>
  keepTools?: KeepTools | undefined
  sha256: Sha256
}

export function requestFacts({ model: { contextTokens }, tools, keepTools, sha256 }: RequestMaker): KeptFacts {
  const facts: RequestFacts = { ...(contextTokens !== undefined && { contextTokens }) }
  if (!keepTools) return { facts, beside: {} }
  const body = canonicalize([...tools.values()].map(offered))
  const digest = sha256Hex(body, sha256)
  return { facts: { ...facts, tools: digest }, beside: { extra: [keepTools(digest, body)] } }
}

function offered({ name, description, parameters, kind, family, needsApproval, effect }: ExposedTool): OfferedTool {
  // What an action of a connector or a tool of an MCP server does is the same for every call.
  const writes = family !== 'tools' && effect({}) !== 'read'
  return { name, description, parameters, kind, family, needsApproval, writes }
}

/** What a step adds to its intent: nothing where the journal says the same already. */
export function recordFacts(
  { facts, beside }: KeptFacts,
  known: RequestFacts = {},
): Pick<StepSpec, 'intent' | 'beside'> {
  if (facts.tools === known.tools && facts.contextTokens === known.contextTokens) return {}
  return { intent: { request: facts }, beside }
}

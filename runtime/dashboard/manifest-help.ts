import { html } from 'hono/html'
import { z } from 'zod'
import { manifest } from '../../shared/wire/runtime/manifest.ts'
import type { Html } from './page.ts'

interface Schema {
  type?: string
  enum?: readonly unknown[]
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  properties?: Readonly<Record<string, Schema>>
  items?: Schema
  anyOf?: readonly Schema[]
  allOf?: readonly Schema[]
  $ref?: string
}

/** What each member is for; the rest of the help is read off the schema. */
const WORDS: Readonly<Record<string, string>> = {
  systemPrompt: 'the first instructions of the model',
  model: 'auto, a capability alias such as chat-small, or provider/model',
  isolation: 'what foreign code of this agent must run in',
  limits: 'what one run may use',
  egress: 'hosts that tools may reach; none listed: none',
  tools: 'built-in tools, by name or as an object',
  connectors: 'a connector, or one action of it: slack or slack.post_message',
  mcpServers: 'MCP servers and which of their tools are visible',
  subAgents: 'agents that this one may call',
  inputSchema: 'JSON Schema that the input of a run must satisfy; “New run” makes a form of it',
  outputSchema: 'JSON Schema that the final answer must satisfy; the model is held to it as far as its provider can',
  outputRepairs: 'extra turns to make the output fit',
  retry: 'what happens after a transient failure',
  confidence: 'diverts steps to people when the agent is not sure',
  approvals: 'tools that wait for a person',
  anomalies: 'limits whose crossing is reported',
  session: 'how conversations are kept',
  entrypoint: 'a program in place of the model loop',
  files: 'put into the sandbox',
  secrets: 'put into the environment of the sandbox',
  privacy: 'what is kept, and how long',
}

let made: Html | undefined
let known: Member[] | undefined

/** A member of a manifest, for what completes its name. */
export interface Member {
  name: string
  about: string
  values: readonly string[]
  inside: readonly Member[]
}

/** The members in the order of the schema. */
export function manifestMembers(): readonly Member[] {
  known ??= membersOf(schemaOfManifest(), WORDS)
  return known
}

const MOST_DEPTH = 3

function membersOf(schema: Schema, words: Readonly<Record<string, string>> = {}, depth = 0): Member[] {
  if (depth > MOST_DEPTH) return []
  return Object.entries(propertiesOf(schema)).map(([name, member]) => ({
    name,
    about: words[name] ?? boundsOf(member),
    values: member.type === 'boolean' ? ['true', 'false'] : (member.enum ?? []).map(value => JSON.stringify(value)),
    inside: membersOf(insideOf(member), {}, depth + 1),
  }))
}

const insideOf = (member: Schema): Schema => (member.type === 'array' ? (member.items ?? {}) : member)

const schemaOfManifest = (): Schema => z.toJSONSchema(manifest, { io: 'input', unrepresentable: 'any' }) as Schema

/** Help for the editor: the members of a manifest with their bounds and defaults, as the schema has them. */
export function manifestHelp(): Html {
  made ??= table()
  return made
}

function table(): Html {
  const members = Object.entries(propertiesOf(schemaOfManifest()))
  return html`<details><summary>What a manifest can contain</summary><dl class="facts">${members.map(
    ([name, member]) =>
      html`<dt><code>${name}</code></dt><dd>${WORDS[name] ?? ''} <small>${boundsOf(member)}</small>${inner(member)}</dd>`,
  )}</dl></details>`
}

function inner(member: Schema): Html | string {
  const inside = Object.entries(propertiesOf(insideOf(member)))
  if (inside.length === 0) return ''
  return html`<ul>${inside.map(([name, one]) => html`<li><code>${name}</code> <small>${boundsOf(one)}</small></li>`)}</ul>`
}

function propertiesOf(schema: Schema): Readonly<Record<string, Schema>> {
  if (schema.properties !== undefined) return schema.properties
  for (const one of [...(schema.allOf ?? []), ...(schema.anyOf ?? [])]) if (one.properties) return one.properties
  return {}
}

function boundsOf({ type, enum: values, default: given, minimum, maximum, maxLength, maxItems }: Schema): string {
  const words = [
    values === undefined ? type : values.join(' | '),
    minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}` : undefined,
    maxLength === undefined ? undefined : `up to ${maxLength} characters`,
    maxItems === undefined ? undefined : `up to ${maxItems}`,
    given === undefined || typeof given === 'object' ? undefined : `default ${JSON.stringify(given)}`,
  ]
  return words.filter(word => word !== undefined).join(', ')
}

import type { RateRule } from '../definition.ts'
import type { Json } from './document.ts'

/** How an operation proves who asks. */
export type Scheme =
  | { kind: 'apiKey'; key: string; in: 'header' | 'query' | 'cookie'; name: string }
  | { kind: 'bearer'; key: string }
  | { kind: 'basic' }

export type ParameterStyle = 'simple' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject' | 'json'

export interface Parameter {
  /** What the argument is called. */
  argument: string
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  style: ParameterStyle
  explode: boolean
  schema: Json
}

export interface Operation {
  /** The action. */
  name: string
  about: string
  method: 'GET' | 'HEAD' | 'PUT' | 'DELETE' | 'POST' | 'PATCH'
  /** With `{name}` for each parameter of the path. */
  path: string
  effect: 'read' | 'idempotent' | 'once'
  /** Names of schemes; all of them are sent. */
  security: readonly string[]
  parameters: readonly Parameter[]
  body?: { required: boolean; contentType: string; schema: Json }
  /** JSON Pointer to the part of an answer that is the result. */
  result?: string
  /** The query parameter of the next page, and the JSON Pointer to its value; without one it stands in the Link header. */
  pages?: { parameter: string; next?: string }
}

/** What an install keeps of an OpenAPI document: the chosen operations, complete in themselves. */
export interface CompiledApi {
  title: string
  /** Absent where the document names none that is an address. */
  server?: string
  schemes: Readonly<Record<string, Scheme>>
  operations: readonly Operation[]
  /** Absent: the usual rule. */
  rate?: RateRule
  /** The operation that a test calls; absent where none can be called without arguments. */
  probe?: string
}

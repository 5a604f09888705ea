import type { GateDocument } from './gate-document.ts'
import type { ProcessRunner } from './process-runner.ts'
import type { RegexRunner } from './regex-runner.ts'
import type { GateAnswer } from './verdict.ts'

/** What this host lends to gates; a kind that needs what is missing is refused. */
export interface GateHost {
  readonly runProcess?: ProcessRunner
  readonly fetch?: GateFetch
  readonly functions?: Readonly<Record<string, FunctionGate>>
  readonly regexRunner?: RegexRunner
  /** Reads a variable, for `headers_env`. */
  readonly env?: (name: string) => string | undefined
}

export type GateFetch = (url: string, init: RequestInit) => Promise<Response>

/** A gate that the library's caller brings along; it should end when its signal aborts. */
export type FunctionGate = (
  input: GateDocument,
  options: { readonly signal: AbortSignal },
) => GateAnswer | Promise<GateAnswer>

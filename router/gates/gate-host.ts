import type { GateDocument } from './gate-document.ts'
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

/** One run of a program. The candidate travels on stdin and is never an argument (docs/spec/router.md §5.3). */
export interface ProcessJob {
  /** The program and its arguments; no shell reads them. */
  readonly cmd: readonly string[]
  readonly cwd: string | null
  /** Set in the otherwise clean environment. */
  readonly env: Readonly<Record<string, string>>
  /** Names of the host's variables that are passed on. */
  readonly envPass: readonly string[]
  readonly stdin: Uint8Array
  /** More than this ends the run. */
  readonly stdoutLimit: number
  /** More than this is read and thrown away. */
  readonly stderrLimit: number
}

export type ProcessOutcome =
  | {
      readonly kind: 'exited'
      /** null when a signal ended it. */
      readonly code: number | null
      readonly stdout: Uint8Array
      readonly stderr: Uint8Array
    }
  | { readonly kind: 'spawn_failed' }
  | { readonly kind: 'output_too_large' }
  /** Ended because of the signal. */
  | { readonly kind: 'aborted' }

/** Resolves when nothing of the run is left: no process of its group, no folder. */
export type ProcessRunner = (job: ProcessJob, signal: AbortSignal) => Promise<ProcessOutcome>

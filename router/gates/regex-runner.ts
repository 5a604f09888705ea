import type { SchemaDraft } from '../config/json-schema.ts'

/**
 * Work whose time cannot be bounded beforehand: a pattern can take exponential time, and so can a schema with patterns,
 * formats or references. It runs where it can be stopped from outside, which is a worker thread.
 */
export type RegexJob =
  | {
      readonly kind: 'patterns'
      readonly text: string
      readonly must: readonly string[]
      readonly mustNot: readonly string[]
      readonly flags: string
    }
  | {
      readonly kind: 'schema'
      /** The schema and the value as JSON texts: the worker keeps a compiled schema by its text. */
      readonly schema: string
      readonly draft: SchemaDraft
      readonly value: string
    }

export type RegexAnswer =
  | { readonly verdict: 'pass' }
  | { readonly verdict: 'fail'; readonly reason: string }
  /** The job could not be done, for example because the schema goes in circles. */
  | { readonly verdict: 'error'; readonly reason: string }

export interface RegexRunner {
  /** Rejects with the signal's reason as soon as it aborts, and stops the work. Tenants that wait take turns. */
  run(job: RegexJob, signal: AbortSignal, tenantId?: string): Promise<RegexAnswer>
}

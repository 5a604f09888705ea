import type { AdaptReason } from '../../wire/router/trace.ts'

/** One change of a request, in words that hold nothing of what the client wrote beside numbers and the names of settings. */
export interface Change {
  readonly path: string
  readonly from?: string
  /** null where it is left out. */
  readonly to: string | null
  readonly why: AdaptReason
}

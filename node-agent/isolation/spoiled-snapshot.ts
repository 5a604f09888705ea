import { SealedPiecesError } from '../sealed-pieces.ts'
import { IsolationError } from './driver.ts'

/** A machine that was sealed and does not open is a start that failed, with the reason. */
export function asStartFailure(cause: unknown): unknown {
  if (!(cause instanceof SealedPiecesError)) return cause
  return new IsolationError('start_failed', `The machine is not what was written down: ${cause.message}.`, { cause })
}

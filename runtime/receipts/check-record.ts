import { canonicalize } from '../../shared/sign/jcs.ts'
import type { ReceiptPayload, VerifyReason } from '../../shared/wire/runtime/receipt.ts'
import type { Statement } from './payload.ts'

/** Whether the run in the store is still the one that was signed; the journal is checked by its chain. */
export function checkRecord(
  payload: ReceiptPayload,
  stored: Statement,
  /** What it was given is gone by the rule of its agent, and there is nothing to hold against the hash. */
  inputDropped = false,
): VerifyReason | undefined {
  if (!inputDropped && payload.inputHash !== stored.inputHash) return 'input_hash_mismatch'
  if (payload.outputHash !== stored.outputHash) return 'output_hash_mismatch'
  const { inputHash: _i, outputHash: _o, journalHash: _j, eventCount: _e, ...now } = stored
  const { issuedAt: _a, keyId: _k, inputHash: _x, outputHash: _y, journalHash: _z, eventCount: _c, ...then } = payload
  return canonicalize(now) === canonicalize(then) ? undefined : 'record_mismatch'
}

import { utf8Bytes } from '../../shared/dialects/text-pieces.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import { StepFailure } from './failure.ts'

/** A single result beyond this fails its step: the journal is read back whole when a run is resumed. */
export const MAX_RESULT_BYTES = 8 * 1024 * 1024
/** One message with the most that a result may have, and room for what wraps it. */
export const MAX_MESSAGE_BYTES = MAX_RESULT_BYTES + 64 * 1024
const BLOB_FROM_BYTES = 256 * 1024

export function checkSize(name: string, output: unknown): void {
  if (isSmall(output)) return
  const text = JSON.stringify(output ?? null)
  if (text.length <= MAX_RESULT_BYTES / 3 || utf8Bytes(text) <= MAX_RESULT_BYTES) return
  throw new StepFailure('result_too_large', `${name} gave more than ${MAX_RESULT_BYTES} bytes`)
}

/** Large outputs stand beside the journal, named by their digest, which is what the chain then covers. */
export function place(output: unknown, sha256: Sha256, always = false) {
  const isObject = typeof output === 'object' && output !== null
  // A number or a yes says nothing of what was said. What looks like a reference would be read as one.
  const isBeside = (always && (typeof output === 'string' || isObject)) || (isObject && '$blob' in output)
  if (!isBeside && isSmall(output)) return { kept: output, blobs: [] }
  const text = isObject || typeof output === 'string' ? canonicalize(output) : ''
  if (!isBeside && text.length * 3 <= BLOB_FROM_BYTES) return { kept: output, blobs: [] }
  const content = utf8(text)
  if (!isBeside && content.length <= BLOB_FROM_BYTES) return { kept: output, blobs: [] }
  const digest = sha256Hex(content, sha256)
  const mediaType = 'application/json'
  return {
    kept: { $blob: { sha256: digest, bytes: content.length, mediaType } },
    blobs: [{ sha256: digest, mediaType, content }],
  }
}

/** Most outputs are a few members long, and seen to be so without a text of them. */
function isSmall(output: unknown): boolean {
  return room(output, BLOB_FROM_BYTES) > 0
}

/** An escaped character, or one of two units in UTF-8, takes at most so many bytes for each unit. */
const UNIT_BYTES = 6
const SCALAR_BYTES = 32

/** What is left of `bytes` after the JSON text of a value, taken at its longest; at most 0 where it is too long or has a form of its own. */
function room(value: unknown, bytes: number): number {
  if (typeof value === 'string') return bytes - UNIT_BYTES * value.length - SCALAR_BYTES
  if (typeof value === 'number' || typeof value === 'boolean' || value == null) return bytes - SCALAR_BYTES
  if (typeof value !== 'object' || 'toJSON' in value) return 0
  let left = bytes - SCALAR_BYTES
  // A third of the time that `for … in` takes (measured).
  for (const key of Object.keys(value)) {
    if (left <= 0) return 0
    left = room((value as Record<string, unknown>)[key], left - UNIT_BYTES * key.length - SCALAR_BYTES)
  }
  return left
}

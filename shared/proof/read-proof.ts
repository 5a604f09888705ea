import { readJson, rebuilt } from '../json/read-json.ts'

export type ReadFault = 'not_json' | 'duplicate_member' | 'number_form' | 'lone_surrogate'

/** A text of which two readers may read two things, so that no signature over it says which was meant. */
export class ProofTextError extends Error {
  override name = 'ProofTextError'
  readonly reason: ReadFault
  constructor(reason: ReadFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

/**
 * Reads the JSON text of a proof (docs/spec/proof.md, "Strict reading"): a name stands once in its object, a number is written as RFC 8785
 * writes it, and no text holds half of a surrogate pair. Then every reader that takes the text at all reads the same.
 */
export function readProof(text: string): unknown {
  let value: unknown
  try {
    value = readJson(text)
  } catch (cause) {
    throw new ProofTextError('not_json', 'it is not JSON', { cause })
  }
  if (!saysItself(value, text)) rebuilt(text, { member: once, scalar: unambiguous })
  return value
}

/** The same of bytes; what is not UTF-8 is no JSON. */
export function readProofBytes(bytes: Uint8Array): unknown {
  return readProof(proofText(bytes))
}

export function proofText(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new ProofTextError('not_json', 'it is not UTF-8', { cause })
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** An escape that may be half of a pair. */
const HALF = /\\u[dD][89a-fA-F]/

/** What the engine writes for the value is the text: nothing was lost in reading it. Most proofs come as they were written. */
function saysItself(value: unknown, text: string): boolean {
  if (HALF.test(text) || !text.isWellFormed()) return false
  try {
    return JSON.stringify(value) === text.trim()
  } catch {
    // Nested deeper than the engine writes.
    return false
  }
}

function once(object: object, name: string): void {
  if (Object.hasOwn(object, name))
    throw new ProofTextError('duplicate_member', `the member ${JSON.stringify(name)} stands twice in one object`)
}

function unambiguous(value: unknown, written: string): void {
  if (typeof value === 'string' && !value.isWellFormed())
    throw new ProofTextError('lone_surrogate', `the text ${written.slice(0, 40)} holds half of a surrogate pair`)
  if (typeof value === 'number' && String(value) !== written)
    throw new ProofTextError('number_form', `the number ${written.slice(0, 40)} is not written as RFC 8785 writes it`)
}

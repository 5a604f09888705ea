/** Longest text of a vendor that an error carries (docs/spec/runtime.md §8). */
export const MOST_CHARACTERS = 500

export interface VendorFault {
  status?: number | undefined
  /** Redacted, in the vendor's words where it had any. */
  message: string
  /** The vendor does not take these credentials any more. */
  refused?: boolean
  /** The vendor may be asked again a little later. */
  later?: boolean
  retryAfterMs?: number | undefined
  /** The vendor could not be reached, or did not answer in time. */
  unreachable?: boolean
  /** Certainly nothing was done: the vendor said no, or was never asked. */
  declined?: boolean
  cause?: unknown
}

/** The vendor did not do what it was asked. */
export class VendorFailure extends Error {
  override name = 'VendorFailure'
  readonly status: number | undefined
  readonly refused: boolean
  readonly later: boolean
  readonly unreachable: boolean
  readonly declined: boolean
  readonly retryAfterMs: number | undefined

  constructor({ status, message, refused, later, retryAfterMs, unreachable, declined, cause }: VendorFault) {
    super(message.slice(0, MOST_CHARACTERS).toWellFormed(), { cause })
    this.status = status
    this.refused = refused ?? false
    this.later = later ?? false
    this.unreachable = unreachable ?? false
    this.declined = declined ?? false
    this.retryAfterMs = retryAfterMs
  }
}

/** The same failure of a call that certainly changed nothing. */
export function asDeclined(failure: VendorFailure): VendorFailure {
  const { status, message, refused, later, retryAfterMs, unreachable, cause } = failure
  return new VendorFailure({ status, message, refused, later, retryAfterMs, unreachable, cause, declined: true })
}

/** A failure in one sentence, for a call that would do something twice when it is repeated. */
export function inWords({ message, declined }: VendorFailure, effect: string): string {
  const doubt = effect === 'once' && !declined ? '; whether it was done is not known' : ''
  return `${message.slice(0, MOST_CHARACTERS - doubt.length)}${doubt}`
}

/** The sentence in an error body, wherever this vendor puts it. */
export function messageIn(body: unknown): string | undefined {
  if (typeof body === 'string') return body === '' ? undefined : body
  if (Array.isArray(body)) return messageIn(body[0])
  if (typeof body !== 'object' || body === null) return undefined
  const { message, error_description, description, detail, errorMessages, error, errors } = body as Record<
    string,
    unknown
  >
  for (const one of [message, error_description, description, detail, errorMessages, error, errors]) {
    const found = messageIn(one)
    if (found !== undefined) return found
  }
  // Jira names the field that is wrong as the key.
  const [[name, first] = []] = typeof errors === 'object' && errors !== null ? Object.entries(errors) : []
  return typeof first === 'string' ? `${name}: ${first}` : undefined
}

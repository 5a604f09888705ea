import type { Detail } from '../../shared/wire/issues.ts'
import { sentence } from '../../shared/wire/issues.ts'

/** The caller's arguments do not fit; nothing was sent to the vendor. */
export class ArgumentError extends Error {
  override name = 'ArgumentError'
  readonly details: readonly Detail[]
  constructor(details: readonly Detail[]) {
    super(details.length > 1 ? details.map(one => sentence([one])).join('; ') : sentence(details))
    this.details = details
  }
}

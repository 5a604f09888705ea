/** A program has used up what it may have. */
export class LimitMet extends Error {
  readonly limit: 'output' | 'disk'
  constructor(limit: 'output' | 'disk') {
    super(`the limit of ${limit} is met`)
    this.limit = limit
  }
}

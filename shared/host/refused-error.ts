/** What a command was asked for and will not do, with what to do instead. */
export class RefusedError extends Error {
  override name = 'RefusedError'
}

export type DbOpenProblem =
  | 'missing' // no file (or no folder) at that path, or no server at that address
  | 'not_a_file' // the path is a folder or a device
  | 'no_permission' // the account of this process may not read or write there, or the server refused the token
  | 'not_a_database' // the file holds something else, or is damaged
  | 'busy' // another process kept the file locked
  | 'bad_url' // not an address this program can open

/** A database that could not be opened. The message is one sentence for the person at the terminal: print it without a stack. */
export class DbOpenError extends Error {
  override name = 'DbOpenError'
  readonly problem: DbOpenProblem

  constructor(problem: DbOpenProblem, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.problem = problem
  }
}

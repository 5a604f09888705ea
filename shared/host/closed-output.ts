/** What a shell reports of a program that wrote to a pipe without a reader: 128 and the number of SIGPIPE. */
export const CLOSED_OUTPUT = 141

/**
 * Ends a command whose reader has gone (`… | head -3`), with a code that claims no success. A service goes on, also where the disk of its log
 * is full: its output is its log and its greeting, and neither is worth a run.
 */
export function endWithReader({ isService }: { isService: boolean }): void {
  process.stdout.on('error', error => {
    if (isService) return
    if (!isClosed(error)) throw error
    process.exit(CLOSED_OUTPUT)
  })
  process.stderr.on('error', error => {
    if (!isService && !isClosed(error)) throw error
  })
}

const isClosed = (error: NodeJS.ErrnoException): boolean =>
  error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED'

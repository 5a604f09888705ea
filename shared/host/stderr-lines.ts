import { textLine } from '../log/text-line.ts'

export type LogFormat = 'json' | 'text'

/**
 * Writes lines to standard error, all of one turn of the event loop at once: a write there holds the process up. Text where a person
 * reads it, which is a terminal, else JSON; a format that was asked for holds.
 */
export function stderrLines(format: LogFormat = process.stderr.isTTY ? 'text' : 'json'): (line: string) => void {
  let waiting = ''
  let isDue = false
  const flush = (): void => {
    isDue = false
    const lines = waiting
    waiting = ''
    if (lines !== '') process.stderr.write(lines)
  }
  process.on('exit', flush)
  return line => {
    waiting += `${format === 'text' ? textLine(line) : line}\n`
    if (isDue) return
    isDue = true
    setImmediate(flush)
  }
}

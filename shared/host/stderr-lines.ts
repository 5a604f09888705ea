import { readJson } from '../json/read-json.ts'
import { visible } from '../log/log.ts'

export type LogFormat = 'json' | 'text'

/**
 * Writes lines to standard error, all of one turn of the event loop at once: a write there holds the process up. Text where a person
 * reads it, which is a terminal, else JSON; a format that was asked for holds.
 */
export function stderrLines(format: LogFormat = process.stderr.isTTY ? 'text' : 'json'): (line: string) => void {
  return line => {
    const text = format === 'text' ? textLine(line) : line
    if (waiting === '') {
      process.once('exit', flush)
      setImmediate(flush)
    }
    waiting += `${text}\n`
  }
}

/** Of all logs of the process. */
let waiting = ''

function flush(): void {
  process.off('exit', flush)
  const lines = waiting
  waiting = ''
  if (lines !== '') process.stderr.write(lines)
}

const LEVEL_WIDTH = 5

/** A line of the log for a person: time of day, level, target, message, then the fields as `name=value`. */
export function textLine(json: string): string {
  const { time, level, target, message, ...fields } = readJson(json) as Record<string, unknown>
  const clock = String(time).slice(11, 23)
  const rest = Object.entries(fields).map(([name, value]) => `${name}=${shown(value)}`)
  const head = `${clock} ${String(level).toUpperCase().padEnd(LEVEL_WIDTH)} ${String(target)}: ${visible(String(message))}`
  return rest.length === 0 ? head : `${head}  ${rest.join(' ')}`
}

function shown(value: unknown): string {
  if (typeof value === 'string' && /^[\w./:@+-]+$/.test(value)) return value
  return visible(JSON.stringify(value))
}

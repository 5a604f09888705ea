import type { Definition } from 'clipanion'

/** The framework writes `#0` where an option takes a value; as wide as it was, so that columns stay. */
export const withoutPlaces = (help: string): string => help.replace(/#\d(?=[\]>])/g, '…').replace(/#\d/g, '… ')

/** Help for words that only begin commands, such as `runtime keys --help`; undefined where there are no such commands. */
export function groupHelp(
  program: string,
  argv: readonly string[],
  definitions: readonly Definition[],
): string | undefined {
  const last = argv.at(-1)
  if (last !== '--help' && last !== '-h') return undefined
  const words = argv.slice(0, -1).filter(word => !word.startsWith('-'))
  if (words.length === 0 || words.length !== argv.length - 1) return undefined
  const beginning = [program, ...words].join(' ')
  if (definitions.some(({ path }) => path === beginning)) return undefined
  const found = definitions.filter(({ path }) => path.startsWith(`${beginning} `))
  if (found.length === 0) return undefined
  const width = Math.max(...found.map(({ path }) => path.length))
  const lines = found.map(({ path, description = '' }) => `  ${path.padEnd(width)}  ${description.trim()}`.trimEnd())
  return `${lines.join('\n')}\n\n--help behind any of them says more.\n`
}

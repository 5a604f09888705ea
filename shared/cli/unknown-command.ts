import type { Definition } from 'clipanion'
import { nearest } from '../wire/nearest.ts'

/**
 * What to tell of words that begin no command of a program; undefined where they do, and where there are none. A word that begins several
 * commands is answered with them.
 */
export function unknownCommand(
  program: string,
  argv: readonly string[],
  definitions: readonly Definition[],
): string | undefined {
  const end = argv.findIndex(word => word.startsWith('-'))
  const words = end < 0 ? argv : argv.slice(0, end)
  const paths = definitions.map(({ path }) => path.replace(`${program} `, '')).filter(path => !path.startsWith('-'))
  const begins = (path: string) => path.split(' ').every((part, index) => words[index] === part)
  if (words.length === 0 || paths.some(begins)) return undefined
  const group = paths.filter(path => path.startsWith(`${words[0]} `))
  const meant = nearest(words.slice(0, 2).join(' '), paths) ?? nearest(words[0]!, paths)
  const hint =
    meant !== undefined
      ? `did you mean "${program} ${meant}"?`
      : group.length > 0
        ? `there are ${group.map(path => `"${program} ${path}"`).join(', ')}`
        : `"${program} --help" lists them all`
  return `${program} has no command "${words.slice(0, group.length > 0 ? 2 : 1).join(' ')}": ${hint}\n`
}

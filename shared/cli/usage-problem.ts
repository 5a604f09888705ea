import type { Definition } from 'clipanion'
import { nearest } from '../wire/nearest.ts'
import { commandTree, type KnownOption } from './command-tree.ts'
import { usageOf } from './help.ts'

/** What is wrong with a command line that does not read, and what to type instead; undefined where nothing of it is known. */
export function usageProblem(
  program: string,
  argv: readonly string[],
  definitions: readonly Definition[],
): string | undefined {
  const command = commandOf(program, argv, definitions)
  if (command === undefined) return unknownCommand(program, argv, definitions)
  const place = command.path.replace(`${program} `, '')
  const options = commandTree(program, definitions).find(one => one.at === place)?.options ?? []
  const words = argv.slice(place.split(' ').length)
  const problem = optionProblem(words, options) ?? argumentProblem(words, options, command)
  return problem && `${command.path} ${problem}\n`
}

/** The command that a line begins with; the longest that does. */
function commandOf(program: string, argv: readonly string[], definitions: readonly Definition[]) {
  return definitions
    .filter(({ path }) => path.startsWith(`${program} `))
    .filter(({ path }) =>
      path
        .split(' ')
        .slice(1)
        .every((word, index) => argv[index] === word),
    )
    .sort((a, b) => b.path.length - a.path.length)[0]
}

function optionProblem(words: readonly string[], options: readonly KnownOption[]): string | undefined {
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    if (word === '--') return undefined
    if (!word.startsWith('-') || word === '-' || /^-\d/.test(word)) continue
    const name = word.split('=', 1)[0]!
    const known = options.find(one => one.names.includes(name))
    if (known === undefined) {
      const meant = nearest(
        name,
        options.flatMap(one => one.names),
      )
      return `has no option ${name}: ${meant === undefined ? 'add --help to see what it takes' : `did you mean ${meant}?`}`
    }
    if (!known.takesValue || word.includes('=')) continue
    at++
    if (at >= words.length) return `needs a value behind ${name}`
  }
  return undefined
}

function argumentProblem(words: readonly string[], options: readonly KnownOption[], command: Definition) {
  const given: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    const known = options.find(one => one.names.includes(word))
    if (known?.takesValue) at++
    else if (!word.startsWith('-') || word === '-') given.push(word)
  }
  const needed = [...command.usage.matchAll(/<([^<>]+)>/g)].map(match => match[1]!)
  const missing = needed[given.length]
  const usage = `Usage: ${usageOf(command)}`
  if (missing !== undefined) return `needs <${missing}>. ${usage}`
  const without = command.options.find(one => one.required && !words.some(word => isOneOf(word, one.definition)))
  if (without !== undefined) return `needs ${without.definition.trim().split(/[ ,]/, 1)[0]}. ${usage}`
  const taken = [...command.usage.matchAll(/<[^<>]+>|\[[^[\]]+\]/g)].length
  const beyond = command.usage.includes('...') ? undefined : given[taken]
  return beyond === undefined ? `does not read like that. ${usage}` : `does not take "${beyond}". ${usage}`
}

/** Whether a word of the line gives the option that a definition such as `-t,--tenant #0` is of. */
function isOneOf(word: string, definition: string): boolean {
  return definition
    .split(/[ ,]/)
    .filter(name => name.startsWith('-'))
    .includes(word.split('=', 1)[0]!)
}

/** A word that begins several commands is answered with them. */
function unknownCommand(
  program: string,
  argv: readonly string[],
  definitions: readonly Definition[],
): string | undefined {
  const end = argv.findIndex(word => word.startsWith('-'))
  const words = end < 0 ? argv : argv.slice(0, end)
  const first = words[0]
  if (first === undefined) return undefined
  const paths = definitions.map(({ path }) => path.replace(`${program} `, '')).filter(path => !path.startsWith('-'))
  const group = paths.filter(path => path.startsWith(`${first} `))
  const meant = nearest(words.slice(0, 2).join(' '), paths) ?? nearest(first, paths)
  const hint =
    meant !== undefined
      ? `did you mean "${program} ${meant}"?`
      : group.length > 0
        ? `there are ${group.map(path => `"${program} ${path}"`).join(', ')}`
        : `"${program} help" lists them all`
  return `${program} has no command "${words.slice(0, group.length > 0 ? 2 : 1).join(' ')}": ${hint}\n`
}

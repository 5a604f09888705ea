import type { Definition } from 'clipanion'

export interface KnownOption {
  names: readonly string[]
  takesValue: boolean
  about: string
}

/** A place that a command line can be at: what may follow as a word, and which options hold there. */
export interface CommandNode {
  /** The words so far, without the program's name. */
  at: string
  words: readonly { word: string; about: string }[]
  options: readonly KnownOption[]
}

const HELP: KnownOption = { names: ['--help'], takesValue: false, about: 'Explain this command.' }

/** Every place of a program, from the definitions of its commands: the one list that its parser has as well. */
export function commandTree(program: string, definitions: readonly Definition[]): CommandNode[] {
  const words = new Map<string, Map<string, string>>([['', new Map()]])
  const options = new Map<string, KnownOption[]>()
  for (const { path, description = '', options: given } of definitions) {
    const parts = path.split(' ').slice(path.startsWith(`${program} `) ? 1 : 0)
    for (const [index, word] of parts.entries()) {
      const before = parts.slice(0, index).join(' ')
      const own = words.get(before) ?? new Map<string, string>()
      words.set(before, own)
      const last = index === parts.length - 1
      if (last || !own.has(word)) own.set(word, last ? oneLine(description) : `${word} …`)
    }
    options.set(parts.join(' '), [...given.map(toOption), HELP])
  }
  return [...new Set([...words.keys(), ...options.keys()])].sort().map(at => ({
    at,
    words: [...(words.get(at) ?? [])]
      .map(([word, about]) => ({ word, about }))
      .sort((a, b) => (a.word < b.word ? -1 : 1)),
    options: options.get(at) ?? (at === '' ? [HELP, VERSION] : [HELP]),
  }))
}

const VERSION: KnownOption = { names: ['--version'], takesValue: false, about: 'Say the version.' }

/** The framework writes an option as `-q,--quiet` or, with a value, `--url #0`. */
function toOption({ definition, description = '' }: Definition['options'][number]): KnownOption {
  const [names = '', ...values] = definition.trim().split(/\s+/)
  return { names: names.split(','), takesValue: values.length > 0, about: oneLine(description) }
}

function oneLine(text: string): string {
  return text.replaceAll('`', '').replace(/\s+/g, ' ').trim()
}

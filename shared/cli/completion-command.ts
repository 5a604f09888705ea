import { Command, Option, UsageError } from 'clipanion'
import { type CommandNode, commandTree, type KnownOption } from './command-tree.ts'

/** `completion`: every program has it, with what is registered there. */
export class CompletionCommand extends Command {
  static override paths = [['completion']]
  static override usage = Command.Usage({
    description: 'Print what makes a shell complete commands and options: bash, zsh or fish.',
    examples: [
      ['For bash, in ~/.bashrc', 'eval "$($0 completion bash)"'],
      ['For zsh, in ~/.zshrc after compinit', 'eval "$($0 completion zsh)"'],
      ['For fish, once', '$0 completion fish > ~/.config/fish/completions/$0.fish'],
    ],
  })

  shell = Option.String({ name: 'shell' })

  override async execute(): Promise<number> {
    const shell = SHELLS.find(one => one === this.shell)
    if (shell === undefined) throw new UsageError(`expected bash, zsh or fish, got "${this.shell}"`)
    const { binaryName } = this.cli
    const definitions = this.cli.definitions()
    this.context.stdout.write(completionScript(shell, binaryName, commandTree(binaryName, definitions)))
    return 0
  }
}

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** The lines that teach a shell to complete the words and options of a program. They ask the program nothing while one types. */
function completionScript(shell: Shell, program: string, places: readonly CommandNode[]): string {
  const own = program.replaceAll('-', '_')
  return { bash, zsh, fish }[shell](program, own, places)
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const names = (options: readonly KnownOption[]) => options.flatMap(one => one.names)
const withValue = (options: readonly KnownOption[]) => names(options.filter(one => one.takesValue))

/** The words so far that are commands; the same loop for bash and zsh, which count arrays from 0 and from 1. */
const walk = (places: readonly CommandNode[], line: string, first: number, end: string) => `
  local at="" before="" word i
  for ((i = ${first}; i < ${end}; i++)); do
    word="\${${line}[i]}"
    before="$word"
    case "$at $word" in
${places
  .filter(({ at }) => at !== '')
  .map(({ at }) => `      ${quoted(at.includes(' ') ? at : ` ${at}`)}) at="\${at:+$at }$word" ;;`)
  .join('\n')}
    esac
  done`

function bash(program: string, own: string, places: readonly CommandNode[]): string {
  return `# Completion of ${program} for bash: eval "$(${program} completion bash)" in ~/.bashrc
_${own}() {
  local now="\${COMP_WORDS[COMP_CWORD]}" words="" options="" values=""${walk(places, 'COMP_WORDS', 1, 'COMP_CWORD')}
  COMPREPLY=()
  case "$at" in
${places
  .map(
    ({ at, words, options }) =>
      `    ${quoted(at)}) words=${quoted(words.map(one => one.word).join(' '))} options=${quoted(names(options).join(' '))} values=${quoted(withValue(options).join(' '))} ;;`,
  )
  .join('\n')}
  esac
  # The value of an option and the argument of a command: names of files.
  [[ -n "$before" && " $values " == *" $before "* ]] && return
  [[ "$now" == -* ]] && words="$options"
  COMPREPLY=($(compgen -W "$words" -- "$now"))
}
complete -o default -F _${own} ${program}
`
}

/** `flags`, since `options` is zsh's own. */
function zsh(program: string, own: string, places: readonly CommandNode[]): string {
  const described = (entries: readonly (readonly [string, string])[]) =>
    entries.map(([word, about]) => quoted(`${word.replaceAll(':', '\\:')}:${about}`)).join(' ')
  return `#compdef ${program}
# Completion of ${program} for zsh: eval "$(${program} completion zsh)" in ~/.zshrc, after compinit
_${own}() {
  local -a subcommands flags values${walk(places, 'words', 2, 'CURRENT')}
  case "$at" in
${places
  .map(
    ({ at, words, options }) => `    ${quoted(at)})
      subcommands=(${described(words.map(one => [one.word, one.about]))})
      flags=(${described(options.flatMap(one => one.names.map(name => [name, one.about] as const)))})
      values=(${withValue(options).map(quoted).join(' ')}) ;;`,
  )
  .join('\n')}
  esac
  if (( \${values[(Ie)$before]} )); then _files
  elif [[ "$words[CURRENT]" == -* ]]; then _describe -o option flags
  elif (( $#subcommands )); then _describe command subcommands
  else _files
  fi
}
if [[ "$funcstack[1]" == "_${own}" ]]; then _${own} "$@"; else compdef _${own} ${program}; fi
`
}

function fish(program: string, own: string, places: readonly CommandNode[]): string {
  const at = (place: string) => `-n ${quoted(`__${own}_at ${quoted(place)}`)}`
  const lines = places.flatMap(({ at: place, words, options }) => [
    ...(words.length > 0 ? [`complete -c ${program} ${at(place)} -f`] : []),
    ...words.map(({ word, about }) => `complete -c ${program} ${at(place)} -a ${quoted(word)} -d ${quoted(about)}`),
    ...options.map(({ names: of, takesValue, about }) => {
      const spelled = of.map(name => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)).join(' ')
      return `complete -c ${program} ${at(place)} ${spelled}${takesValue ? ' -r -F' : ''} -d ${quoted(about)}`
    }),
  ])
  const known = places.map(place => place.at).filter(place => place !== '')
  return `# Completion of ${program} for fish: ${program} completion fish > ~/.config/fish/completions/${program}.fish
function __${own}_at
  set -l at
  for word in (commandline -opc)[2..]
    contains -- (string trim -- "$at $word") ${known.map(quoted).join(' ')}; and set at (string trim -- "$at $word")
  end
  test "$at" = "$argv"
end
${lines.join('\n')}
`
}

import { Command, Option, UsageError } from 'clipanion'
import { commandTree } from './command-tree.ts'
import { completionScript, SHELLS } from './completion-script.ts'

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

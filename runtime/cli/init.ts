import { writeFile } from 'node:fs/promises'
import { Command, UsageError } from 'clipanion'

const STARTER = `# An agent. \`runtime agents apply helper.yaml\` publishes it; docs/spec/runtime.md (Manifest) has every member, as does /docs of the runtime.
name: helper
description: Answers in a sentence or two.
manifest:
  # Needs no key and repeats its prompt. Another model, such as anthropic/claude-sonnet-4-5, needs the key of its provider.
  model: demo/echo
  systemPrompt: Answer in a sentence or two.
`

/** `runtime init`: a first agent in a file. */
export class InitCommand extends Command {
  static override paths = [['init']]
  static override usage = Command.Usage({
    description: 'Write a first agent into helper.yaml, to change and to publish.',
    details: 'The agent needs no provider key. A file that exists is not changed.',
  })

  override async execute(): Promise<number> {
    const { stdout } = this.context
    try {
      await writeFile('helper.yaml', STARTER, { flag: 'wx' })
    } catch (error) {
      const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST'
      throw new UsageError(isThere ? 'helper.yaml is there already' : `helper.yaml: ${(error as Error).message}`)
    }
    stdout.write(
      [
        'helper.yaml is written. With a runtime that listens (`runtime serve`):',
        '  runtime agents apply helper.yaml',
        '  runtime run helper "Hello"',
        '',
      ].join('\n'),
    )
    return 0
  }
}

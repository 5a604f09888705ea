import { Command, Option } from 'clipanion'

/** `router launch <agent>`: one program comes through the router, and nothing else changes. */
export class LaunchCommand extends Command {
  static override paths = [['launch']]
  static override usage = Command.Usage({
    description: 'Run a program with the base addresses of the router, for this process only.',
    details: `
      The router is the one at ROUTER_BIND, else the one that onboard started, else the one at 127.0.0.1:8080 or, beside a runtime, at
      8090. Arguments after -- go to the program, and its exit code is passed on. OpenCode gets the address in OPENCODE_CONFIG_CONTENT,
      which it merges over its own config.
    `,
    examples: [
      ['An agent', '$0 launch claude'],
      ['With arguments of its own', '$0 launch codex -- exec "say hello"'],
    ],
  })

  agent = Option.String({ required: true })
  args = Option.Proxy()

  override async execute(): Promise<number> {
    const { launch } = await import('../host/launch.ts')
    const { env, stderr } = this.context
    const [first, ...rest] = this.args
    const ended = await launch({ vars: env, agent: this.agent, args: first === '--' ? rest : this.args })
    if (ended.failure !== undefined) stderr.write(ended.failure + '\n')
    return ended.code
  }
}

import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'

/** `router modes`: the routing modes with what they mean. */
export class ModesCommand extends Command {
  static override paths = [['modes']]
  static override usage = Command.Usage({
    description: 'List the routing modes with their settings.',
    details: 'The settings are those of the config (ROUTER_CONFIG or --config), else the defaults.',
    examples: [['As JSON', '$0 modes --json']],
  })

  config = Option.String('--config', { description: 'Routing config (ROUTER_CONFIG).' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    const { routingConfig } = await import('./routing-config.ts')
    const { describeModes } = await import('../policy/knobs.ts')
    const { env, stdout } = this.context
    const { config } = await routingConfig({ ...env, ...(this.config !== undefined && { ROUTER_CONFIG: this.config }) })
    const modes = describeModes(config.learning)
    if (this.json) {
      stdout.write(jsonText({ modes }) + '\n')
      return 0
    }
    for (const { name, description, knobs } of modes) {
      const settings = Object.entries(knobs).map(([knob, value]) => `${knob} ${value}`)
      stdout.write(`${name.padEnd(9)} ${description}\n${' '.repeat(10)}${settings.join(', ')}\n`)
    }
    return 0
  }
}

import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'

/** `router doctor`: what is in order and what is not. */
export class DoctorCommand extends Command {
  static override paths = [['doctor']]
  static override usage = Command.Usage({
    description: 'Check config, prices, keys, gate programs, store, clock and base addresses.',
    details: `
      Changes nothing and calls no host. With --probe it also asks the providers, the running router and the base addresses of this shell.
      Exit code 1: a check failed.
    `,
    examples: [['Also ask the network', '$0 doctor --probe']],
  })

  config = Option.String('--config', { description: 'Routing config (ROUTER_CONFIG).' })
  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  probe = Option.Boolean('--probe', false, { description: 'Also ask providers and routers.' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    const { examine } = await import('./examine.ts')
    const vars = {
      ...this.context.env,
      ...(this.config !== undefined && { ROUTER_CONFIG: this.config }),
      ...(this.db !== undefined && { ROUTER_DB: this.db }),
    }
    const checks = await examine(vars, { probe: this.probe })
    const ok = checks.every(check => check.ok)
    if (this.json) this.context.stdout.write(jsonText({ ok, checks }) + '\n')
    else for (const one of checks) this.context.stdout.write(`${one.ok ? 'ok  ' : 'FAIL'} ${one.name}: ${one.detail}\n`)
    return ok ? 0 : 1
  }
}

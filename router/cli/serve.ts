import { Command, Option } from 'clipanion'
import type { Service } from '../../shared/host/serve.ts'

/** `router serve`: the proxy in the foreground, until it gets a signal to stop. */
export class ServeCommand extends Command {
  static override paths = [['serve']]
  static override usage = Command.Usage({
    description: 'Run the proxy until SIGTERM or SIGINT.',
    details: `
      Listens on ROUTER_BIND (127.0.0.1:8080) and keeps its traces in ROUTER_DB (router.db).
      On SIGTERM or SIGINT it stops accepting, lets open requests finish for ROUTER_DRAIN_SECONDS (30) and exits 0;
      a second signal exits at once.

      With --processes it answers in as many processes, and one more writes receipts and keeps budgets. SIGUSR2 then
      replaces all of them, one after the other, without a failed call.
    `,
    examples: [
      ['Run with the defaults', '$0 serve'],
      ['Listen elsewhere', '$0 serve --bind 127.0.0.1:9000'],
      ['Use all cores', '$0 serve --processes auto'],
      ['Route by a config', '$0 serve --config router.toml'],
    ],
  })

  bind = Option.String('--bind', { description: 'Listen address, host:port.' })
  config = Option.String('--config', { description: 'Routing config, a TOML file.' })
  mode = Option.String('--mode', { description: 'observe or enforce: what routes without a mode of their own do.' })
  db = Option.String('--db', { description: 'Trace store: a path, or the address of a libSQL server.' })
  processes = Option.String('--processes', {
    description: 'How many processes answer: auto, or a number from 1 to 99.',
  })

  override async execute(): Promise<number> {
    const { untilSignal } = await import('../../shared/host/until-signal.ts')
    const stop = untilSignal()
    const flags = {
      ROUTER_BIND: this.bind,
      ROUTER_CONFIG: this.config,
      ROUTER_MODE: this.mode,
      ROUTER_DB: this.db,
      ROUTER_PROCESSES: this.processes,
    }
    const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
    const vars = { ...this.context.env, ...given }
    const service = await started(vars)
    const mode = vars.ROUTER_MODE || 'observe'
    const routes = vars.ROUTER_CONFIG ? `, except on the routes of ${vars.ROUTER_CONFIG}` : ''
    this.context.stdout.write(`router   ${service.origin}   ${mode}${routes}\n`)
    await stop
    await service.close()
    return 0
  }
}

async function started(vars: Record<string, string | undefined>): Promise<Service> {
  if ((vars.ROUTER_PROCESSES || '1') !== '1') {
    const { serveConfigured } = await import('../host/processes/serve-configured.ts')
    return serveConfigured(vars)
  }
  const { serveRouter } = await import('../host/node.ts')
  return serveRouter(vars)
}

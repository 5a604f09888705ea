import { Command, Option } from 'clipanion'
import { isKnownFault } from '../../shared/host/known-fault.ts'

/** `router serve`: the proxy in the foreground, until it is told to stop. */
export class ServeCommand extends Command {
  static override paths = [['serve']]
  static override usage = Command.Usage({
    description: 'Run the proxy until SIGTERM or SIGINT.',
    details: `
      Listens on ROUTER_BIND (127.0.0.1:8080) and keeps its traces in ROUTER_DB (router.db).
      On SIGTERM or SIGINT it stops accepting, lets open requests finish for ROUTER_DRAIN_SECONDS (30) and exits 0;
      a second signal exits at once.
    `,
    examples: [
      ['Run with the defaults', '$0 serve'],
      ['Listen elsewhere', '$0 serve --bind 127.0.0.1:9000'],
    ],
  })

  bind = Option.String('--bind', { description: 'Listen address, host:port.' })
  db = Option.String('--db', { description: 'Trace store: a path, or the address of a libSQL server.' })

  override async execute(): Promise<number> {
    const { serveRouter } = await import('../host/node.ts')
    const { untilSignal } = await import('../../shared/host/until-signal.ts')
    const stop = untilSignal()
    try {
      const service = await serveRouter({
        ...this.context.env,
        ...(this.bind !== undefined && { ROUTER_BIND: this.bind }),
        ...(this.db !== undefined && { ROUTER_DB: this.db }),
      })
      this.context.stdout.write(`router   ${service.origin}\n`)
      await stop
      await service.close()
      return 0
    } catch (error) {
      if (!isKnownFault(error)) throw error
      this.context.stderr.write(error.message + '\n')
      return 1
    }
  }
}

import { Command, Option } from 'clipanion'

/** `runtime serve`: the service in the foreground, until it gets a signal to stop. */
export class ServeCommand extends Command {
  static override paths = [['serve']]
  static override usage = Command.Usage({
    description: 'Run the agent runtime until SIGTERM or SIGINT.',
    details: `
      Listens on PLATFORM_BIND (localhost:8080) and keeps its data in PLATFORM_DATA_DIR (./data).
      On SIGTERM or SIGINT it refuses new work with 503, lets open steps and requests finish for PLATFORM_DRAIN_TIMEOUT (30s) and exits 0;
      a second signal exits at once.

      With --processes it answers in as many processes, each a control plane over the same libSQL server or shards. SIGUSR2
      then replaces them, one after the other, without a failed call.
    `,
    examples: [
      ['Run with the defaults', '$0 serve'],
      ['Run together with the router on 127.0.0.1:8090', '$0 serve --with-router'],
      ['Use two processes over a libSQL server', 'PLATFORM_DATABASE_URL=http://store:8080 $0 serve --processes auto'],
      ['Listen elsewhere', 'PLATFORM_BIND=127.0.0.1:9000 $0 serve'],
    ],
  })

  withRouter = Option.Boolean('--with-router', false, {
    description: 'Also run the cost-routing proxy in this process, on ROUTER_BIND or 127.0.0.1:8090.',
  })

  processes = Option.String('--processes', {
    description: 'How many processes answer: auto, or a number from 1 to 4.',
  })

  override async execute(): Promise<number> {
    const { runServices } = await import('../host/services.ts')
    await runServices({
      vars: { ...this.context.env, ...(this.processes !== undefined && { PLATFORM_PROCESSES: this.processes }) },
      withRouter: this.withRouter,
      say: line => this.context.stdout.write(line + '\n'),
    })
    return 0
  }
}

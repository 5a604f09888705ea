import { Command } from 'clipanion'

/** `node-agent run`: the node, until it gets a signal to stop. */
export class RunCommand extends Command {
  static override paths = [['run'], Command.Default]
  static override usage = Command.Usage({
    description: 'Enrol with a control plane if necessary, and execute its runs until SIGTERM or SIGINT.',
    details: `
      Dials PLATFORM_CONTROL_URL and listens on nothing. The first start needs PLATFORM_ENROL_TOKEN, which works once. After that the
      node identifies itself by node.json in PLATFORM_DATA_DIR (./node-data), which no other account can read. Inputs, outputs and
      journals of runs stay in node.db beside it. On SIGTERM it takes no new work, lets open steps finish for PLATFORM_DRAIN_TIMEOUT
      (30s), sends its last reports and exits 0.
    `,
    examples: [
      ['The first start', 'PLATFORM_CONTROL_URL=https://control.example:8081 PLATFORM_ENROL_TOKEN=wb_node_… $0 run'],
    ],
  })

  override async execute(): Promise<number> {
    const { untilSignal } = await import('../../shared/host/until-signal.ts')
    const { runNode } = await import('../run.ts')
    const say = (line: string) => this.context.stdout.write(line + '\n')
    const stop = untilSignal()
    const node = await runNode(this.context.env, { say })
    say(`node     ${node.nodeId}`)
    try {
      await Promise.race([stop, node.done])
    } finally {
      await node.close()
    }
    return 0
  }
}

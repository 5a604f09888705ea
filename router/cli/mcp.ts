import { Command, Option } from 'clipanion'

/** `router mcp`: the audit tools for an MCP client, over standard input and output. */
export class McpCommand extends Command {
  static override paths = [['mcp']]
  static override usage = Command.Usage({
    description: 'Serve the audit tools to an MCP client over standard input and output.',
    details: `
      Reads the trace store, whether or not the router runs; only submit_feedback writes to it. Standard output has only the protocol,
      standard error the log. It ends when its input does. Exit code 3: the store cannot be read.
    `,
    examples: [['One tenant of a store', '$0 mcp --db router.db --tenant acme']],
  })

  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  tenant = Option.String('--tenant', { description: 'Tenant whose traces are known (ROUTER_TENANT, default).' })

  override async execute(): Promise<number> {
    const { readEnv } = await import('../../shared/env/read-env.ts')
    const { createLog } = await import('../../shared/log/log.ts')
    const { routerEnv } = await import('../env.ts')
    const { auditSession } = await import('../host/audit-session.ts')
    const { serveAudit } = await import('../host/mcp-stdio.ts')
    const { routingConfig } = await import('./routing-config.ts')
    const { env: vars, stderr } = this.context
    const env = readEnv(routerEnv, { ...vars, ...(this.tenant !== undefined && { ROUTER_TENANT: this.tenant }) })
    const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: line => stderr.write(line + '\n') })
    const session = await auditSession({
      vars,
      address: this.db,
      tenant: env.ROUTER_TENANT,
      log: log.target('router.mcp'),
      config: async () => (await routingConfig(vars)).config,
    })
    try {
      await serveAudit(session)
    } finally {
      await session.close()
    }
    return 0
  }
}

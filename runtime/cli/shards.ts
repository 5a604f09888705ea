import { Command, Option } from 'clipanion'
import { styleOf } from '../../shared/cli/style.ts'
import { toTable } from '../../shared/cli/text-table.ts'

const WHERE = 'Works on the directory of PLATFORM_DIRECTORY_URL, also while control planes run.'

/** `runtime shards add`: one more database for tenants. */
export class ShardsAddCommand extends Command {
  static override paths = [['shards', 'add']]
  static override usage = Command.Usage({
    description: 'Add a database for tenants to the directory of shards.',
    details: `
      ${WHERE} The first shard may be the store of an installation: its tenants are taken into the directory. Each further one has to be
      empty; it gets the tables, and the keys that all shards have in common. New tenants are made in the open shard with the fewest.
      Control planes that run take a new shard up within seconds.
    `,
    examples: [['A namespace of a libSQL server, or a server of its own', '$0 shards add b --url http://store-b:8080']],
  })

  name = Option.String({ name: 'name' })
  url = Option.String('--url', { required: true, description: 'The address of the server, or a path.' })

  override async execute(): Promise<number> {
    const { addShard } = await import('../host/shard-admin.ts')
    const { tenants } = await addShard(this.context.env, { name: this.name, url: this.url })
    this.context.stdout.write(
      `shard ${this.name} is in the directory${tenants > 0 ? `, with ${tenants} tenants` : ''}\n`,
    )
    return 0
  }
}

/** `runtime shards list`: one line for each shard, and whether it answers. */
export class ShardsListCommand extends Command {
  static override paths = [['shards', 'list']]
  static override usage = Command.Usage({
    description: 'List the shards, their tenants and their runs.',
    details: `${WHERE} Exit code 1: one of them does not answer.`,
  })

  json = Option.Boolean('--json', false, { description: 'Print the list as JSON.' })

  override async execute(): Promise<number> {
    const { listShards } = await import('../host/shard-admin.ts')
    const { stdout, env } = this.context
    const all = await listShards(env)
    const rows = all.map(({ name, state, tenants, runs, problem, url }) => {
      return [name, state, String(tenants), runs === undefined ? '-' : String(runs), url, problem ?? 'answers']
    })
    if (this.json) stdout.write(JSON.stringify(all) + '\n')
    else stdout.write(toTable(['SHARD', 'STATE', 'TENANTS', 'RUNS', 'ADDRESS', 'IS'], rows, styleOf(stdout, env).dim))
    return all.some(({ problem }) => problem !== undefined) ? 1 : 0
  }
}

/** `runtime shards close`: no new tenants there. */
export class ShardsCloseCommand extends Command {
  static override paths = [['shards', 'close']]
  static override usage = Command.Usage({
    description: 'Make no new tenants in a shard; those that it has stay.',
    details: WHERE,
  })

  name = Option.String({ name: 'name' })

  override async execute(): Promise<number> {
    const { setShardState } = await import('../host/shard-admin.ts')
    await setShardState(this.context.env, this.name, 'closed')
    return 0
  }
}

/** `runtime shards open`: new tenants again. */
export class ShardsOpenCommand extends Command {
  static override paths = [['shards', 'open']]
  static override usage = Command.Usage({
    description: 'Make new tenants in a shard again that was closed.',
    details: WHERE,
  })

  name = Option.String({ name: 'name' })

  override async execute(): Promise<number> {
    const { setShardState } = await import('../host/shard-admin.ts')
    await setShardState(this.context.env, this.name, 'open')
    return 0
  }
}

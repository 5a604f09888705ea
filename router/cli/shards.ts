import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import { styleOf } from '../../shared/cli/style.ts'
import { toTable } from '../../shared/cli/text-table.ts'

const WHERE = 'Works on the directory of ROUTER_DIRECTORY_URL.'

/** `router shards add`: one more store for tenants. */
export class ShardsAddCommand extends Command {
  static override paths = [['shards', 'add']]
  static override usage = Command.Usage({
    description: 'Add a store for tenants to the directory of shards.',
    details: `
      ${WHERE} The first shard may be the store of an existing router: its tenants are entered in the directory. Each further one must be
      empty. A new tenant in ROUTER_KEYS goes to the open shard with the fewest tenants, at the next start of a router.
    `,
    examples: [
      ['A namespace of a libSQL server, or a server of its own', '$0 shards add b --url http://traces-b:8080'],
    ],
  })

  name = Option.String({ name: 'name' })
  url = Option.String('--url', { required: true, description: 'The address of the server, or a path.' })

  override async execute(): Promise<number> {
    const { addShard } = await import('../host/shards/shard-admin.ts')
    const tenants = await addShard(this.context.env, { name: this.name, url: this.url })
    const taken = tenants.length === 0 ? '' : `, with ${tenants.join(', ')}`
    this.context.stdout.write(`shard ${this.name} is in the directory${taken}\n`)
    return 0
  }
}

/** `router shards list`: one line for each shard, and whether it answers. */
export class ShardsListCommand extends Command {
  static override paths = [['shards', 'list']]
  static override usage = Command.Usage({
    description: 'List the shards and their tenants.',
    details: `${WHERE} Exit code 1: one of them does not answer.`,
  })

  json = Option.Boolean('--json', false, { description: 'Print the list as JSON.' })

  override async execute(): Promise<number> {
    const { listShards } = await import('../host/shards/shard-admin.ts')
    const { stdout, env } = this.context
    const all = await listShards(env)
    const rows = all.map(({ name, state, tenants, url, problem }) => {
      return [name, state, tenants.join(' ') || '-', url, problem ?? 'answers']
    })
    if (this.json) stdout.write(jsonText(all) + '\n')
    else stdout.write(toTable(['SHARD', 'STATE', 'TENANTS', 'ADDRESS', 'IS'], rows, styleOf(stdout, env).dim))
    return all.some(({ problem }) => problem !== undefined) ? 1 : 0
  }
}

/** `router shards close`: no new tenants there. */
export class ShardsCloseCommand extends Command {
  static override paths = [['shards', 'close']]
  static override usage = Command.Usage({
    description: 'Put no new tenants into a shard; those that it has stay.',
    details: WHERE,
  })

  name = Option.String({ name: 'name' })

  override async execute(): Promise<number> {
    const { setShardState } = await import('../host/shards/shard-admin.ts')
    await setShardState(this.context.env, this.name, 'closed')
    this.context.stdout.write(`shard ${this.name} gets no new tenants\n`)
    return 0
  }
}

/** `router shards open`: new tenants again. */
export class ShardsOpenCommand extends Command {
  static override paths = [['shards', 'open']]
  static override usage = Command.Usage({
    description: 'Put new tenants into a closed shard again.',
    details: WHERE,
  })

  name = Option.String({ name: 'name' })

  override async execute(): Promise<number> {
    const { setShardState } = await import('../host/shards/shard-admin.ts')
    await setShardState(this.context.env, this.name, 'open')
    this.context.stdout.write(`shard ${this.name} gets new tenants\n`)
    return 0
  }
}

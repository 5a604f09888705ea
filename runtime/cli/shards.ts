import { Command, Option, UsageError } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import { styleOf } from '../../shared/cli/style.ts'
import { counted, toTable } from '../../shared/cli/text-table.ts'

const WHERE = 'Works on the directory of PLATFORM_DIRECTORY_URL, also while control planes run.'

/** `runtime shards add`: one more database for tenants. */
export class ShardsAddCommand extends Command {
  static override paths = [['shards', 'add']]
  static override usage = Command.Usage({
    description: 'Add a database for tenants to the directory of shards.',
    details: `
      ${WHERE} The first shard may be the store of an existing installation: its tenants are entered in the directory. Each further one must
      be empty; it gets the tables and the keys that all shards share. New tenants go to the open shard with the fewest tenants.
      Running control planes serve a new shard within seconds.
    `,
    examples: [['A namespace of a libSQL server, or a server of its own', '$0 shards add b --url http://store-b:8080']],
  })

  name = Option.String({ name: 'name' })
  url = Option.String('--url', { required: true, description: 'The address of the server, or a path.' })

  override async execute(): Promise<number> {
    const { addShard } = await import('../host/shard-admin.ts')
    const { tenants } = await addShard(this.context.env, { name: this.name, url: this.url })
    this.context.stdout.write(
      `shard ${this.name} is in the directory${tenants > 0 ? `, with ${counted(tenants, 'tenant')}` : ''}\n`,
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
    if (this.json) stdout.write(jsonText(all) + '\n')
    else stdout.write(toTable(['SHARD', 'STATE', 'TENANTS', 'RUNS', 'ADDRESS', 'IS'], rows, styleOf(stdout, env).dim))
    return all.some(({ problem }) => problem !== undefined) ? 1 : 0
  }
}

/** `runtime shards close`: no new tenants there. */
export class ShardsCloseCommand extends Command {
  static override paths = [['shards', 'close']]
  static override usage = Command.Usage({
    description: 'Put no new tenants into a shard; those that it has stay.',
    details: WHERE,
  })

  name = Option.String({ name: 'name' })

  override async execute(): Promise<number> {
    const { setShardState } = await import('../host/shard-admin.ts')
    await setShardState(this.context.env, this.name, 'closed')
    this.context.stdout.write(`shard ${this.name} gets no new tenants\n`)
    return 0
  }
}

/** `runtime shards open`: new tenants again. */
export class ShardsOpenCommand extends Command {
  static override paths = [['shards', 'open']]
  static override usage = Command.Usage({
    description: 'Put new tenants into a closed shard again.',
    details: WHERE,
  })

  name = Option.String({ name: 'name' })

  override async execute(): Promise<number> {
    const { setShardState } = await import('../host/shard-admin.ts')
    await setShardState(this.context.env, this.name, 'open')
    this.context.stdout.write(`shard ${this.name} gets new tenants\n`)
    return 0
  }
}

/** `runtime shards move`: a tenant goes to another database while it works. */
export class ShardsMoveCommand extends Command {
  static override paths = [['shards', 'move']]
  static override usage = Command.Usage({
    description: 'Move a tenant to another shard while its runs go on.',
    details: `
      ${WHERE} Copies the tenant's data, then what changed meanwhile, and checks every receipt of the copy. For some seconds it refuses the
      tenant's writes with 503 and Retry-After while it copies the last changes and compares both sides. Then the directory names the
      new place. Runs go on there; nodes and event streams reconnect by themselves.

      If a move was interrupted, run it again to finish it. --back undoes it, as long as the directory does not name the new place. The
      old copy stays until --forget deletes it.
    `,
    examples: [
      ['Move a tenant', '$0 shards move 0190… --to b'],
      ['Undo a move that was interrupted', '$0 shards move 0190… --back'],
      ['Delete the old copy', '$0 shards move 0190… --forget'],
    ],
  })

  tenant = Option.String({ name: 'tenant' })
  to = Option.String('--to', { description: 'The shard to move it to.' })
  back = Option.Boolean('--back', false, { description: 'Undo a move that is not finished.' })
  forget = Option.Boolean('--forget', false, { description: 'Delete the old copy of a move that is finished.' })

  override async execute(): Promise<number> {
    const { stdout, env } = this.context
    if ([this.to !== undefined, this.back, this.forget].filter(Boolean).length !== 1) {
      throw new UsageError('say one of --to SHARD, --back and --forget')
    }
    const { dropMovedCopy, moveToShard, undoShardMove } = await import('../host/move-shard.ts')
    if (this.to !== undefined) {
      const reached = (_: string, said: string) => void stdout.write(`${said}\n`)
      const { fencedMs } = await moveToShard(env, { tenantId: this.tenant, to: this.to, reached })
      stdout.write(
        `moved; its writes were refused for ${(fencedMs / 1000 + 2.5).toFixed(1)} s. --forget deletes the old copy\n`,
      )
    } else if (this.back) {
      await undoShardMove(env, this.tenant)
      stdout.write('taken back: the tenant is where it was\n')
    } else {
      await dropMovedCopy(env, this.tenant)
      stdout.write('the old copy is deleted\n')
    }
    return 0
  }
}

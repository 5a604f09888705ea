import { Command, Option, UsageError } from 'clipanion'
import { styleOf } from '../../shared/cli/style.ts'
import { toTable } from '../../shared/cli/text-table.ts'
import { momentOf } from '../../shared/wire/bounds.ts'
import { isScope, scopes } from '../../shared/wire/runtime/scopes.ts'
import type { KeyChest } from '../host/store-keys.ts'

const WHERE = 'Works on the store of PLATFORM_DATABASE_URL or PLATFORM_DATA_DIR (./data), also while the runtime runs.'

/** What the three commands share: the store, opened for one act. */
abstract class KeysCommand extends Command {
  tenant = Option.String('--tenant', 'default', { description: 'The id of the tenant.' })

  protected async with(act: (chest: KeyChest) => Promise<void>, { create = false } = {}): Promise<number> {
    const { openKeyChest } = await import('../host/key-chest.ts')
    const chest = await openKeyChest(this.context.env, { create })
    try {
      await act(chest)
    } finally {
      chest.close()
    }
    return 0
  }

  protected say(line: string): void {
    this.context.stdout.write(line + '\n')
  }
}

/** `runtime keys create`: a key for an operator who can write the store anyway. */
export class KeysCreateCommand extends KeysCommand {
  static override paths = [['keys', 'create']]
  static override usage = Command.Usage({
    description: 'Create an API key and print it once.',
    details: `${WHERE} Without --scope the key may do everything inside its tenant.`,
    examples: [
      ['A key for the whole tenant', '$0 keys create --name laptop'],
      ['A key that starts runs', '$0 keys create --name ci --scope runs:execute --scope runs:read'],
      ['A key for a month', '$0 keys create --name audit --scope read --expires 2026-12-31T00:00:00Z'],
    ],
  })

  name = Option.String('--name', { required: true, description: 'What the key is for.' })
  scope = Option.Array('--scope', [], { description: `Any of ${scopes.join(', ')}.` })
  expires = Option.String('--expires', { description: 'An ISO 8601 time from which on the key is refused.' })

  override async execute(): Promise<number> {
    const wanted = this.scope.filter(isScope)
    const unknown = this.scope.find(scope => !isScope(scope))
    if (unknown !== undefined) throw new UsageError(`unknown scope '${unknown}': expected any of ${scopes.join(', ')}`)
    const expiresMs = this.expires === undefined ? undefined : momentOf(this.expires)
    if (expiresMs !== undefined && !(expiresMs > Date.now())) {
      throw new UsageError('--expires: expected a time in the future such as 2026-12-31T00:00:00Z')
    }
    return this.with(
      async chest => {
        const { key, rawKey } = await chest.create({
          tenantId: this.tenant,
          name: this.name,
          scopes: wanted,
          expiresMs,
        })
        this.context.stderr.write(`key ${key.id}; it is shown only now\n`)
        this.say(rawKey)
      },
      { create: true },
    )
  }
}

/** `runtime keys list`: one line for each key. */
export class KeysListCommand extends KeysCommand {
  static override paths = [['keys', 'list']]
  static override usage = Command.Usage({ description: 'List the API keys of a tenant.', details: WHERE })

  override execute(): Promise<number> {
    const { stdout, env } = this.context
    return this.with(async chest => {
      const rows = (await chest.list(this.tenant)).map(({ id, prefix, status, scopes, name, lastUsedAt }) => [
        id,
        `${prefix}…`,
        status,
        scopes.join(' ') || 'whole tenant',
        lastUsedAt ?? 'never used',
        name,
      ])
      const head = ['KEY', 'BEGINS', 'STATUS', 'SCOPES', 'LAST USED', 'NAME']
      stdout.write(toTable(head, rows, styleOf(stdout, env).dim))
    })
  }
}

/** `runtime keys revoke`: running services refuse the key within a second, and what a signing key has signed within a few. */
export class KeysRevokeCommand extends KeysCommand {
  static override paths = [['keys', 'revoke']]
  static override usage = Command.Usage({
    description: 'Revoke an API key, or a signing key that was stolen, by its id.',
    details: `
      ${WHERE} The id of a signing key is the \`keyId\` on its receipts. Revoking it invalidates everything it ever signed; if it was not
      stolen, retire it with \`runtime keys rotate\` instead. Publish \`/.well-known/platform-receipts\` again afterwards: an older copy does not show
      the revocation.
    `,
  })

  id = Option.String({ name: 'id' })

  override execute(): Promise<number> {
    return this.with(chest => chest.revoke(this.id))
  }
}

/** `runtime keys rotate`: old receipts go on verifying, with the key that signed them. */
export class KeysRotateCommand extends KeysCommand {
  static override paths = [['keys', 'rotate']]
  static override usage = Command.Usage({
    description: 'Make a new key for signing receipts, and retire the current one.',
    details: `${WHERE} A running service uses the new key within seconds. The old one stays listed for ever.`,
  })

  override execute(): Promise<number> {
    return this.with(async chest => this.say(await chest.rotateReceiptKey()))
  }
}

/** `runtime keys rotate-master`: what is sealed stays as it is, only its keys are wrapped anew. */
export class KeysRotateMasterCommand extends Command {
  static override paths = [['keys', 'rotate-master']]
  static override usage = Command.Usage({
    description: 'Replace the master key.',
    details: `
      Stop every service of the store first: a running service knows only the old key, so the rotation is refused while one holds its
      lease. A lease ends when its service stops, at once if its process is known to be dead, otherwise after PLATFORM_LEASE_TTL. The store
      of PLATFORM_DATABASE_URL or PLATFORM_DATA_DIR (./data) changes in one transaction. If a rotation was interrupted, run it again.

      Without --to, the new key is made in the data folder as master.key. The old one stays beside it under its id, because earlier
      backups need it. If the master key comes from PLATFORM_MASTER_KEY or PLATFORM_MASTER_KEY_FILE, --to is required: the file is read,
      or made if there is none. Then start the services with it.
    `,
    examples: [
      ['A key that the runtime made itself', '$0 keys rotate-master'],
      ['A key that you keep', 'PLATFORM_MASTER_KEY_FILE=old.key $0 keys rotate-master --to new.key'],
    ],
  })

  to = Option.String('--to', { description: 'The file with the new key: 32 bytes in base64.' })

  override async execute(): Promise<number> {
    const { rotateMaster } = await import('../host/rotate-master.ts')
    const { wrapped, keyFile, oldKeyFile } = await rotateMaster(this.context.env, { to: this.to })
    const keep = oldKeyFile === undefined ? '' : `; the old key is kept for old backups in ${oldKeyFile}`
    this.context.stdout.write(`${wrapped} keys wrapped anew; the master key is now in ${keyFile}${keep}\n`)
    return 0
  }
}

import { Command, Option } from 'clipanion'
import type { Db } from '../../shared/sql/db.ts'

/** What works on the file of a store, beside a router that uses it. */
abstract class StoreFileCommand extends Command {
  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })

  protected async withFile<T>(act: (db: Db) => Promise<T>): Promise<T> {
    const { openStoreToWrite } = await import('../host/open-store.ts')
    const { EnvError } = await import('../../shared/env/read-env.ts')
    const db = await openStoreToWrite(this.context.env, this.db)
    try {
      if (db.kind === 'remote') throw new EnvError('the store is on a server: do it with the server’s own means')
      return await act(db)
    } finally {
      await db.close()
    }
  }
}

/** `router backup`: a copy of the store. */
export class BackupCommand extends StoreFileCommand {
  static override paths = [['backup']]
  static override usage = Command.Usage({
    description: 'Write a copy of the store into one file.',
    details: `
      Works also while the router runs. The copy is of one moment and has everything that was committed by then, checkpoints and public
      keys included, but not the key that signs receipts. If there are several stores, name one with --db.
    `,
    examples: [['A backup of today, and whether it is whole', '$0 backup today.db && $0 verify --db today.db']],
  })

  file = Option.String({ name: 'file' })

  override async execute(): Promise<number> {
    const { copyOf, refuseExisting } = await import('../../shared/host/copy-file.ts')
    await refuseExisting(this.file, 'file')
    const bytes = await this.withFile(db => copyOf(db, this.file))
    this.context.stdout.write(`${this.file}  ${bytes} bytes\n`)
    return 0
  }
}

/** `router compact`: the room of what was dropped goes back to the disk. */
export class CompactCommand extends StoreFileCommand {
  static override paths = [['compact']]
  static override usage = Command.Usage({
    description: 'Give the unused room of the store back to the disk.',
    details: `
      Works also while the router runs: it gives back two megabytes at a time, and receipts are written in between. The store reuses the
      room of deleted records without this; use it when the store will stay smaller than it was.
    `,
    examples: [['After retention_days was lowered', '$0 compact --db data/router.db']],
  })

  override async execute(): Promise<number> {
    const { compactFile, reportCompacted } = await import('../../shared/host/compact-file.ts')
    return reportCompacted(await this.withFile(db => compactFile(db)), this.context)
  }
}

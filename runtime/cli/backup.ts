import { Command, Option } from 'clipanion'
import { counted } from '../../shared/cli/text-table.ts'
import { visible } from '../../shared/log/log.ts'

/** `runtime backup`: one file, also while the service runs. */
export class BackupCommand extends Command {
  static override paths = [['backup']]
  static override usage = Command.Usage({
    description: 'Write a copy of the store into one file.',
    details: `
      Copies the store of PLATFORM_DATA_DIR (./data), also while the runtime runs. The copy is of one moment and has everything that was
      committed by then. It does not contain the master key, without which nothing sealed can be read: keep master.key of the data
      folder, or the value of PLATFORM_MASTER_KEY, in another place.
    `,
    examples: [['A backup of today', '$0 backup backups/2026-01-02.db']],
  })

  file = Option.String({ name: 'file' })

  override async execute(): Promise<number> {
    const { backUp } = await import('../host/backup.ts')
    const bytes = await backUp(this.context.env, this.file)
    this.context.stdout.write(`${this.file}  ${bytes} bytes; the master key is not in it\n`)
    return 0
  }
}

/** `runtime restore`: a store from a backup, once its receipts were checked. */
export class RestoreCommand extends Command {
  static override paths = [['restore']]
  static override usage = Command.Usage({
    description: 'Restore the store from a backup.',
    details: `
      Puts the backup into PLATFORM_DATA_DIR (./data), which must not hold a store. First it checks the signature of every receipt and
      every hash of the journal behind it; if one does not verify, nothing is restored. The master key of the time of the backup must be
      in the folder as master.key, or in PLATFORM_MASTER_KEY or PLATFORM_MASTER_KEY_FILE.

      Runs that were under way at the time of the backup go on from there at the next start: what they did later is done and paid again.
      With --hold they are set aside; POST /v1/runs/ID/signals/resume lets one go on, POST /v1/runs/ID/cancel ends it.
    `,
    examples: [
      ['After a lost disk', 'cp safe/master.key data/ && $0 restore backups/2026-01-02.db'],
      [
        'Only to see whether a backup is good',
        'PLATFORM_DATA_DIR=/tmp/look PLATFORM_MASTER_KEY_FILE=data/master.key $0 restore backups/2026-01-02.db',
      ],
    ],
  })

  file = Option.String({ name: 'file' })
  force = Option.Boolean('--force', false, { description: 'Even when receipts do not verify.' })
  hold = Option.Boolean('--hold', false, {
    description: 'Set runs aside that were under way, so that none goes on by itself.',
  })

  override async execute(): Promise<number> {
    const { restore } = await import('../host/backup.ts')
    const restored = await restore(this.context.env, this.file, { force: this.force, hold: this.hold })
    const { receipts, hold, without, broken } = restored
    for (const one of broken) this.context.stderr.write(visible(one) + '\n')
    if (broken.length > 0 && !this.force) {
      this.context.stderr.write('nothing was restored: receipts do not hold (--force restores it as it is)\n')
      return 1
    }
    const bare = without === 0 ? '' : `; ${counted(without, 'run')} that ended ${without === 1 ? 'has' : 'have'} none`
    this.context.stdout.write(`restored; ${hold} of ${receipts} receipts hold${bare}\n${gapWords(restored, this.hold)}`)
    return 0
  }
}

function gapWords({ lastMs, underWay }: { lastMs: number | undefined; underWay: number }, held: boolean): string {
  if (lastMs === undefined) return ''
  const last = `its last change is of ${new Date(lastMs).toISOString()}; what came later is not in it\n`
  if (underWay === 0) return last
  const then = held
    ? 'set aside, to be resumed or cancelled'
    : 'under way: at the next start what they did later is done and paid again, unless you restore with --hold'
  return `${last}${counted(underWay, 'run')} ${then}\n`
}

/** `runtime compact`: the room of what was deleted goes back to the disk. */
export class CompactCommand extends Command {
  static override paths = [['compact']]
  static override usage = Command.Usage({
    description: 'Give the unused room of the store back to the disk.',
    details: `
      Compacts the store of PLATFORM_DATA_DIR (./data), also while the runtime runs: it gives back two megabytes at a time and lets runs
      start in between. It also removes the words of deleted runs from the search, and empties the log beside the file. The store reuses
      the room of deleted runs without this; use it when the store will stay smaller than it was.
    `,
    examples: [['After an archive was made', '$0 archive --days 90 --to archive --delete && $0 compact']],
  })

  override async execute(): Promise<number> {
    const { reportCompacted } = await import('../../shared/host/compact-file.ts')
    const { compact } = await import('../host/backup.ts')
    return reportCompacted(await compact(this.context.env), this.context)
  }
}

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { Command, Option, UsageError } from 'clipanion'
import type { Db } from '../../shared/sql/db.ts'

/** `router export`: the sealed log as JSONL. */
export class ExportCommand extends Command {
  static override paths = [['export']]
  static override usage = Command.Usage({
    description: 'Write the sealed records as JSONL, one record with its hash per line.',
    details: `
      With --since or --until, the output is the shortest unbroken piece of each chain that has every record of the window. A piece that
      does not begin at a chain's first record, or right after pruned ones, cannot be verified alone.

      Works also while the router runs. If retention_days deletes records that are being read, the export fails: delete what was written
      and run it again.

      --checkpoints adds the signed checkpoints and the public keys, so that \`verify --file\` needs nothing else.
    `,
    examples: [
      ['Everything, ready to hand over', '$0 export --feedback --checkpoints --out trace.jsonl'],
      ['One tenant', '$0 export --tenant default'],
    ],
  })

  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  tenant = Option.String('--tenant', { description: 'Only this tenant.' })
  since = Option.String('--since', { description: 'A day or an ISO 8601 time.' })
  until = Option.String('--until', { description: 'A day or an ISO 8601 time; not included.' })
  out = Option.String('--out', { description: 'A file instead of standard output.' })
  feedback = Option.Boolean('--feedback', false, { description: 'Add the feedback records.' })
  checkpoints = Option.Boolean('--checkpoints', false, {
    description: 'Add the signed checkpoints and the public keys.',
  })

  override async execute(): Promise<number> {
    const { readFlags } = await import('./read-store.ts')
    const { evalsQuery } = await import('../../shared/wire/router/evals.ts')
    const { since, until } = readFlags(evalsQuery, { since: this.since, until: this.until })
    const span = { tenant: this.tenant, since: moment(since), until: moment(until) }
    const { openPlaced, storePlaces } = await import('../host/open-store.ts')
    const { exportCheckpoints, exportFeedback, exportRecords, lastPruning } = await import(
      '../traces/stored-records.ts'
    )
    const { mergedKeys, publishedKeys } = await import('../traces/keys.ts')
    const { env } = this.context
    let out: Writable = this.context.stdout
    const open: Db[] = []
    try {
      for (const { address } of await storePlaces(env, this.db, this.tenant)) open.push(await openPlaced(env, address))
      if (this.out !== undefined) out = await fileToWrite(this.out)
      // Before the records: what a checkpoint names was in the store by then.
      const prunings = await Promise.all(open.map(db => lastPruning(db, this.tenant)))
      const checkpoints = this.checkpoints ? await Promise.all(open.map(db => exportCheckpoints(db, span))) : []
      for (const db of open) for await (const lines of exportRecords(db, span)) await write(out, lines)
      if (this.feedback)
        for (const db of open) for await (const lines of exportFeedback(db, span)) await write(out, lines)
      for (const [at, db] of open.entries()) {
        if ((await lastPruning(db, this.tenant)) === prunings[at]) continue
        this.context.stderr.write('records were dropped (retention_days) while they were read: run it again\n')
        return 1
      }
      if (this.checkpoints) {
        for (const lines of checkpoints) await write(out, lines)
        await write(out, [JSON.stringify(mergedKeys(await Promise.all(open.map(publishedKeys))))])
      }
    } finally {
      for (const db of open) db.close()
    }
    if (this.out !== undefined) {
      out.end()
      await once(out, 'finish')
    }
    return 0
  }
}

/** Waits while the reader is slower than the store. */
async function write(out: Writable, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return
  if (!out.write(lines.join('\n') + '\n')) await once(out, 'drain')
}

async function fileToWrite(path: string): Promise<Writable> {
  const file = createWriteStream(path, { mode: 0o600 })
  await once(file, 'open').catch((error: unknown) => {
    throw new UsageError(`--out ${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`)
  })
  return file
}

const moment = (text: string | undefined) => (text === undefined ? undefined : new Date(text))

import { open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Command, Option, UsageError } from 'clipanion'
import { counted } from '../../shared/cli/text-table.ts'
import type { RuntimeClient } from '../../shared/client/client.ts'
import { ClientError } from '../../shared/client/client-error.ts'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { appendTexts, journalTexts } from './journal-text.ts'
import { EVERY_RUN, ServiceCommand, WHERE } from './service-command.ts'

/** `runtime export`: everything that a third party needs to check a run without this service. */
export class ExportCommand extends ServiceCommand {
  static override paths = [['export']]
  static override usage = Command.Usage({
    description: 'Write runs, their journals and their receipts into files.',
    details: `
      ${WHERE}

      Writes <id>.run.json, <id>.journal.json and <id>.receipt.json for each run that has ended, and keys.json with the keys that
      receipts are signed with. A file appears whole or not at all. --all exports every ended run of the tenant, newest first, turns of
      sessions included. It skips runs that are there already, so an export can be continued.
    `,
    examples: [
      ['One run', '$0 export 0190… --to audit'],
      ['Everything', '$0 export --all --to audit'],
      [
        'Check what was written',
        '$0 verify audit/0190….receipt.json --journal audit/0190….journal.json --key audit/keys.json',
      ],
    ],
  })

  ids = Option.Rest({ name: 'run' })
  all = Option.Boolean('--all', false, { description: 'Every run of the tenant that has ended.' })
  to = Option.String('--to', '.', { description: 'The folder; it is made when there is none.' })

  protected async act(client: RuntimeClient): Promise<number> {
    if (this.all === this.ids.length > 0) throw new UsageError('say which runs: their ids, or --all')
    await makeFolder(this.to)
    await this.write('keys.json', await client.receipts.keys())
    let [written, open, gone] = [0, 0, 0]
    const one = async (run: Run) => {
      if (!isTerminal(run.status)) {
        open++
        return
      }
      try {
        await this.exported(client, run)
        written++
      } catch (error) {
        // Retention, or another caller, deletes runs while all are exported.
        if (!this.all || !(error instanceof ClientError) || error.status !== 404) throw error
        await this.discard(run.id)
        gone++
      }
    }
    for (const id of this.ids) await one(await client.runs.get({ params: { id } }))
    if (this.all) {
      for (const query of EVERY_RUN) {
        for await (const run of client.runs.list.each({ query })) {
          if (!(await this.isThere(`${run.id}.receipt.json`))) await one(run)
        }
      }
    }
    // A key that was made meanwhile may have signed what was written last.
    await this.write('keys.json', await client.receipts.keys())
    this.say(`${counted(written, 'run')} written to ${this.to}`)
    if (open > 0)
      this.context.stderr.write(
        `${counted(open, 'run')} ${open === 1 ? 'has' : 'have'} not ended and ${open === 1 ? 'was' : 'were'} left out\n`,
      )
    if (gone > 0)
      this.context.stderr.write(
        `${counted(gone, 'run')} ${gone === 1 ? 'was' : 'were'} deleted meanwhile and left out\n`,
      )
    return open > 0 && !this.all ? 1 : 0
  }

  /** The receipt comes last: where it is, the rest is. */
  private async exported(client: RuntimeClient, run: Run): Promise<void> {
    const params = { id: run.id }
    await this.write(`${run.id}.run.json`, run)
    await this.writeTexts(`${run.id}.journal.json`, journalTexts(client, run.id))
    await this.write(`${run.id}.receipt.json`, await client.receipts.get({ params }))
  }

  /** What was written of a run before it was deleted: no receipt follows it. */
  private async discard(id: string): Promise<void> {
    for (const kind of ['run', 'journal']) await rm(join(this.to, `${id}.${kind}.json`), { force: true })
  }

  private write(name: string, value: unknown): Promise<void> {
    return this.writeTexts(name, [JSON.stringify(value)])
  }

  private async writeTexts(name: string, texts: AsyncIterable<string> | readonly string[]): Promise<void> {
    const path = join(this.to, name)
    const file = await open(`${path}.part`, 'w', 0o600)
    try {
      await appendTexts(file, texts)
      await file.appendFile('\n')
      await file.sync()
      await rename(`${path}.part`, path)
    } catch (error) {
      await rm(`${path}.part`, { force: true })
      throw error
    } finally {
      await file.close()
    }
  }

  private async isThere(name: string): Promise<boolean> {
    return (await stat(join(this.to, name)).catch(() => undefined)) !== undefined
  }
}

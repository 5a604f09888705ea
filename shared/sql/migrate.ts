import { type Db, rowsOf } from './db.ts'
import { dbFault, retryBusy } from './db-fault.ts'

/** One step of a schema. Applied in the order of `id`; never changed once released, because its checksum is kept in the database. */
export interface Migration {
  id: number
  name: string
  sql: string
  /** A query. Where it finds a row, the store keeps what it has and the step is only marked: what makes large stores better is not to hold up their start. */
  unless?: string
}

export type MigrateProblem =
  | 'bad_list' // the program's own list is out of order, or a step manages its own transaction
  | 'changed' // an applied step differs from the one in this program
  | 'newer' // the database has steps this program does not know
  | 'gap' // the database went through other steps than this program's
  | 'read_only' // there is work to do and the database was opened read-only
  | 'failed' // the database refused a step; nothing of that step was kept

/** The database does not fit this program. The message is one sentence for the person at the terminal. */
export class MigrateError extends Error {
  override name = 'MigrateError'
  readonly problem: MigrateProblem

  constructor(problem: MigrateProblem, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.problem = problem
  }
}

interface Applied {
  id: number
  name: string
  checksum: string
}

/**
 * Brings one part's tables up to date and returns the names of the steps applied by this call. `part` names whose steps they are, so that two
 * services can share one file. Each step and its mark are one transaction; of two processes that start together one applies a step
 * and the other sees the mark. A database made by a newer program is left exactly as it was.
 */
export async function migrate(db: Db, part: string, migrations: readonly Migration[]): Promise<string[]> {
  const done: string[] = []
  for (;;) {
    const { next, sum } = await nextStep(db, part, migrations)
    if (next === undefined || sum === undefined) return done
    if (db.readOnly) {
      throw new MigrateError(
        'read_only',
        `The ${part} database needs step ${next.id} "${next.name}" but was opened read-only: open it for writing once.`,
      )
    }
    if (await apply(db, part, next, sum)) done.push(next.name)
  }
}

/** The first step that a database lacks. It fails, saying why, where the database does not fit this program. */
export async function nextStep(
  db: Pick<Db, 'execute'>,
  part: string,
  migrations: readonly Migration[],
): Promise<{ next: Migration | undefined; sum: string | undefined }> {
  checkList(part, migrations)
  const sums = await Promise.all(migrations.map(migration => checksum(migration.sql)))
  const applied = await readApplied(db, part)
  compare(part, migrations, sums, applied)
  return { next: migrations[applied.length], sum: sums[applied.length] }
}

async function readApplied(db: Pick<Db, 'execute'>, part: string): Promise<readonly Applied[]> {
  const known = await retryBusy(() => db.execute("select 1 from sqlite_master where name = 'schema_steps'"))
  if (known.rows.length === 0) return []
  const result = await retryBusy(() =>
    db.execute({ sql: 'select id, name, checksum from schema_steps where part = ? order by id', args: [part] }),
  )
  return rowsOf<Applied>(result)
}

/** Applied steps must be the beginning of the program's list, unchanged. */
function compare(part: string, migrations: readonly Migration[], sums: readonly string[], applied: readonly Applied[]) {
  const last = migrations.at(-1)?.id ?? 0
  const unknown = applied.find(step => step.id > last)
  if (unknown !== undefined) {
    throw new MigrateError(
      'newer',
      `The ${part} database was made by a newer version (step ${unknown.id} "${unknown.name}", this program knows ${last}): upgrade this program, or restore a backup made before the upgrade. Nothing was changed.`,
    )
  }
  for (const [index, step] of applied.entries()) {
    const own = migrations[index]
    if (own !== undefined && step.id < own.id && index === 0) {
      throw new MigrateError(
        'gap',
        `The ${part} database was made by a version before this program's first step ("${own.name}") and is not read: use that version, or start with a new database.`,
      )
    }
    if (own?.id !== step.id) {
      throw new MigrateError(
        'gap',
        `The ${part} database has step ${step.id} "${step.name}" where this program has step ${own?.id} "${own?.name}": it was made by a different version; use that one, or restore a backup.`,
      )
    }
    if (sums[index] !== step.checksum) {
      throw new MigrateError(
        'changed',
        `Step ${step.id} "${step.name}" of the ${part} database was applied with other text than this program has: another build of this version made the database. Use that build, or start with a new database. If you edited a released step, put its old text back and add a new step.`,
      )
    }
  }
}

/** True when this call applied the step, false when another process had just done so. */
async function apply(db: Db, part: string, step: Migration, sum: string): Promise<boolean> {
  const isLeftOut = step.unless !== undefined && (await retryBusy(() => db.execute(step.unless!))).rows.length > 0
  // One script, sent whole: on a server too it runs on one connection and ends with it, so a failure leaves nothing.
  // The mark comes first: its primary key stops the second of two processes before it touches anything else.
  const script = [
    'begin immediate;',
    'create table if not exists schema_steps (part text not null, id integer not null, name text not null, checksum text not null, applied_at text not null, primary key (part, id));',
    `insert into schema_steps (part, id, name, checksum, applied_at) values (${quote(part)}, ${step.id}, ${quote(step.name)}, ${quote(sum)}, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));`,
    isLeftOut ? '' : step.sql,
    // A step that ends in a comment or without a semicolon must not swallow the commit.
    '\n;commit;',
  ].join('\n')
  try {
    // Another process may be in a long step: wait for it longer than a connection does.
    await retryBusy(() => db.client.executeMultiple(script), { retries: 20, afterWaiting: true })
    return true
  } catch (error) {
    if (dbFault(error) === 'statement') {
      const applied = await readApplied(db, part)
      if (applied.some(other => other.id === step.id)) return false
    }
    const reason = error instanceof Error ? error.message : String(error)
    throw new MigrateError('failed', `Step ${step.id} "${step.name}" of the ${part} database failed: ${reason}`, {
      cause: error,
    })
  }
}

function checkList(part: string, migrations: readonly Migration[]) {
  let before = 0
  for (const { id, name, sql } of migrations) {
    if (!Number.isSafeInteger(id) || id <= before) {
      throw new MigrateError(
        'bad_list',
        `Step ${id} "${name}" of ${part} is out of order: expected an id above ${before}.`,
      )
    }
    if (
      /(^|;)\s*(begin|commit|rollback|savepoint)\b\s*(immediate|exclusive|deferred|transaction|work)?\s*;/i.test(sql)
    ) {
      throw new MigrateError(
        'bad_list',
        `Step ${id} "${name}" of ${part} manages a transaction: each step already is one.`,
      )
    }
    before = id
  }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** SHA-256 of the text with Unix line ends, so that a checkout with other line ends is the same step. */
async function checksum(sql: string): Promise<string> {
  const bytes = new TextEncoder().encode(sql.replaceAll('\r\n', '\n').trim())
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, byte => byte.toString(16).padStart(2, '0')).join('')
}

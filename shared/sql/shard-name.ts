import { type Db, rowsOf } from './db.ts'
import { DbOpenError, isMissingTable } from './db-fault.ts'

/** The table in which each service keeps what is of one store. */
type Meta = 'runtime_meta' | 'router_meta'

interface Named {
  name: string
  url: string
}

/**
 * Refuses a database that is not the one which the directory means: a shard's name stands in its own store, so that two that were put in
 * each other's place are noticed before anything is read from them. One of an earlier build gets its name as it is first opened.
 */
export async function refuseOtherShard(db: Db, meta: Meta, shard: Named): Promise<void> {
  const is = await nameIn(db, meta, shard)
  if (is === undefined) await write(db, meta, shard)
  else if (is !== shard.name) throw isOther(shard, is)
}

/** As a database becomes a shard. One that is another shard of the directory already, by another address, is refused. */
export async function nameShard(db: Db, meta: Meta, shard: Named, known: readonly Named[] = []): Promise<void> {
  const is = await nameIn(db, meta, shard)
  if (is !== undefined && known.some(({ name }) => name === is)) throw isOther(shard, is)
  await write(db, meta, shard)
}

const isOther = ({ name, url }: Named, is: string) =>
  new DbOpenError(
    'missing',
    `The database at ${url} is that of shard ${is}, not of shard ${name}: correct the address in the directory, or put the database of this shard back.`,
  )

async function nameIn(db: Db, meta: Meta, { url }: Named): Promise<string | undefined> {
  try {
    const found = await db.execute(`select value from ${meta} where key = 'shard'`)
    return rowsOf<{ value: string }>(found)[0]?.value
  } catch (cause) {
    if (!isMissingTable(cause, meta)) throw cause
    throw new DbOpenError('missing', `The database at ${url} is empty: put the database of this shard back.`, { cause })
  }
}

async function write(db: Db, meta: Meta, { name }: Named): Promise<void> {
  const sql = `insert into ${meta} (key, value) values ('shard', ?) on conflict (key) do update set value = excluded.value`
  await db.execute({ sql, args: [name] })
}

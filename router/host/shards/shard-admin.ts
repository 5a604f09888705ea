import { RefusedError } from '../../../shared/host/known-fault.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import { refuseMissing, refuseToken } from '../../../shared/host/shard-file.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import { nameShard, refuseOtherShard } from '../../../shared/sql/shard-name.ts'
import { routerSteps } from '../../schema/steps.ts'
import type { RouterDirectory, RouterShard } from '../../shards/directory.ts'
import { promptSalt } from '../../traces/salt.ts'
import { storedTenants } from '../../traces/stored-records.ts'
import { openRouterDirectory } from './open-directory.ts'

type Vars = Readonly<Record<string, string | undefined>>

const NAME = /^[a-z0-9][a-z0-9-]{0,30}$/

/** Opens the directory for one act. */
async function withDirectory<T>(vars: Vars, act: (directory: RouterDirectory) => Promise<T>): Promise<T> {
  const { ROUTER_DIRECTORY_URL, ROUTER_DB_TOKEN } = vars
  const { db, directory } = await openRouterDirectory({ ROUTER_DIRECTORY_URL, ROUTER_DB_TOKEN })
  try {
    return await act(directory)
  } finally {
    db.close()
  }
}

/** Does something with the store of a shard that the directory has, or that is to be added. */
export async function withStore<T>(
  { ROUTER_DB_TOKEN: token }: { ROUTER_DB_TOKEN?: string | undefined },
  shard: Pick<RouterShard, 'name' | 'url'>,
  act: (db: Db) => Promise<T>,
  { create = false } = {},
): Promise<T> {
  if (!create) await refuseMissing(shard.url)
  const db = await openDb(shard.url, { ...(token && { token }) })
  try {
    if (!create) await refuseOtherShard(db, 'router_meta', shard)
    return await act(db)
  } finally {
    db.close()
  }
}

/** The shards, and which tenant is in which. */
export async function readDirectory(vars: Vars) {
  return withDirectory(vars, async directory => ({
    shards: await directory.shards(),
    places: await directory.places(),
  }))
}

/** A database as a further shard. The first may be the store of a router: its tenants are taken into the directory. */
export async function addShard(vars: Vars, given: Pick<RouterShard, 'name' | 'url'>): Promise<string[]> {
  const { name, url } = given
  if (!NAME.test(name))
    throw new RefusedError(`a shard is named with letters, digits and - in lower case; "${name}" is not`)
  refuseToken(url, 'ROUTER_DB_TOKEN')
  if (url === vars.ROUTER_DIRECTORY_URL)
    throw new RefusedError('the directory is no shard: give each a database of its own')
  return withDirectory(vars, async directory => {
    const known = await directory.shards()
    const other = known.find(one => one.name === name || one.url === url)
    if (other) throw new RefusedError(`shard ${other.name} is there already, at ${other.url}`)
    const [first] = known
    const made = async (db: Db): Promise<string[]> => {
      await migrate(db, 'router', routerSteps)
      const found = await storedTenants(db)
      if (first === undefined) {
        await promptSalt(db)
        await nameShard(db, 'router_meta', given)
        return found
      }
      const [used] = found
      if (used !== undefined) {
        throw new RefusedError(
          `the database at ${url} has records of tenant ${used}: give an empty one. Only the first shard may be a store in use`,
        )
      }
      await nameShard(db, 'router_meta', given, known)
      await withStore(vars, first, from => copySalt(from, db))
      return []
    }
    const tenants = await withStore(vars, given, made, { create: true })
    await directory.add({ name, url, state: 'open' }, tenants, new Date())
    return tenants
  })
}

/** Prompts are the same in all shards. */
async function copySalt(from: Db, to: Db): Promise<void> {
  await promptSalt(from)
  const found = await from.execute("select value from router_meta where key = 'prompt_salt'")
  const { value } = rowsOf<{ value: string }>(found)[0]!
  const sql =
    "insert into router_meta (key, value) values ('prompt_salt', ?) on conflict (key) do update set value = excluded.value"
  await to.execute({ sql, args: [value] })
}

export interface ListedShard extends RouterShard {
  tenants: string[]
  /** Undefined where it answers. */
  problem: string | undefined
}

/** The shards, their tenants, and whether each answers. */
export async function listShards(vars: Vars): Promise<ListedShard[]> {
  const { shards, places } = await readDirectory(vars)
  return Promise.all(
    shards.map(async shard => {
      const tenants = [...places].flatMap(([tenant, name]) => (name === shard.name ? [tenant] : [])).toSorted()
      const problem = await withStore(vars, shard, async db => void (await db.execute('select 1'))).then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      )
      return { ...shard, tenants, problem }
    }),
  )
}

/** A closed shard gets no new tenants; those that it has stay. */
export async function setShardState(vars: Vars, name: string, state: RouterShard['state']): Promise<void> {
  const changed = await withDirectory(vars, directory => directory.setState(name, state))
  if (!changed) throw new RefusedError(`there is no shard ${name}: see \`router shards list\``)
}

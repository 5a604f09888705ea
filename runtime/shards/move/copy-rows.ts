import type { InStatement } from '@libsql/client/web'
import { readJson } from '../../../shared/json/read-json.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { dbFault, isTooLarge } from '../../../shared/sql/db-fault.ts'
import { FIRST_TENANT } from '../../schema/first-tenant.ts'
import { insertRows, type Row } from '../rows.ts'
import { childrenOf, FRAMES, MOVED, type MovedTable, tenantOf } from './moved-tables.ts'

const PAGE = 400
const PARENTS = 100
const CHANGES = 2000

export interface Sides {
  from: Db
  to: Db
  tenantId: string
}

/** The rows of a statement in their order, a page at a time, so that no answer is larger than a server gives. */
async function* pages(
  db: Db,
  { select, args, order }: { select: string; args: readonly (string | number)[]; order: readonly string[] },
): AsyncGenerator<readonly Row[]> {
  let after: Row | undefined
  for (let limit = PAGE; ; ) {
    const last = after
    const behind = last ? ` and (${order.join(', ')}) > (${order.map(() => '?').join(', ')})` : ''
    const sql = `${select}${behind} order by ${order.join(', ')} limit ${limit}`
    const more = last ? order.map(name => last[name] ?? null) : []
    try {
      const rows = rowsOf<Row>(await db.execute({ sql, args: [...args, ...more] }))
      if (rows.length > 0) yield rows
      if (rows.length < limit) return
      after = rows.at(-1)
    } catch (error) {
      if (limit === 1 || !isTooLarge(error)) throw error
      limit = Math.max(1, limit >> 2)
    }
  }
}

const MOVED_BY_NAME = new Map(MOVED.map(table => [table.table, table]))

/** The ids of rows of a tenant that others stand below. */
async function* idsOf(db: Db, above: string, tenantId: string): AsyncGenerator<string[]> {
  const { order, key } = MOVED_BY_NAME.get(above)!
  const columns = order ?? key
  const select = `select ${columns.join(', ')} from ${above} where tenant_id = ?`
  for await (const rows of pages(db, { select, args: [tenantId], order: columns })) {
    const ids = rows.map(row => String(row.id))
    for (let at = 0; at < ids.length; at += PARENTS) yield ids.slice(at, at + PARENTS)
  }
}

async function* rowsBelow(db: Db, { table, key, tenant, columns = ['*'] }: MovedTable, ids: readonly string[]) {
  if (!('above' in tenant)) return
  const select = `select ${columns.join(', ')} from ${table} where ${tenant.column} in (select value from json_each(?))`
  yield* pages(db, { select, args: [JSON.stringify(ids)], order: key })
}

/** All rows of a tenant in one table. */
export async function* rowsOfTenant(db: Db, table: MovedTable, tenantId: string): AsyncGenerator<readonly Row[]> {
  if ('above' in table.tenant) {
    for await (const ids of idsOf(db, table.tenant.above, tenantId)) yield* rowsBelow(db, table, ids)
    return
  }
  const { columns = ['*'] } = table
  const select = `select ${columns.join(', ')} from ${table.table} where ${tenantOf(table, table.table)} = ?`
  yield* pages(db, { select, args: [tenantId], order: table.order ?? table.key })
}

/** Rows as the new place gets them. */
function upserts(table: MovedTable, rows: readonly Row[]): InStatement[] {
  const { resting } = table
  return insertRows(table, resting ? rows.map(row => ({ ...row, ...resting })) : rows)
}

/** Writes rows at the new place. What they refer to may have been made meanwhile: then it is among the changes, and they are read again. */
async function written(sides: Sides, table: MovedTable, rows: readonly Row[]): Promise<void> {
  let current = rows
  for (let tries = 0; ; tries++) {
    try {
      for (const statement of upserts(table, current)) await sides.to.write([statement])
      return
    } catch (error) {
      if (tries === 5 || dbFault(error) !== 'statement') throw error
      await copyChanges(sides)
      const keys = current.map(row => keyText(table, row))
      current = await byKeys(sides.from, table, keys)
    }
  }
}

/** Everything that the tenant has, once; what changes meanwhile is noted. */
export async function copyAll(sides: Sides) {
  for (const table of MOVED) {
    if (table.last) continue
    for await (const rows of rowsOfTenant(sides.from, table, sides.tenantId)) {
      await written(sides, table, rows)
    }
  }
}

interface Change {
  id: number
  tab: string
  key: string
  made: number
}

export interface CopiedChanges {
  /** How many there were. */
  changes: number
  /** The runs whose receipts are among them. */
  receipts: string[]
}

/** What was noted since, up to so many changes: rows that are there are written, rows that are gone are deleted. */
export async function copyChanges({ from, to, tenantId }: Sides): Promise<CopiedChanges> {
  const found = rowsOf<Change>(
    await from.execute({
      sql: 'select id, tab, key, made from shard_changes where tenant_id = ? order by id limit ?',
      args: [tenantId, CHANGES],
    }),
  )
  const last = found.at(-1)
  if (last === undefined) return { changes: 0, receipts: [] }
  const keys = Map.groupBy(found, ({ tab }) => tab)
  const writes: InStatement[] = []
  const deletes: InStatement[] = []
  for (const table of MOVED) {
    const changed = keys.get(table.table)
    if (changed === undefined || table.last) continue
    const distinct = [...new Set(changed.map(({ key }) => key))]
    const rows = await byKeys(from, table, distinct)
    writes.push(...upserts(table, rows))
    const there = new Set(rows.map(row => keyText(table, row)))
    const gone = distinct.filter(key => !there.has(keyText(table, keyed(table, key))))
    deletes.unshift(...deletion(table, gone))
    const made = [...new Set(changed.flatMap(({ key, made }) => (made === 1 ? [key] : [])))]
    writes.push(...(await below(from, table, made)))
  }
  // What was deleted goes first, so that a name that was given to another row is free.
  for (const statement of deletes) await to.write([statement])
  for (const statement of writes) await to.write([statement])
  const sql = 'delete from shard_changes where tenant_id = ? and id <= ?'
  await from.execute({ sql, args: [tenantId, last.id] })
  const receipts = (keys.get('receipts') ?? []).map(({ key }) => String((readJson(key) as unknown[])[0]))
  return { changes: found.length, receipts: [...new Set(receipts)] }
}

/** Rows below one that was just made may have been written before it, when they could not be told to be the tenant's. */
async function below(from: Db, { table, key }: MovedTable, made: readonly string[]): Promise<InStatement[]> {
  if (key.length !== 1 || made.length === 0) return []
  const ids = made.map(one => String((readJson(one) as unknown[])[0]))
  const statements: InStatement[] = []
  for (const child of childrenOf(table)) {
    for (let at = 0; at < ids.length; at += PARENTS) {
      for await (const rows of rowsBelow(from, child, ids.slice(at, at + PARENTS))) {
        statements.push(...upserts(child, rows))
      }
    }
  }
  return statements
}

const places = (key: readonly string[]) => key.map((_, at) => `value ->> ${at}`).join(', ')

async function byKeys(db: Db, table: MovedTable, keys: readonly string[]): Promise<Row[]> {
  const { table: name, key } = table
  const all: Row[] = []
  for (let at = 0; at < keys.length; at += PARENTS) {
    const args = [`[${keys.slice(at, at + PARENTS).join(',')}]`]
    const select = `select * from ${name} where (${key.join(', ')}) in (select ${places(key)} from json_each(?))`
    for await (const rows of pages(db, { select, args, order: key })) all.push(...rows)
  }
  // As they were changed: a row that gave up its name comes before the one that took it.
  const position = new Map(keys.map((one, at) => [keyText(table, keyed(table, one)), at]))
  return all.toSorted((a, b) => (position.get(keyText(table, a)) ?? 0) - (position.get(keyText(table, b)) ?? 0))
}

const keyText = ({ key }: MovedTable, row: Row): string => JSON.stringify(key.map(name => row[name]))

function keyed({ key }: MovedTable, text: string): Row {
  const values = readJson(text) as (string | number)[]
  return Object.fromEntries(key.map((name, at) => [name, values[at] ?? null]))
}

function deletion({ table, key }: MovedTable, gone: readonly string[]): InStatement[] {
  if (gone.length === 0) return []
  const args = [`[${gone.join(',')}]`]
  const ids = 'select value ->> 0 from json_each(?)'
  const children = childrenOf(table).flatMap(({ table: child, tenant }): InStatement[] =>
    'above' in tenant ? [{ sql: `delete from ${child} where ${tenant.column} in (${ids})`, args }] : [],
  )
  const sql = `delete from ${table} where (${key.join(', ')}) in (select ${places(key)} from json_each(?))`
  return [...(key.length === 1 ? children : []), { sql, args }]
}

/** What is copied when nothing changes any more, in the place of what was copied of it before: also what waits for the tenant's nodes. */
export async function copyLast({ from, to, tenantId }: Sides): Promise<void> {
  for (const table of MOVED.filter(({ last }) => last)) {
    const sql = `delete from ${table.table} where ${tenantOf(table, table.table)} = ?`
    await to.execute({ sql, args: [tenantId] })
    for await (const rows of rowsOfTenant(from, table, tenantId)) {
      for (const statement of upserts(table, rows)) await to.write([statement])
    }
  }
  const nodes = 'node_id in (select id from nodes where tenant_id = ?)'
  await to.execute({ sql: `delete from ${FRAMES} where ${nodes}`, args: [tenantId] })
  const select = `select id, node_id, frame from ${FRAMES} where ${nodes}`
  for await (const rows of pages(from, { select, args: [tenantId], order: ['id'] })) {
    const frames = rows.map(({ node_id, frame }) => ({ node_id: node_id ?? null, frame: frame ?? null }))
    for (const statement of insertRows({ table: FRAMES, key: [] }, frames)) await to.write([statement])
  }
}

/** Deletes what a database has of a tenant, the rows that refer to others first. */
export async function deleteAll(db: Db, tenantId: string): Promise<void> {
  for (const { table, tenant, ...of } of MOVED.toReversed()) {
    // Every store has the first tenant.
    if (table === 'tenants' && tenantId === FIRST_TENANT) continue
    if (table === 'nodes') {
      const sql = `delete from ${FRAMES} where node_id in (select id from nodes where tenant_id = ?)`
      await db.execute({ sql, args: [tenantId] })
    }
    if ('above' in tenant) {
      for await (const ids of idsOf(db, tenant.above, tenantId)) {
        const sql = `delete from ${table} where ${tenant.column} in (select value from json_each(?))`
        await db.execute({ sql, args: [JSON.stringify(ids)] })
      }
      continue
    }
    const key = of.key.join(', ')
    const whose = tenantOf({ table, tenant, ...of }, table)
    const sql = `delete from ${table} where (${key}) in (select ${key} from ${table} where ${whose} = ? limit ${PAGE})`
    while ((await db.execute({ sql, args: [tenantId] })).rowsAffected > 0);
  }
}

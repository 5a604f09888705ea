import type { Db } from '../../shared/sql/db.ts'

/** The id under which this control plane's own node is known, made once for each store. */
export function embeddedNode(db: Db, newId: () => string): () => Promise<string> {
  let known: string | undefined
  return async () => {
    if (known !== undefined) return known
    const [, found] = await db.write([
      {
        sql: "insert into runtime_meta (key, value) values ('embedded_node', ?) on conflict do nothing",
        args: [newId()],
      },
      "select value from runtime_meta where key = 'embedded_node'",
    ])
    known = String(found?.rows[0]?.value)
    return known
  }
}

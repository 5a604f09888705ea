import { fromBase64, toBase64 } from '../../shared/sign/bytes.ts'
import type { PublicKey } from '../../shared/sign/ed25519.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { RouterKeys } from '../../shared/wire/router/checkpoint.ts'
import type { signingKeys } from '../schema/tables.ts'
import type { TrustedKeys } from './checkpoint.ts'

/** Lists the key in use; one that was in use before is marked as retired and stays listed. */
export async function publishKey(db: Db, { keyId, publicKey }: PublicKey, now: Date): Promise<void> {
  const at = now.toISOString()
  await db.write([
    {
      sql: 'insert into signing_keys (key_id, public_key, created_at) values (?1, ?2, ?3) on conflict (key_id) do update set retired_at = null where retired_at is not null',
      args: [keyId, toBase64(publicKey), at],
    },
    { sql: 'update signing_keys set retired_at = ? where key_id <> ? and retired_at is null', args: [at, keyId] },
  ])
}

/** The keys of several stores as one list: a key is in use while one of them signs with it. */
export function mergedKeys(lists: readonly RouterKeys[]): RouterKeys {
  const [first] = lists
  if (first === undefined || lists.length === 1) return first ?? { v: 1, keys: [], heads_url: '/-/checkpoints' }
  const byId = Map.groupBy(
    lists.flatMap(({ keys }) => keys),
    ({ key_id }) => key_id,
  )
  const keys = [...byId.values()].map(
    same => same.find(({ retired_at }) => retired_at === undefined) ?? same.toSorted(laterRetired)[0]!,
  )
  return { ...first, keys: keys.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1)) }
}

type ListedKey = RouterKeys['keys'][number]
const laterRetired = (a: ListedKey, b: ListedKey) => ((a.retired_at ?? '') < (b.retired_at ?? '') ? 1 : -1)

/** The body of `/.well-known/router-receipts`. */
export async function publishedKeys(db: Db): Promise<RouterKeys> {
  const found = await db.execute('select * from signing_keys order by created_at, key_id')
  return {
    v: 1,
    keys: rowsOf<RowOf<typeof signingKeys>>(found).map(row => ({
      key_id: row.key_id,
      alg: 'Ed25519',
      public_key: row.public_key,
      created_at: row.created_at,
      ...(row.retired_at !== null && { retired_at: row.retired_at }),
    })),
    heads_url: '/-/checkpoints',
  }
}

export function trustedKeys({ keys }: Pick<RouterKeys, 'keys'>): TrustedKeys {
  return new Map(keys.map(({ key_id, public_key }) => [key_id, fromBase64(public_key)]))
}

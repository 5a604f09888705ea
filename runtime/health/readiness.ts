import type { Db } from '../../shared/sql/db.ts'
import type { Readyz } from '../../shared/wire/runtime/health.ts'

export interface ReadinessDeps {
  db: Db
  ready: () => Promise<void>
  /** Whether the master key is the one of the store; undefined where there is none. Once it was, it is not asked again. */
  checkKey: (() => Promise<void>) | undefined
  phase: () => Readyz['status']
}

/** What /readyz says. */
export function readinessOf({ db, ready, checkKey, phase }: ReadinessDeps): () => Promise<Readyz> {
  let keyChecked = false
  async function key() {
    await ready()
    if (!keyChecked) await checkKey?.()
    keyChecked = true
  }
  return async () => {
    const migrations = await outcome(ready)
    const database = await outcome(async () => {
      await db.execute('select 1')
      await db.writable()
    })
    const checks = { database, migrations, ...(checkKey && { masterKey: await outcome(key) }) }
    const status = Object.values(checks).some(check => check !== 'ok') ? 'failing' : phase()
    return { status, checks }
  }
}

/** `ok`, or what went wrong in one sentence. */
async function outcome(check: () => Promise<unknown>): Promise<string> {
  try {
    await check()
    return 'ok'
  } catch (error) {
    return error instanceof Error ? error.message : 'failed'
  }
}

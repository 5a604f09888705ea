import { STORE_STUCK } from '../../shared/sql/db.ts'
import { aheadOfServer } from '../../shared/sql/server-clock.ts'
import type { RuntimeEnv } from '../env.ts'
import { openStore } from './open.ts'

export interface CheckOutcome {
  is: 'ok' | 'warn' | 'fail'
  /** What was found, and where it is not well, what to do. */
  says: string
}

export const namesServer = ({ PLATFORM_DATABASE_URL: url }: RuntimeEnv): boolean =>
  url !== undefined && /^(?:https?|libsql|wss?):/i.test(url)

/** As long as a server lets one transaction hold the lock, and as much again. */
const TAKES_WRITES_MS = 10_000

/** Takes the lock of the server and gives it back, with nothing written. */
export async function writesOf(env: RuntimeEnv): Promise<CheckOutcome> {
  const db = await openStore(env, { create: false })
  const { promise: late, resolve } = Promise.withResolvers<'late'>()
  const timer = setTimeout(() => resolve('late'), TAKES_WRITES_MS)
  try {
    const taken = db.write(['select 1'])
    taken.catch(() => undefined)
    if ((await Promise.race([taken, late])) !== 'late') return { is: 'ok', says: 'the server takes them' }
    await db.execute('select 1')
    return { is: 'fail', says: STORE_STUCK }
  } catch (error) {
    return { is: 'fail', says: error instanceof Error ? error.message : String(error) }
  } finally {
    clearTimeout(timer)
    db.close()
  }
}

/** Beyond this certificates and nodes may be refused. */
const MOST_OFF_MS = 30_000

/** How far the clock of this machine is from the server's, by which the processes of one store go. */
export async function clockOf(env: RuntimeEnv): Promise<CheckOutcome> {
  const db = await openStore(env, { create: false })
  try {
    const aheadMs = await aheadOfServer(db, () => new Date())
    const seconds = Math.round(Math.abs(aheadMs) / 1000)
    if (seconds === 0) return { is: 'ok', says: 'as that of the server' }
    const says = `${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the server: set both right`
    return { is: Math.abs(aheadMs) > MOST_OFF_MS ? 'fail' : 'warn', says }
  } finally {
    db.close()
  }
}

/** What a commit means there: `synchronous` is 2 where the server waits for its disk. */
export async function durability(env: RuntimeEnv): Promise<CheckOutcome> {
  const db = await openStore(env, { create: false })
  try {
    const { rows } = await db.execute('pragma synchronous')
    const level = Number(rows[0]?.[0])
    if (level >= 2) return { is: 'ok', says: 'the server has a commit on its disk before it answers' }
    return {
      is: 'warn',
      says: 'the server answers before a commit is on its disk (durability_mode relaxed): a power cut may lose the last commits; with sqld, set durability_mode to strong',
    }
  } finally {
    db.close()
  }
}

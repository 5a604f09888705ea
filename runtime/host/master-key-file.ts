import { link, open, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { EnvError } from '../../shared/env/read-env.ts'
import { readOperatorText, syncPath } from '../../shared/host/operator-file.ts'
import type { Log } from '../../shared/log/log.ts'
import { toBase64 } from '../../shared/sign/bytes.ts'
import type { RuntimeEnv } from '../env.ts'
import { isSealed } from '../vault/canary.ts'
import { MASTER_KEY_BYTES, readMasterKey } from '../vault/master-key.ts'
import { VaultError } from '../vault/vault.ts'
import { makeDataFolder, openStore } from './open.ts'

const NAME = 'master.key'

/** The master key: of the environment, of the file that it names, or made at the first start in the data folder. */
export async function masterKeyOf(env: RuntimeEnv, log: Log): Promise<Uint8Array<ArrayBuffer>> {
  if (env.PLATFORM_MASTER_KEY !== undefined) return env.PLATFORM_MASTER_KEY
  const named = env.PLATFORM_MASTER_KEY_FILE
  if (named !== undefined) return readKeyFile('PLATFORM_MASTER_KEY_FILE', named, log)
  await makeDataFolder(env.PLATFORM_DATA_DIR)
  const path = join(env.PLATFORM_DATA_DIR, NAME)
  await refuseLostKey(env, path)
  const made = await makeKeyFile(path)
  if (made === undefined) return readKeyFile('the master key', path, log)
  log.redact.register(toBase64(made))
  return made
}

/** A new key would open nothing of a store that is sealed, and a copy that is kept of the file would be replaced by it. */
async function refuseLostKey(env: RuntimeEnv, path: string): Promise<void> {
  const isThere = async (file: string) => (await stat(file).catch(() => undefined)) !== undefined
  if ((await isThere(path)) || env.PLATFORM_DIRECTORY_URL !== undefined) return
  if (env.PLATFORM_DATABASE_URL === undefined && !(await isThere(join(env.PLATFORM_DATA_DIR, 'waybill.db')))) return
  const db = await openStore(env, { create: false })
  try {
    // Another process may have made both meanwhile.
    if (!(await isSealed(db)) || (await isThere(path))) return
  } finally {
    await db.close()
  }
  const says = `${path} is not there, and the store is sealed under it: bring it back, or name it in PLATFORM_MASTER_KEY_FILE`
  throw new VaultError('other_key', says)
}

/**
 * Undefined when there is a file. It is never overwritten: what was sealed under another key would be lost. It appears
 * whole or not at all, so that of two processes that start together the second reads what the first made.
 */
export async function makeKeyFile(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (await stat(path).catch(() => undefined)) return undefined
  const key = crypto.getRandomValues(new Uint8Array(MASTER_KEY_BYTES))
  const draft = `${path}.${crypto.randomUUID()}`
  try {
    const file = await open(draft, 'wx', 0o600)
    await file.writeFile(toBase64(key) + '\n')
    await file.sync()
    await file.close()
    await link(draft, path)
    // Its name too: what is sealed under a key that a power cut took away is lost.
    await syncPath(dirname(path))
    return key
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') return undefined
    throw new EnvError(`the master key cannot be written to ${path}: ${reason(cause)}`)
  } finally {
    await rm(draft, { force: true })
  }
}

export async function readKeyFile(what: string, path: string, log: Log): Promise<Uint8Array<ArrayBuffer>> {
  const text = await readOperatorText(path).catch((cause: unknown) => {
    throw new EnvError(`${what}: ${path} cannot be read: ${reason(cause)}`)
  })
  const key = readMasterKey(text)
  if (key === undefined) throw new EnvError(`${what}: ${path} does not hold 32 bytes in base64`)
  log.redact.register(text.trim())
  if (((await stat(path)).mode & 0o077) !== 0) {
    log.warn(`${path} can be read by other accounts of this machine: run chmod 600 on it`)
  }
  return key
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

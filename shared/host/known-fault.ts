import { EnvError } from '../env/read-env.ts'
import { DbOpenError } from '../sql/db-fault.ts'
import { MigrateError } from '../sql/migrate.ts'
import { ListenError } from './serve.ts'

const KNOWN: readonly (abstract new (...args: never[]) => Error)[] = [EnvError, DbOpenError, MigrateError, ListenError]

/** Names of errors that other parts throw for the operator to mend. */
const KNOWN_NAMES = new Set(['ConfigError', 'DamagedRowError', 'RefusedError', 'SigningKeyError', 'VaultError'])

/** True for what the operator can mend: its message is printed alone, without a stack. */
export function isKnownFault(error: unknown): error is Error {
  return error instanceof Error && (KNOWN.some(known => error instanceof known) || KNOWN_NAMES.has(error.name))
}

/** What a command was asked for and will not do, with what to do instead. */
export class RefusedError extends Error {
  override name = 'RefusedError'
}

import { EnvError } from '../env/read-env.ts'
import { DbOpenError } from '../sql/db-open-error.ts'
import { MigrateError } from '../sql/migrate.ts'
import { ListenError } from './serve.ts'

/** True for what the operator can mend: its message is printed alone, without a stack. */
export function isKnownFault(error: unknown): error is Error {
  return [EnvError, DbOpenError, MigrateError, ListenError].some(known => error instanceof known)
}

/**
 * Exit codes of docs/spec/router.md §8 beside 0 (good) and 1 (a negative result). Errors are known by name: their classes
 * would load the store and the server into every command.
 */
export const USAGE = 2
export const UNREACHABLE = 3
/** A negative result: what was asked for was refused or did not come about. */
const REFUSED = 1

const BY_NAME: Readonly<Record<string, number>> = {
  UsageError: USAGE,
  EnvError: USAGE,
  ConfigError: USAGE,
  SigningKeyError: USAGE,
  DbOpenError: UNREACHABLE,
  MigrateError: UNREACHABLE,
  ListenError: UNREACHABLE,
  BlockError: REFUSED,
  OnboardError: REFUSED,
  OwnServiceError: REFUSED,
  StartUpFileError: REFUSED,
}

/** The code for an error that the operator can mend; undefined for a fault of this program. */
export function exitCodeOf(error: unknown): number | undefined {
  return error instanceof Error && Object.hasOwn(BY_NAME, error.name) ? BY_NAME[error.name] : undefined
}

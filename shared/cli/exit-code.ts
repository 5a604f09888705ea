/** The exit codes of the three programs; docs/settings.md says what each means for a command. */
export const REFUSED = 1
export const USAGE = 2
export const UNREACHABLE = 3
/** Of `runtime run`: a human has to decide. */
export const WAITS = 4

/** Errors are known by name: their classes would load the store and the server into every command. */
const BY_NAME: Readonly<Record<string, number>> = {
  UsageError: USAGE,
  EnvError: USAGE,
  ConfigError: USAGE,
  SigningKeyError: USAGE,
  RecordFileError: UNREACHABLE,
  DbOpenError: UNREACHABLE,
  MigrateError: UNREACHABLE,
  ListenError: UNREACHABLE,
  RefusedError: REFUSED,
  BlockError: REFUSED,
  OnboardError: REFUSED,
  OwnServiceError: REFUSED,
  StartUpFileError: REFUSED,
  TunnelRefusal: REFUSED,
  VaultError: REFUSED,
}

/** The code for an error that the operator can mend; undefined for a fault of this program. */
export function exitCodeOf(error: unknown): number | undefined {
  return error instanceof Error && Object.hasOwn(BY_NAME, error.name) ? BY_NAME[error.name] : undefined
}

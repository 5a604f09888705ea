/** The exit codes of the three programs; docs/settings.md says what each means for a command. */
export const REFUSED = 1
export const USAGE = 2
export const UNREACHABLE = 3
/** Of `runtime run`: a human has to decide. */
export const AWAITS_APPROVAL = 4

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

/** What exit codes mean, for docs/settings.md and for help. */
export type ExitWords = Readonly<Record<number, string>>

/** What they mean for every command of the three programs. */
export const everyExit: ExitWords = {
  0: 'done',
  1: 'refused, or it did not come about; also a fault of the program, with a stack',
  2: 'wrong use, or something that was given does not read: a setting, a config, a key, a file',
  3: 'the service or the store cannot be reached, or the address is taken',
  141: 'the reader of its output has gone, as after `| head`; a service goes on',
}

/** What the codes of a program's commands mean beyond that, by the words that each is called with. */
export type ProgramExits = Readonly<Record<string, ExitWords>>

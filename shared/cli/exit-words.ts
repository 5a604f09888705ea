/** What each exit code of a command means, for docs/settings.md. */
export type ExitWords = Readonly<Record<number, string>>

export interface ProgramExits {
  /** Codes that mean the same for every command. */
  all: ExitWords
  /** What a command's codes mean beyond that, by the words that it is called with. */
  commands: Readonly<Record<string, ExitWords>>
}

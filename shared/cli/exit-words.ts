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

/**
 * Between the first process of a service and the others. What they ask each other and what they let each other know is the service's: `N` are
 * the notices, and `F` is what a process says of itself once it answers.
 */
export type ToProcess<N> =
  /** A connection comes with it, to be confirmed by its number. */
  | { connection: number; door: string }
  | { answer: number; question: string }
  | { gathered: number; pages: readonly string[] }
  /** The first process listens there, or cannot. */
  | { door: string; origin: string }
  | { door: string; failed: string }
  | { end: Ending }
  | { notice: N }

export type FromProcess<N, F> =
  | { took: number }
  | { ready: F }
  | { failed: string }
  | { answered: number; page: string }
  | { gather: number; question: string; page: string }
  | { last: string }
  /** That the first process listens at this door as well. */
  | { open: string }
  /** It takes connections of this door. */
  | { takes: string }
  /** It takes no more connections of any door. */
  | { leaves: true }
  /** For the first process, or the others. */
  | { notice: N }

/** With `restart` others go on at the address. */
export type Ending = 'restart' | 'stop'

/** The address of the service itself. */
export const MAIN_DOOR = 'main'

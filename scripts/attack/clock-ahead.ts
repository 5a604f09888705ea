/** Loaded before a service: its clock is a day ahead. */
const DAY_MS = 86_400_000
const { now } = Date

class AheadDate extends Date {
  constructor(...given: unknown[]) {
    // @ts-expect-error Date has as many forms as arguments.
    super(...(given.length === 0 ? [now() + DAY_MS] : given))
  }

  static override now(): number {
    return now() + DAY_MS
  }
}

globalThis.Date = AheadDate as DateConstructor

import type { Clock } from './clock.ts'

/** A clock that runs a little fast or slow is led back by less. */
const SLACK_MS = 1000

/** Asked again and again, says whether the wall clock was set back since the time before. */
export function setBacks({ now, monotonic }: Clock): () => boolean {
  const ahead = () => now().getTime() - monotonic()
  let before = ahead()
  return () => {
    const was = before
    before = ahead()
    return before < was - SLACK_MS
  }
}

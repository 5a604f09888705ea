import type { Clock } from '../../../shared/time/clock.ts'

/** Of one body, and of all whose reading has not been reported. */
const LARGEST = 2 * 1024 * 1024
const MOST_BYTES = 32 * 1024 * 1024

/** What was handed to another thread and is not yet reported back: how much of it there is, and since when. */
export function inFlightBytes(clock: Clock) {
  let posts: { upTo: number; at: number; bytes: number }[] = []
  let posted = 0
  let taken = 0
  let depth = 0
  let bytes = 0

  return {
    post(count: number, size: number): void {
      posted += count
      bytes += size
      posts.push({ upTo: posted, at: clock.monotonic(), bytes: size })
    },
    /** The other side has taken so many so far, and holds so many of them. */
    reported(report: { taken: number; depth: number }): void {
      taken = report.taken
      depth = report.depth
      const settled = posts.findIndex(({ upTo }) => upTo > taken - depth)
      for (const post of posts.splice(0, settled < 0 ? posts.length : settled)) bytes -= post.bytes
    },
    get count(): number {
      return posted - taken + depth
    },
    /** Tells of one body after the other whether there is room for it beside what is on its way, and takes that. */
    room(): (size: number) => boolean {
      let left = MOST_BYTES - bytes
      return size => {
        if (size > Math.min(LARGEST, left)) return false
        left -= size
        return true
      }
    },
    /** Age of the oldest, in seconds. */
    get lag(): number {
      return posts[0] === undefined ? 0 : (clock.monotonic() - posts[0].at) / 1000
    },
    /** None of it will be reported any more. */
    forget(): void {
      posts = []
      posted = 0
      taken = 0
      depth = 0
      bytes = 0
    },
  }
}

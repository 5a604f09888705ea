import type { PreviewItem } from '../../shared/wire/runtime/schedule.ts'
import type { CronPattern } from './cron-pattern.ts'
import { nextFire } from './next-fire.ts'
import type { OffsetAt } from './zone.ts'

/** The next firings after an instant, earliest first, as the clock on the wall shows them. */
export function previewFires(
  pattern: CronPattern,
  offsetAt: OffsetAt,
  { afterMs, count }: { afterMs: number; count: number },
): PreviewItem[] {
  const items: PreviewItem[] = []
  let at: number | undefined = afterMs
  while (items.length < count) {
    at = nextFire(pattern, offsetAt, at)
    if (at === undefined) break
    const offset = offsetAt(at)
    items.push({
      at: new Date(at).toISOString(),
      local: new Date(at + offset).toISOString().slice(0, 19),
      offset: offsetText(offset),
    })
  }
  return items
}

/** `+02:00` */
function offsetText(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${offsetMs < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

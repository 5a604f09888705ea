const RENEW_MS = 30_000

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' })
const forms = {
  hour: new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
  day: new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' }),
  both: new Intl.DateTimeFormat(undefined, {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }),
}

/** Says each time of the page as the reader counts it, and the exact local time when it is pointed at. */
export function localTimes(): void {
  for (const one of document.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
    const at = new Date(one.dateTime)
    if (Number.isNaN(at.getTime())) continue
    const form = one.dataset.clock
    const words =
      form === undefined ? relativeTime(at.getTime(), Date.now()) : forms[form as keyof typeof forms].format(at)
    if (one.textContent !== words) one.replaceChildren(words)
    if (one.title === '') one.title = exact.format(at)
  }
}

export function followTimes(): void {
  localTimes()
  document.addEventListener('refreshed', localTimes)
  setInterval(() => {
    if (!document.hidden) localTimes()
  }, RENEW_MS)
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long ago, or in how long. */
export function relativeTime(atMs: number, nowMs: number): string {
  const size = Math.abs(nowMs - atMs)
  if (size < 10_000) return 'now'
  const words = wordsOf(size)
  return atMs < nowMs ? `${words} ago` : `in ${words}`
}

function wordsOf(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / 1000)}\u00a0s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}\u00a0min`
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)}\u00a0h`
  if (ms < 61 * DAY) return `${Math.floor(ms / DAY)}\u00a0days`
  if (ms < 731 * DAY) return `${Math.floor(ms / (30.4 * DAY))}\u00a0months`
  return `${Math.floor(ms / (365.25 * DAY))}\u00a0years`
}

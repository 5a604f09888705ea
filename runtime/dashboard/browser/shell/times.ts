import { relativeTime } from './relative-time.ts'

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

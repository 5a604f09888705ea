import { part } from '../../../../shared/browser/dom.ts'
import { themeSwitch } from '../../../../shared/browser/theme.ts'
import { copyButtons } from './copy-button.ts'
import { keys } from './keys.ts'
import { logInAgain, root } from './page-api.ts'
import { palette } from './palette.ts'
import { refresh } from './refresh.ts'
import { sendForms } from './send-form.ts'
import { pageTabs } from './tabs.ts'
import { followTimes } from './times.ts'

/** What one commit changes comes together. */
const QUIET_MS = 30
/** The line says once that it is open, and once more after its first look. */
const OPENING_MS = 300
/** After a page that took long to be drawn, this many times as long passes before the next. */
const REST = 5
/** A part of a page that is drawn for all says after how many seconds it is worth asking again. */
const every = (): number =>
  Number(document.querySelector<HTMLElement>('[data-live][data-every]')?.dataset.every ?? 0) * 1000

let restUntil = 0
async function renew(): Promise<void> {
  const began = performance.now()
  await refresh()
  const now = performance.now()
  restUntil = now + Math.max(every(), REST * (now - began))
}

/** Tells this page of changes for as long as it is open; the browser comes back by itself when the line breaks. */
function listen(): void {
  if (document.querySelector('[data-live]') === null) return
  const line = part('#live')
  let soon = false
  let quietMs = OPENING_MS
  const changes = new EventSource(`${root}ui/live`)
  changes.addEventListener('open', () => line.replaceChildren('● live'))
  changes.addEventListener('changed', () => {
    if (soon) return
    soon = true
    setTimeout(
      () => {
        soon = false
        quietMs = QUIET_MS
        if (!document.hidden) void renew()
      },
      Math.max(quietMs, restUntil - performance.now()),
    )
  })
  changes.addEventListener('error', () => {
    line.replaceChildren('○ the line is broken; connecting again …')
    // Refused, so it does not come back by itself: the session has expired, or a proxy answered.
    if (changes.readyState !== EventSource.CLOSED) return
    setTimeout(async () => {
      const me = await fetch(`${root}auth/me`, { cache: 'no-store' }).catch(() => undefined)
      if (me?.status === 401 && !(await logInAgain())) return
      listen()
      void refresh()
    }, 3000)
  })
}

// What came while the page was hidden was not shown.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refresh()
})
// What is counted by the hour changes with the clock as well.
setInterval(() => {
  if (!document.hidden && every() > 0) void renew()
}, 60_000)
copyButtons()
sendForms()
followTimes()
themeSwitch()
keys()
pageTabs()
palette()
listen()

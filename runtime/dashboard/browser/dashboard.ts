import { part } from '../../../shared/browser/dom.ts'
import { logInAgain, root } from './page-api.ts'
import { refresh } from './refresh.ts'
import { sendForms } from './send-form.ts'

const QUIET_MS = 300

/** Tells this page of changes for as long as it is open; the browser comes back by itself when the line breaks. */
function listen(): void {
  if (document.querySelector('[data-live]') === null) return
  const line = part('#live')
  let soon = false
  const changes = new EventSource(`${root}ui/live`)
  changes.addEventListener('open', () => line.replaceChildren('● live'))
  changes.addEventListener('changed', () => {
    if (soon) return
    soon = true
    setTimeout(() => {
      soon = false
      if (!document.hidden) void refresh()
    }, QUIET_MS)
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
sendForms()
listen()

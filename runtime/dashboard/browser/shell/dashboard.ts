import { part } from '../../../../shared/browser/dom.ts'
import { themeSwitch } from '../../../../shared/browser/theme.ts'
import { copyButtons } from './copy-button.ts'
import { keys } from './keys.ts'
import { renewLogin, root } from './page-api.ts'
import { pageStream } from './page-stream.ts'
import { palette } from './palette.ts'
import { refresh } from './refresh.ts'
import { sendForms } from './send-form.ts'
import { pageTabs } from './tabs.ts'
import { followTimes } from './times.ts'

/** What changes in one moment, such as a run that begins and one that ends, is drawn once. */
const QUIET_MS = 30
/** After a page that took long to be drawn, this many times as long passes before the next. */
const REST = 5
const LONGEST_REST_MS = 2000

let restUntil = 0
let isDue = false

/** Looks again at once, or as soon as the rest of the last look is over. */
function lookSoon(): void {
  if (isDue) return
  isDue = true
  setTimeout(
    () => {
      isDue = false
      if (!document.hidden) void renew()
    },
    Math.max(QUIET_MS, restUntil - performance.now()),
  )
}

async function renew(): Promise<void> {
  const began = performance.now()
  await refresh(true)
  const now = performance.now()
  restUntil = now + Math.min(REST * (now - began), LONGEST_REST_MS)
}

// On a phone the menu is one line, wider than the screen.
document.querySelector('#menu [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
copyButtons()
sendForms()
followTimes()
themeSwitch()
keys()
pageTabs()
palette()
const { listen } = pageStream({
  path: 'ui/live',
  wanted: () => document.querySelector('[data-live]') !== null,
  opened(changes) {
    const state = part('#live')
    changes.addEventListener('open', () => state.replaceChildren('● live'))
    changes.addEventListener('changed', lookSoon)
    changes.addEventListener('error', () => state.replaceChildren('○ the line is broken; connecting again …'))
  },
  // The session has expired, or a proxy answered.
  refused() {
    setTimeout(async () => {
      const me = await fetch(`${root}auth/me`, { cache: 'no-store' }).catch(() => undefined)
      if (me?.status === 401 && !(await renewLogin())) return
      listen()
      void refresh()
    }, 3000)
  },
})
// What came while the page was hidden was not shown.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refresh()
})

import { el, part, table } from '../../../../shared/browser/dom.ts'
import { root } from '../shell/page-api.ts'

interface Fire {
  at: string
  local: string
  offset: string
}

const QUIET_MS = 300
const own = Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const ownZone = own.resolvedOptions().timeZone
let asked = 0
let waiting: ReturnType<typeof setTimeout> | undefined

/** The next ten times of what is written, in its zone and in the one of this browser, with a word where a clock is put. */
async function preview(form: HTMLFormElement): Promise<void> {
  const shown = part('#fires', form)
  const turn = ++asked
  const given = new FormData(form)
  const cronExpr = String(given.get('cronExpr') ?? '').trim()
  if (cronExpr === '') {
    shown.replaceChildren(el('p', { class: 'hint' }, 'Write an expression to see when it fires.'))
    return
  }
  const timezone = String(given.get('timezone') ?? '').trim()
  const query = new URLSearchParams({ cronExpr, count: '10', ...(timezone !== '' && { timezone }) })
  const answer = await fetch(`${root}ui/api/v1/schedules/preview?${query}`).catch(() => undefined)
  const body: unknown = await answer?.json().catch(() => undefined)
  if (turn !== asked) return
  if (!answer?.ok) {
    const words = (body as { error?: string } | undefined)?.error ?? 'The runtime does not answer. Is it running?'
    shown.replaceChildren(el('p', { class: 'bad' }, words))
    return
  }
  const fires = body as Fire[]
  const rows = fires.map(({ at, local, offset }, i) => {
    const before = fires[i - 1]
    const moved = before !== undefined && before.offset !== offset
    const word = moved ? `⚠ the clock is put from ${before.offset} to ${offset} before this` : ''
    return [
      `${local.replace('T', ' ')} ${offset}`,
      own.format(new Date(at)),
      word && el('span', { class: 'warn' }, word),
    ]
  })
  shown.replaceChildren(
    table('The next ten times', [`In ${timezone || 'its zone'}`, `Here (${ownZone})`, 'Clocks'], rows),
  )
}

// Where there is no agent yet, there is no form.
const form = document.querySelector<HTMLFormElement>('#schedule')
if (form !== null) {
  form.addEventListener('input', () => {
    clearTimeout(waiting)
    waiting = setTimeout(() => void preview(form), QUIET_MS)
  })
  void preview(form)
}

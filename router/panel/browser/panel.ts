import { el, part } from '../../../shared/browser/dom.ts'
import { themeSwitch } from '../../../shared/browser/theme.ts'
import { addressOf, type PanelView, viewOf } from './address.ts'
import { ApiFault, panelApi } from './api.ts'
import { flowView } from './flow.ts'
import { calibrationView, gatesView, healthView, ladderView, providersView, routesView } from './overview.ts'
import { savingsView } from './savings-chart.ts'
import { followTail } from './tail.ts'
import { traceDetail } from './trace-detail.ts'
import { traceList } from './trace-list.ts'
import { exportView, verifyView } from './verify-view.ts'

const NAME = 'waybill-router-key'

/** The key for as long as the tab is open: in memory, and in the session storage so that a reload keeps it. */
function sessionKey(storage: () => Storage) {
  let key = tried(() => storage().getItem(NAME) ?? undefined)
  return {
    get: () => key,
    set(value: string | undefined): void {
      key = value
      tried(() => (value === undefined ? storage().removeItem(NAME) : storage().setItem(NAME, value)))
    },
  }
}

/** A browser that is set to store nothing throws; the key is then in memory only. */
function tried<T>(what: () => T): T | undefined {
  try {
    return what()
  } catch {
    return undefined
  }
}

const DAY_MS = 86_400_000

const key = sessionKey(() => sessionStorage)
const api = panelApi(key.get)
const keyForm = part<HTMLFormElement>('#key')
const keyText = part<HTMLInputElement>('#key-text')
const problem = part('#problem')
const period = part<HTMLSelectElement>('#window')

const said = (words: string) => part('#said').replaceChildren(words)
const bodyOf = (id: string) => part(`#${id} > .body`)

/** What went wrong before is no news once something else is asked for. */
const forgetProblem = () => {
  problem.hidden = true
}

/** Where a key would help the person is asked for one; anything else is said as it is. */
function failed(error: unknown): void {
  if (error instanceof ApiFault && error.status === 401) {
    askForKey(error.message)
    return
  }
  problem.hidden = false
  problem.replaceChildren(error instanceof Error ? error.message : String(error))
}

function askForKey(reason: string): void {
  part('#key-reason').replaceChildren(reason)
  keyForm.hidden = false
  keyText.focus()
}

let place = viewOf(location)

/** A new entry in the browser's history, so that its way back leads to what was shown before. */
function goTo(change: Partial<PanelView>): void {
  place = { ...place, ...change }
  const to = addressOf(place)
  if (new URL(to, document.baseURI).href !== location.href) history.pushState(null, '', to)
}

const detail = traceDetail({ api, failed, closed: () => goTo({ trace: undefined }) })
function open(id: string): void {
  forgetProblem()
  goTo({ trace: id })
  void detail.open(id)
}
const list = traceList({ api, open, said, failed, asked: forgetProblem, filtered: filters => goTo({ filters }) })
const tail = followTail({
  api,
  said: words => part('#live').replaceChildren(words),
  changed: () => list.showNewer().catch(failed),
})
verifyView({ api, open, failed })
exportView()

function since(): string | undefined {
  if (period.value === '') return undefined
  return new Date(Date.now() - (Number(period.value) - 1) * DAY_MS).toISOString().slice(0, 10)
}

/** Of a time or a key that was left meanwhile nothing is shown. */
let figuresAsked = 0

async function showFigures(): Promise<void> {
  const turn = ++figuresAsked
  const window = { since: since() }
  const [evals, savings, { providers }] = await Promise.all([
    api.evals(window),
    api.savings({ ...window, group: 'day' }),
    api.capabilities(),
  ])
  if (turn !== figuresAsked) return
  bodyOf('health').replaceChildren(...healthView(evals, savings))
  bodyOf('providers').replaceChildren(...providersView(providers))
  bodyOf('savings').replaceChildren(...savingsView(savings))
  bodyOf('routes').replaceChildren(...routesView(evals))
  bodyOf('ladder').replaceChildren(...ladderView(evals), ...flowView(evals))
  bodyOf('gates').replaceChildren(...gatesView(evals.gates))
  bodyOf('calibration').replaceChildren(...calibrationView(evals.calibration))
}

/** What to do where nothing has come through yet. */
function firstSteps(): HTMLElement[] {
  const here = new URL('.', document.baseURI).href.replace(/\/$/, '')
  const line = (words: string) => el('code', {}, words)
  return [
    el('h2', {}, 'No call has come through this router yet'),
    el('p', {}, 'Point a client at it and use it as before, then reload:'),
    el('pre', {}, line(`ANTHROPIC_BASE_URL=${here} your-agent\n`), line(`OPENAI_BASE_URL=${here}/v1 your-agent`)),
    el(
      'p',
      {},
      'Nothing is changed on the way. To save money, give the router a ladder of models: ',
      line('router serve --config routing.toml'),
      '.',
    ),
  ]
}

async function load(): Promise<void> {
  forgetProblem()
  const main = part('main')
  main.setAttribute('aria-busy', 'true')
  try {
    // The list first: it is one question however long the history is, and the sums behind it are not.
    const any = await list.show()
    keyForm.hidden = true
    part('#empty').hidden = any
    part('#empty').replaceChildren(...(any ? [] : firstSteps()))
    performance.mark('traces-shown')
    tail.start()
    await showFigures()
    performance.mark('figures-shown')
  } catch (error) {
    failed(error)
  } finally {
    main.removeAttribute('aria-busy')
  }
}

/** Nothing that another key has shown stays on the page. */
function useKey(value: string | undefined): void {
  figuresAsked++
  tail.stop()
  key.set(value)
  keyText.value = ''
  said('')
  part('#older').hidden = true
  for (const body of document.querySelectorAll('section.card > .body')) body.replaceChildren()
  void load()
}

keyForm.addEventListener('submit', event => {
  event.preventDefault()
  useKey(keyText.value.trim() || undefined)
})
part('#forget-key').addEventListener('click', () => useKey(undefined))
part('#change-key').addEventListener('click', () =>
  askForKey(key.get() === undefined ? 'No key is in use.' : 'A key is in use.'),
)
part('#reload').addEventListener('click', () => void load())
period.addEventListener('change', () => {
  forgetProblem()
  goTo({ days: period.value })
  void showFigures().catch(failed)
})
part('#find').addEventListener('submit', event => {
  event.preventDefault()
  open(part<HTMLInputElement>('#find-id').value.trim())
})

/** A page that knows of a call leads to its trace, and every list of traces has its address. */
function arrive(): void {
  place = viewOf(location)
  list.fill(place.filters)
  period.value = place.days ?? '30'
  if (period.selectedIndex < 0) period.value = '30'
  if (place.trace === undefined) detail.close()
  else void detail.open(place.trace)
}
// A change behind the `#` raises this event as well.
window.addEventListener('popstate', () => {
  const before = JSON.stringify([place.filters, place.days])
  arrive()
  if (JSON.stringify([place.filters, place.days]) !== before) void load()
})
// On a phone the menu is one line, wider than the screen.
document.querySelector('#menu [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
themeSwitch()
arrive()
void load()

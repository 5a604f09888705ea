import { el } from '../../../../shared/browser/dom.ts'
import { visible } from '../../../../shared/browser/visible-text.ts'
import { toast } from '../shell/toast.ts'

/** A list of runs as it was asked for, under a name. This browser keeps them, for each tenant. */
interface View {
  name: string
  query: string
}

const MOST = 20

const key = (): string => `waybill-views ${document.documentElement.dataset.tenant ?? ''}`

function stored(): View[] {
  try {
    const all: unknown = JSON.parse(localStorage.getItem(key()) ?? '[]')
    return Array.isArray(all) ? all.filter((one): one is View => isView(one)).slice(0, MOST) : []
  } catch {
    return []
  }
}

function isView(value: unknown): value is View {
  const { name, query } = (value ?? {}) as Partial<View>
  return typeof name === 'string' && typeof query === 'string'
}

/** The links to saved views, and what saves this one. */
export function savedViews(): void {
  const box = document.querySelector<HTMLElement>('#views')
  if (box === null) return
  const now = queryOf(location.search)

  function draw(): void {
    const views = stored()
    const links = views.map(view => {
      const remove = el('button', { type: 'button', class: 'copy', 'aria-label': `Forget the view ${view.name}` }, '×')
      remove.addEventListener('click', () => {
        keep(without(view))
        toast(`The view ${visible(view.name)} is deleted.`, () => keep([...without(view), view]))
      })
      const link = el(
        'a',
        { href: `?${view.query}`, 'aria-current': view.query === now ? 'true' : undefined },
        visible(view.name),
      )
      return el('span', { class: 'view' }, link, remove)
    })
    const isNew = box?.dataset.savable !== undefined && !views.some(({ query }) => query === now) && views.length < MOST
    box?.replaceChildren(...links, ...(isNew ? [saveForm()] : []))
  }

  function saveForm(): HTMLElement {
    const name = el('input', {
      required: true,
      maxlength: 60,
      placeholder: 'Name of this view',
      'aria-label': 'Name of this view',
    })
    const form = el('form', { class: 'inline' }, name, el('button', {}, 'Save view'))
    form.addEventListener('submit', event => {
      event.preventDefault()
      const view = { name: name.value, query: now }
      keep([...without(view), view])
    })
    return form
  }

  /** As they are now: another tab may have changed them since they were drawn. */
  const without = ({ name }: View): View[] => stored().filter(one => one.name !== name)

  function keep(views: readonly View[]): void {
    localStorage.setItem(key(), JSON.stringify(views))
    draw()
  }

  draw()
}

/** What the list is asked for, without the page of it. */
function queryOf(search: string): string {
  const asked = new URLSearchParams(search)
  asked.delete('cursor')
  asked.delete('new')
  asked.delete('from')
  return new URLSearchParams([...asked].filter(([, value]) => value !== '')).toString()
}

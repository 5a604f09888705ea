/** Tabs of a page: one panel is seen at a time, and the arrows go from tab to tab. */
export function tabs(list: HTMLElement, opened: (name: string) => void = () => {}): { open: (name: string) => void } {
  const all = [...list.querySelectorAll<HTMLElement>('[role=tab]')]

  function open(name: string, focus = false): void {
    for (const tab of all) {
      const isOpen = tab.dataset.tab === name
      tab.setAttribute('aria-selected', String(isOpen))
      tab.tabIndex = isOpen ? 0 : -1
      document.getElementById(`panel-${tab.dataset.tab}`)?.classList.toggle('open', isOpen)
      if (isOpen && focus) tab.focus()
      if (isOpen) show(tab)
    }
  }

  /** On a phone the tabs are one line, wider than the screen. */
  function show(tab: HTMLElement): void {
    list.scrollLeft = tab.offsetLeft - list.offsetLeft - (list.clientWidth - tab.offsetWidth) / 2
  }

  for (const tab of all) if (tab.getAttribute('aria-selected') === 'true') show(tab)

  list.addEventListener('click', event => {
    const tab = event.target instanceof Element ? event.target.closest<HTMLElement>('[role=tab]') : null
    // To be opened in another place.
    if (tab === null || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    open(tab.dataset.tab ?? '')
    opened(tab.dataset.tab ?? '')
  })
  list.addEventListener('keydown', event => {
    const at = all.findIndex(tab => tab.getAttribute('aria-selected') === 'true')
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key]
    const next = to === undefined ? undefined : all[to % all.length]
    if (next === undefined) return
    event.preventDefault()
    open(next.dataset.tab ?? '', true)
    opened(next.dataset.tab ?? '')
  })
  return { open }
}

/** The tabs that the address of the page names: they come back with a reload and by the browser's way back. */
export function pageTabs(): void {
  const list = document.querySelector<HTMLElement>('[role=tablist][data-tabs]')
  if (list === null) return
  const first = list.querySelector<HTMLElement>('[aria-selected=true]')?.dataset.tab ?? ''
  const { open } = tabs(list, name => {
    const to = new URL(location.href)
    to.searchParams.set('tab', name)
    if (to.href !== location.href) history.pushState(null, '', to)
  })
  window.addEventListener('popstate', () => open(new URLSearchParams(location.search).get('tab') ?? first))
}

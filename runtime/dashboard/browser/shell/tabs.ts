/** Tabs of a page: one panel is seen at a time, and the arrows go from tab to tab. */
export function tabs(list: HTMLElement): { open: (name: string) => void } {
  const all = [...list.querySelectorAll<HTMLElement>('[role=tab]')]

  function open(name: string, focus = false): void {
    for (const tab of all) {
      const isOpen = tab.dataset.tab === name
      tab.setAttribute('aria-selected', String(isOpen))
      tab.tabIndex = isOpen ? 0 : -1
      document.getElementById(`panel-${tab.dataset.tab}`)?.classList.toggle('open', isOpen)
      if (isOpen && focus) tab.focus()
    }
  }

  list.addEventListener('click', event => {
    const tab = event.target instanceof Element ? event.target.closest<HTMLElement>('[role=tab]') : null
    if (tab) open(tab.dataset.tab ?? '')
  })
  list.addEventListener('keydown', event => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    const at = all.findIndex(tab => tab.getAttribute('aria-selected') === 'true')
    const next = by === undefined ? undefined : all[(at + by + all.length) % all.length]
    if (next === undefined) return
    event.preventDefault()
    open(next.dataset.tab ?? '', true)
  })
  return { open }
}

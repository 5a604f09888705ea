/** What the page shows stands in its address: the filters as its query, the open trace behind the `#`. */
export interface PanelView {
  filters: Readonly<Record<string, string>>
  /** Days of the figures; empty: all time. */
  days: string | undefined
  trace: string | undefined
}

const FILTERS = ['mode', 'served_from', 'route', 'session', 'since'] as const

export function viewOf({ search, hash }: Pick<URL, 'search' | 'hash'>): PanelView {
  const asked = new URLSearchParams(search)
  const filters = FILTERS.flatMap(name => {
    const value = asked.get(name)?.trim()
    return value ? [[name, value] as const] : []
  })
  return {
    filters: Object.fromEntries(filters),
    days: asked.get('days') ?? undefined,
    trace: /^#trace=([\w-]{1,128})$/.exec(hash)?.[1],
  }
}

/** The address of that place, relative to the page. */
export function addressOf({ filters, days, trace }: PanelView): string {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''))
  if (days !== undefined) query.set('days', days)
  const search = query.size === 0 ? '' : `?${query}`
  return `panel${search}${trace === undefined ? '' : `#trace=${encodeURIComponent(trace)}`}`
}

import { html } from 'hono/html'

/** Icons of both services, drawn for it: lines of one width on a grid of 20 by 20. */
export const ICONS = {
  overview: 'M3 16.5h14M5 13V9M10 13V4M15 13V7',
  runs: 'M10 2.5a7.5 7.5 0 1 1 0 15a7.5 7.5 0 0 1 0-15zM8.5 7v6l4.5-3z',
  approvals: 'M10 2.5l6.5 2.5v4.5c0 4-2.7 6.8-6.5 8c-3.8-1.2-6.5-4-6.5-8V5zM7 10l2.2 2.2L13 8',
  agents: 'M4.5 7.5h11v8h-11zM10 7.5V4M10 3.5v0M7.5 11v1.5M12.5 11v1.5M2.5 10.5v2.5M17.5 10.5v2.5',
  sessions: 'M3 4.5h14v9.5H9.5L6 17v-3H3zM6.5 8h7M6.5 10.7h4.5',
  schedules: 'M10 2.5a7.5 7.5 0 1 1 0 15a7.5 7.5 0 0 1 0-15zM10 6v4.3l2.8 1.7',
  connectors: 'M7 3v4M13 3v4M5 7h10v3a5 5 0 0 1-10 0zM10 15v3',
  nodes: 'M3.5 4h13v5h-13zM3.5 11h13v5h-13zM6.5 6.5v0M6.5 13.5v0M10 6.5h4M10 13.5h4',
  settings: 'M3 6h8M15 6h2M13 4v4M3 14h2M9 14h8M7 12v4',
  router: 'M3 10h4l4-5h5M7 10l4 5h5M14 3l2.5 2L14 7M14 13l2.5 2l-2.5 2',
  add: 'M10 4v12M4 10h12',
  close: 'M5 5l10 10M15 5L5 15',
  again: 'M16 10a6 6 0 1 1-1.8-4.3M16 3v3.5h-3.5',
  compare: 'M3.5 4h5v12h-5zM11.5 4h5v12h-5z',
  done: 'M4 10.5l4 4L16 6',
  remove: 'M4 6h12M8 6V4h4v2M5.5 6l.8 10.5h7.4L14.5 6M8.5 9v4.5M11.5 9v4.5',
  search: 'M9 3.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11zM13 13l4 4',
  undo: 'M4 8h8a4 4 0 0 1 0 8H8M7 4.5L3.5 8L7 11.5',
  chat: 'M3 4.5h14v9.5H9.5L6 17v-3H3z',
} as const

export type IconName = keyof typeof ICONS

/** Every icon once, unseen: what shows one refers to it. */
export const ICON_SPRITE = html`<svg class="unseen" aria-hidden="true" focusable="false">${Object.entries(ICONS).map(
  ([name, path]) => html`<symbol id="i-${name}" viewBox="0 0 20 20"><path d="${path}"></path></symbol>`,
)}</svg>`

/** Beside words that say the same. */
export function icon(name: IconName) {
  return html`<svg class="icon" aria-hidden="true"><use href="#i-${name}"></use></svg>`
}

import type { Context } from 'hono'

/** Where the dashboard reaches the same operations with its cookie. */
export const DASHBOARD_API = '/ui/api'

/** The path of an operation as the endpoint table writes it, on whichever of its two mounts it was called. */
export function pathOf(c: Context): string {
  const { path } = c.req
  return path.startsWith(`${DASHBOARD_API}/`) ? path.slice(DASHBOARD_API.length) : path
}

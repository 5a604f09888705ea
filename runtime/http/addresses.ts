import type { Context } from 'hono'

/** The address of this service as browsers know it, without a slash at its end. */
export function homeOf(context: Context, publicUrl: string | undefined): string {
  return (publicUrl ?? new URL(context.req.url).origin).replace(/\/+$/, '')
}

/** Where the dashboard reaches the same operations with its cookie. */
export const DASHBOARD_API = '/ui/api'

/** The path of an operation as the endpoint table writes it, on whichever of its two mounts it was called. */
export function pathOf(c: Context): string {
  const { path } = c.req
  return path.startsWith(`${DASHBOARD_API}/`) ? path.slice(DASHBOARD_API.length) : path
}

import type { Context } from 'hono'

/** The address of this service as browsers know it, without a slash at its end. */
export function homeOf(context: Context, publicUrl: string | undefined): string {
  return (publicUrl ?? new URL(context.req.url).origin).replace(/\/+$/, '')
}

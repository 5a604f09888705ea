import type { Context } from 'hono'

/**
 * Nothing but this service's own files runs, and no text becomes markup but the pages that the service itself made: the browser refuses
 * it, whatever a module does. Frames are refused because a page in one could be clicked without being seen.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types waybill-pages"

export function guard(c: Context): void {
  c.header('content-security-policy', POLICY)
  c.header('x-content-type-options', 'nosniff')
  c.header('referrer-policy', 'same-origin')
  c.header('cache-control', 'no-store')
}

/** For what pages load. Their policy is the page's; only a picture can be opened as a document of its own. */
export function guardFile(c: Context): void {
  if (c.req.path.endsWith('.svg')) c.header('content-security-policy', POLICY)
  c.header('x-content-type-options', 'nosniff')
}

/** How a page names the folder that the dashboard stands in, from where it stands itself. */
export function rootOf(c: Context): string {
  return '../'.repeat(c.req.path.split('/').length - 2) || './'
}

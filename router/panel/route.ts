import { Hono } from 'hono'
import { getCookie } from 'hono/cookie'
import { ApiError } from '../../shared/http/api-error.ts'
import { panelPage } from './page.ts'
import { PANEL_POLICY } from './policy.ts'

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** `/panel` and the files that it loads. The page holds no data, so it needs no key; what it shows it asks the API for. */
export function panelRoute(dashboard: () => string | undefined) {
  const load = async () => (await import('./files.gen.ts')).panelFiles
  return new Hono()
    .use('/panel/*', async (c, next) => {
      await next()
      c.header('content-security-policy', PANEL_POLICY)
      c.header('x-content-type-options', 'nosniff')
      c.header('referrer-policy', 'no-referrer')
      // A new version of the router must not meet modules of the old one.
      c.header('cache-control', 'no-cache')
    })
    .get('/panel', async c => {
      // Of this name, whatever the port: the choice that was made in the dashboard holds here.
      const chosen = getCookie(c, 'wb_theme')
      const theme = chosen === 'light' || chosen === 'dark' ? chosen : undefined
      return c.html(panelPage(Object.keys(await load()), { dashboard: dashboard(), theme }))
    })
    .get('/panel/:file', async c => {
      const files = await load()
      const name = c.req.param('file')
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
      if (type === undefined || !Object.hasOwn(files, name))
        throw new ApiError('not_found', `the panel has no file ${name}`)
      return c.body(files[name]!, 200, { 'content-type': type })
    })
}

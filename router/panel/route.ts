import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { panelPage } from './page.ts'
import { PANEL_POLICY } from './policy.ts'

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** `/panel` and the files that it loads. The page holds no data, so it needs no key; what it shows it asks the API for. */
export function panelRoute() {
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
    .get('/panel', async c => c.html(panelPage(Object.keys(await load()))))
    .get('/panel/:file', async c => {
      const files = await load()
      const name = c.req.param('file')
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
      if (type === undefined || !Object.hasOwn(files, name))
        throw new ApiError('not_found', `the panel has no file ${name}`)
      return c.body(files[name]!, 200, { 'content-type': type })
    })
}

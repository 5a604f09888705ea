import { Hono } from 'hono'
import { getCookie } from 'hono/cookie'
import { browserFiles } from '../../shared/http/browser-files.ts'
import { panelPage } from './page.ts'
import { PANEL_POLICY } from './policy.ts'

/** `/panel` and the files that it loads. The page holds no data, so it needs no key; what it shows it asks the API for. */
export function panelRoute(dashboard: () => string | undefined) {
  const load = async () => (await import('./files.gen.ts')).panelFiles
  const files = browserFiles({ load, gzip: packed })
  return new Hono()
    .use('/panel/*', async (c, next) => {
      await next()
      c.header('content-security-policy', PANEL_POLICY)
      c.header('x-content-type-options', 'nosniff')
      c.header('referrer-policy', 'no-referrer')
    })
    .get('/panel', async c => {
      // Of this name, whatever the port: the choice that was made in the dashboard holds here.
      const chosen = getCookie(c, 'wb_theme')
      c.header('cache-control', 'no-cache')
      const theme = chosen === 'light' || chosen === 'dark' ? chosen : undefined
      return c.html(panelPage(Object.keys(await load()), { dashboard: dashboard(), theme }))
    })
    .get('/panel/:file', c => files(c, c.req.param('file')))
}

/** Of what every host has, since the panel is served by all of them. */
async function packed(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

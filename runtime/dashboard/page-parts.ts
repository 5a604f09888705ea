import type { Context } from 'hono'
import { raw } from 'hono/html'
import { takesGzip } from '../../shared/http/browser-files.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import type { Overview } from '../../shared/wire/runtime/overview.ts'
import type { Login } from '../auth/dashboard/login-access.ts'
import { toUserAnswer } from '../auth/dashboard/user-store.ts'
import type { Ask } from './ask.ts'
import type { PagesDeps } from './deps.ts'
import type { Html, Page } from './page.ts'
import { menuOf, rootOf } from './shell.ts'

/** What of a page changes: all of it but the frame, which has the token of the login. */
export interface PageParts {
  title: string
  menu: Html
  body: Html
  etag: string
}

/** What a page that is open sends when it looks again: `told` of a change, or `now`, after an act of its reader. No other site can make a browser send it. */
const LOOK = 'x-look'
const FRESH_MS = 2000
const MOST = 200

export const isRefresh = (c: Context): boolean => c.req.header(LOOK) !== undefined

type Deps = Pick<PagesDeps, 'live' | 'monotonic' | 'now' | 'routerPanel' | 'gzip'>

/** Draws pages, and where many look at a change in a tenant each of them once for all who may see the same. */
export function pageParts({ live, monotonic, now, routerPanel, gzip }: Deps) {
  const made = new Map<string, { untilMs: number; parts: Promise<PageParts> }>()
  const packed = new WeakMap<PageParts, Uint8Array<ArrayBuffer>>()

  async function menu(root: string, page: Page, ask: Ask): Promise<Html> {
    const hour = await ask.maybe<Overview>('/v1/overview?range=1h')
    return menuOf(root, page.menu, routerPanel?.(), hour && { ...hour.open, failed: hour.total.failed })
  }

  async function draw(c: Context, page: Page, { user }: Login, ask: Ask): Promise<PageParts> {
    const root = rootOf(c)
    const [{ title, body }, pages] = await Promise.all([
      page.render({
        ask,
        user: toUserAnswer(user),
        root,
        now: now(),
        param: name => c.req.param(name) ?? '',
        query: name => c.req.query(name) || undefined,
        router: routerPanel?.(),
      }),
      menu(root, page, ask),
    ])
    const [first, rest] = [String(pages), String(await body)]
    return { title, menu: raw(first), body: raw(rest), etag: `W/"${sha256Hex(first + rest).slice(0, 24)}"` }
  }

  /** The key has to name everything that decides what a page shows: it follows from tenant and role, and from no person. */
  function drawnOnce(c: Context, page: Page, login: Login, ask: Ask): Promise<PageParts> {
    const { tenantId, role } = login.user
    const { pathname, search } = new URL(c.req.url)
    const key = `${role} ${tenantId} ${live.mark(tenantId)} ${pathname}${search}`
    const nowMs = monotonic()
    const known = made.get(key)
    if (known && known.untilMs > nowMs) return known.parts
    const parts = draw(c, page, login, ask)
    const entry = { untilMs: nowMs + FRESH_MS, parts }
    made.delete(key)
    const [oldest] = made.keys()
    if (made.size >= MOST && oldest !== undefined) made.delete(oldest)
    made.set(key, entry)
    parts.catch(() => made.get(key) === entry && made.delete(key))
    return parts
  }

  return {
    menu,
    of: (c: Context, page: Page, login: Login, ask: Ask): Promise<PageParts> =>
      c.req.header(LOOK) === 'told' && !page.personal && live.isCrowded(login.user.tenantId)
        ? drawnOnce(c, page, login, ask)
        : draw(c, page, login, ask),
    /** Answers a look. What was drawn for all is packed once for all. */
    send(c: Context, parts: PageParts): Response {
      c.header('etag', parts.etag)
      if (c.req.header('if-none-match') === parts.etag) return c.body(null, 304)
      const text = `${parts.menu}${parts.body}`
      c.header('vary', 'accept-encoding')
      c.header('content-type', 'text/html; charset=UTF-8')
      if (gzip === undefined || !takesGzip(c)) return c.body(text)
      const bytes = packed.get(parts) ?? gzip(text)
      packed.set(parts, bytes)
      c.header('content-encoding', 'gzip')
      return c.body(bytes)
    },
  }
}

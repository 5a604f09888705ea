import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { html } from 'hono/html'
import { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import { readBody } from '../../shared/http/body-limit.ts'
import { browserFiles } from '../../shared/http/browser-files.ts'
import { packedAnswers } from '../../shared/http/packed-answers.ts'
import { sseResponse } from '../../shared/http/sse-write.ts'
import { jsonBody } from '../../shared/http/validate.ts'
import { equalSecrets } from '../../shared/sign/sha256.ts'
import { type TenantChoice, tenantChoice } from '../../shared/wire/runtime/auth.ts'
import { MOST_DOCUMENT_CHARACTERS } from '../../shared/wire/runtime/connector.ts'
import {
  csrfTokenOf,
  type Login,
  loginAccess,
  masked,
  newToken,
  refuseWithoutCsrfToken,
} from '../auth/dashboard/login-access.ts'
import { toUserAnswer } from '../auth/dashboard/user-store.ts'
import { refuseWithoutScope } from '../auth/gate.ts'
import type { Surveying } from '../connectors/openapi/survey.ts'
import type { Connection, RuntimeHttpEnv } from '../http/http-env.ts'
import { asking, PageFault } from './ask.ts'
import type { PagesDeps } from './deps.ts'
import { invitePage, loginPage, setupPage } from './entry-pages.ts'
import { checkManifest, manifestCheck, manifestText, readManifestText } from './manifest-check.ts'
import type { Page } from './page.ts'
import { isRefresh, pageParts } from './page-parts.ts'
import { pages } from './pages.ts'
import { guard, guardFile, rootOf, shell, type Theme } from './shell.ts'

/** Before a login: holds what the form of the login page must carry. */
const FORM_COOKIE = 'wb_form'
const MOST_FORM_BYTES = 16_384

/** This very service, for what the pages show. */
type InnerFetch = (request: Request, connection?: Connection) => Promise<Response>
type Logins = ReturnType<typeof loginAccess>

/** The pages of the dashboard, what they load, and the forms that work without a script. */
export function pagesRoute(deps: PagesDeps & { fetch: InnerFetch }) {
  const { users, live, clients, now, monotonic, maxBodyBytes, heartbeatMs, routerPanel, gzip, fetch } = deps
  const logins = loginAccess(users, now)
  const parts = pageParts({ live, monotonic, now, routerPanel, gzip })
  const files = browserFiles({ load: async () => (await import('./files.gen.ts')).dashboardFiles, gzip })

  async function show(c: Context, page: Page): Promise<Response> {
    const root = rootOf(c)
    const login = await loginIn(logins, c)
    if (login === undefined) {
      if (!(await users.hasAnybody())) return see(c, `${root}setup`)
      const { pathname, search } = new URL(c.req.url)
      return see(c, `${root}login?${new URLSearchParams({ next: `${pathname.slice(1)}${search}` })}`)
    }
    const ask = asking(fetch, c.req.raw)
    const frame = {
      root,
      theme: themeOf(c),
      person: { user: toUserAnswer(login.user), csrfToken: masked(login.csrfToken) },
    }
    try {
      const { title, menu, body, etag } = await parts.of(c, page, login, ask)
      const scripts = ['dashboard.js', ...(page.scripts ?? [])]
      return c.html(shell({ ...frame, scripts, title, menu, body, etag }))
    } catch (error) {
      if (!(error instanceof PageFault)) throw error
      const menu = await parts.menu(root, page, ask)
      const body = html`<h1>This cannot be shown</h1><p class="notice bad">${error.message}</p><p><a href="${root}${page.path.split('/')[1] ?? ''}">Back to ${page.menu}</a></p>`
      const status = error.status === 403 ? 403 : 404
      return c.html(shell({ ...frame, scripts: ['dashboard.js'], title: 'Error', menu, body }), status)
    }
  }

  /** A page that is open looks again: it has its frame, and gets the rest where that is another than what it has. */
  async function look(c: Context, page: Page): Promise<Response> {
    try {
      return parts.send(c, await parts.of(c, page, await logins(c), asking(fetch, c.req.raw)))
    } catch (error) {
      if (!(error instanceof PageFault)) throw error
      return c.body(null, error.status === 403 ? 403 : 404)
    }
  }

  // A host that packs answers itself gets them as they are.
  const packed: MiddlewareHandler = gzip === undefined ? (_, next) => next() : packedAnswers

  const route = new Hono<RuntimeHttpEnv>()
    .get('/ui/files/:file', c => {
      guardFile(c)
      return files(c, c.req.param('file'))
    })
    .get('/ui/live', async c => {
      const { user, holds } = await logins(c)
      clients.refuseBeyond(user.tenantId)
      const changes = (gone: AbortSignal) => clients.counted('page', user.tenantId, live.follow(user.tenantId, gone))
      return sseResponse(changes, { retryMs: 1500, heartbeatMs, admitted: holds })
    })
    .route('/', entryRoute({ ...deps, logins }))
    .route('/', editorRoute(logins, maxBodyBytes))

  for (const page of pages) {
    route.get(page.path, packed, c => {
      guard(c)
      return isRefresh(c) ? look(c, page) : show(c, page)
    })
  }
  return route
}

type EntryDeps = Pick<PagesDeps, 'users' | 'publicUrl' | 'takesBootstrapKey'> & { logins: Logins; fetch: InnerFetch }

/** The ways in and out: the first owner, an invitation, and the forms of a login and a logout, which work without a script. */
function entryRoute({ users, publicUrl, takesBootstrapKey, logins, fetch }: EntryDeps) {
  function loginForm(c: Context, { email, problem, tenants, ...asked }: LoginForm) {
    const token = newToken()
    const secure = new URL(publicUrl ?? c.req.url).protocol === 'https:'
    setCookie(c, FORM_COOKIE, token, { path: '/', httpOnly: true, sameSite: 'Strict', secure, maxAge: 3600 })
    const next = nextOf(asked.next ?? c.req.query('next'))
    const body = loginPage({ root: rootOf(c), csrf: csrfTokenOf(token), next, email: email ?? '', problem, tenants })
    return shell({ theme: themeOf(c), title: 'Log in', root: rootOf(c), scripts: [], body })
  }

  return (
    new Hono<RuntimeHttpEnv>()
      .get('/setup', async c => {
        guard(c)
        const root = rootOf(c)
        const hasOwner = await users.hasOwner()
        return c.html(
          shell({
            theme: themeOf(c),
            title: 'Set up',
            root,
            scripts: hasOwner ? [] : ['setup.js'],
            body: setupPage(root, { hasOwner, takesKey: takesBootstrapKey }),
          }),
        )
      })
      .get('/invite', c => {
        guard(c)
        const root = rootOf(c)
        return c.html(
          shell({
            theme: themeOf(c),
            title: 'Set your password',
            root,
            scripts: ['invite.js'],
            body: invitePage(root),
          }),
        )
      })
      // Where a vendor's consent page leads back to, by the contract.
      .get('/ui/connectors', c => see(c, `${rootOf(c)}connectors${new URL(c.req.url).search}`))
      .get('/login', async c => {
        guard(c)
        const root = rootOf(c)
        if ((await loginIn(logins, c)) !== undefined) return see(c, root)
        if (!(await users.hasAnybody())) return see(c, `${root}setup`)
        return c.html(loginForm(c, {}))
      })
      .post('/login', async c => {
        guard(c)
        const root = rootOf(c)
        const given = await formOf(c)
        const sent = getCookie(c, FORM_COOKIE)
        if (sent === undefined || !equalSecrets(given.get('csrf') ?? '', csrfTokenOf(sent))) {
          return c.html(
            loginForm(c, { email: given.get('email'), problem: 'This form was too old: send it again.' }),
            403,
          )
        }
        const inner = await fetch(
          new Request(new URL('/auth/login', c.req.url), {
            method: 'POST',
            headers: { 'content-type': 'application/json', cookie: c.req.header('cookie') ?? '' },
            body: JSON.stringify({
              email: given.get('email') ?? '',
              password: given.get('password') ?? '',
              tenantId: given.get('tenantId') ?? undefined,
            }),
          }),
          c.env,
        )
        if (inner.status === 409) {
          const { tenants } = tenantChoice.parse(await inner.json())
          const problem = 'Your e-mail and password match several workspaces. Choose one, and enter the password again.'
          return c.html(loginForm(c, { email: given.get('email'), next: given.get('next'), problem, tenants }), 409)
        }
        if (!inner.ok) {
          const { error } = (await inner.json()) as { error: string }
          return c.html(loginForm(c, { email: given.get('email'), problem: error }), inner.status === 429 ? 429 : 401)
        }
        for (const cookie of inner.headers.getSetCookie()) c.header('set-cookie', cookie, { append: true })
        return see(c, root + nextOf(given.get('next') ?? undefined))
      })
      .post('/logout', async c => {
        guard(c)
        const root = rootOf(c)
        const csrf = (await formOf(c)).get('csrf') ?? ''
        const headers = { cookie: c.req.header('cookie') ?? '', 'x-csrf-token': csrf }
        const inner = await fetch(new Request(new URL('/auth/logout', c.req.url), { method: 'POST', headers }), c.env)
        if (inner.status === 403) throw new ApiError('csrf', 'this form was not made by this login: reload the page')
        for (const cookie of inner.headers.getSetCookie()) c.header('set-cookie', cookie, { append: true })
        return see(c, `${root}login`)
      })
  )
}

/** What the editors of a manifest and of a connector ask about a text before it is published. */
function editorRoute(logins: Logins, maxBodyBytes: number) {
  return new Hono<RuntimeHttpEnv>()
    .post('/ui/manifest/check', jsonBody(manifestCheck, maxBodyBytes), async c => {
      refuseWithoutCsrfToken(c, await logins(c))
      return c.json(checkManifest(c.req.valid('json').manifest))
    })
    .post('/ui/manifest/read', jsonBody(manifestText, maxBodyBytes), async c => {
      refuseWithoutCsrfToken(c, await logins(c))
      return c.json(await readManifestText(c.req.valid('json').text))
    })
    .post('/ui/openapi/look', jsonBody(openapiLook, maxBodyBytes), async c => {
      const login = await logins(c)
      refuseWithoutCsrfToken(c, login)
      // What an install of it would ask for: to read a document is the work of an install.
      refuseWithoutScope(login.principal, ['connectors:write'])
      return c.json(await lookIntoOpenapi(c.req.valid('json').openapi))
    })
}

/** Undefined without a valid login. */
async function loginIn(logins: Logins, c: Context): Promise<Login | undefined> {
  try {
    return await logins(c)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'unauthorized') return undefined
    throw error
  }
}

interface LoginForm {
  email?: string | null
  next?: string | null
  problem?: string
  tenants?: TenantChoice['tenants']
}

/** What the reader chose; read here, so that no page is shown in other colours first. */
function themeOf(c: Context): Theme | undefined {
  const chosen = getCookie(c, 'wb_theme')
  return chosen === 'light' || chosen === 'dark' ? chosen : undefined
}

/** Relative, so that it holds behind a proxy that serves this under a path. */
function see(c: Context, to: string): Response {
  return c.body(null, 303, { location: to })
}

/** Where to go after a login: a page of this dashboard. It is written behind the root, so no text can lead elsewhere. */
function nextOf(next: string | undefined): string {
  return next !== undefined && /^[a-z]+(?:\/[\w.%-]+)?(?:\?[\w.%&=:+-]*)?$/.test(next) ? next : ''
}

async function formOf(c: Context): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(c.req.header('content-type') ?? '')) {
    throw new ApiError('validation_failed', 'send the fields of the form as application/x-www-form-urlencoded')
  }
  return new URLSearchParams(new TextDecoder().decode(await readBody(c.req.raw, MOST_FORM_BYTES)))
}

const openapiLook = z.strictObject({ openapi: z.string().max(MOST_DOCUMENT_CHARACTERS) })

/** What an install of a document could have, without installing it: it is read by the same code. */
async function lookIntoOpenapi(text: string): Promise<Surveying> {
  // Few ever need the reader of YAML and what is behind it.
  const { survey } = await import('../connectors/openapi/survey.ts')
  return survey(text)
}

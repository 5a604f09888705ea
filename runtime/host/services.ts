import { EnvError } from '../../shared/env/read-env.ts'
import type { Service } from '../../shared/host/serve.ts'
import { untilSignal } from '../../shared/host/until-signal.ts'
import type { RuntimeParts, RuntimeService } from './node.ts'

export interface ServicesOptions {
  vars: Record<string, string | undefined>
  withRouter: boolean
  say: (line: string) => void
}

/** Starts the runtime, and the router beside it when asked, and drains both at the first signal. */
export async function runServices({ vars, withRouter, say }: ServicesOptions): Promise<void> {
  if (withRouter && (vars.PLATFORM_PROCESSES || '1') !== '1')
    throw new EnvError(
      'PLATFORM_PROCESSES: beside a router the runtime is one process: leave it unset, or start `runtime serve` without --with-router and `router serve` by itself.',
    )
  const stop = untilSignal()
  const running: Service[] = []
  const router = Promise.withResolvers<string>()
  let panel: string | undefined
  const parts = {
    ...(withRouter && routesByItself(vars) && { routerFetch: toRouter(router.promise) }),
    routerPanel: () => panel,
  }
  try {
    const runtime = await started(vars, parts)
    running.push(runtime)
    say(`runtime  ${runtime.origin}`)
    if (withRouter) {
      const defaults = {
        ROUTER_BIND: '127.0.0.1:8090',
        ...(!vars.ROUTER_DIRECTORY_URL && { ROUTER_DB: `${vars.PLATFORM_DATA_DIR || './data'}/router.db` }),
      }
      const { serveRouter } = await import('../../router/host/node.ts')
      const started = await serveRouter(
        { ...defaults, ...set(vars) },
        { dashboard: () => dashboardOf(vars, runtime.origin) },
      )
      running.push(started)
      router.resolve(started.origin)
      panel = `${started.origin}/panel`
      say(`router   ${started.origin}`)
    }
    if (runtime.setupLink !== undefined) {
      say(`setup    ${runtime.setupLink} (makes the first owner; for one hour, one use)`)
    }
    await stop
  } finally {
    await Promise.all(running.map(service => service.close()))
  }
}

async function started(vars: ServicesOptions['vars'], parts: RuntimeParts): Promise<RuntimeService> {
  if ((vars.PLATFORM_PROCESSES || '1') !== '1')
    return (await import('./processes/serve-configured.ts')).serveConfigured(vars)
  return (await import('./node.ts')).serveRuntime(vars, parts)
}

/** Where a browser reaches the dashboard: by its public name, or on this machine. */
function dashboardOf({ PLATFORM_PUBLIC_URL: known }: ServicesOptions['vars'], origin: string): string | undefined {
  if (known) return known.replace(/\/$/, '')
  return /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::|$)/.test(origin) ? origin : undefined
}

/**
 * A router chooses models by its config and calls them with its own keys. Without a config it would only pass `auto` on, and
 * one that asks its callers for keys has to be configured as a provider, with the key among its headers.
 */
function routesByItself(vars: ServicesOptions['vars']): boolean {
  return Boolean(vars.ROUTER_CONFIG) && !vars.ROUTER_KEYS
}

/** Calls of the runtime to the router beside it; one that comes before the router listens waits for it. */
function toRouter(origin: Promise<string>) {
  return async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url)
    return fetch(new Request(`${await origin}${pathname}${search}`, request))
  }
}

/** The variables that hold a value: an empty one must not hide a default. */
function set(vars: ServicesOptions['vars']): ServicesOptions['vars'] {
  return Object.fromEntries(Object.entries(vars).filter(([, value]) => value !== undefined && value !== ''))
}

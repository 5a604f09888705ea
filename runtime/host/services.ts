import type { Service } from '../../shared/host/serve.ts'
import { smallStart } from '../../shared/host/small-start.ts'
import { untilSignal } from '../../shared/host/until-signal.ts'

export interface ServicesOptions {
  vars: Record<string, string | undefined>
  withRouter: boolean
  say: (line: string) => void
}

/** Starts the runtime, and the router beside it when asked, and drains both at the first signal. */
export async function runServices({ vars, withRouter, say }: ServicesOptions): Promise<void> {
  const stop = untilSignal()
  const running: Service[] = []
  try {
    const runtime = await smallStart(async () => (await import('./node.ts')).serveRuntime(vars))
    running.push(runtime)
    say(`runtime  ${runtime.origin}`)
    if (withRouter) {
      const defaults = { ROUTER_BIND: '127.0.0.1:8090', ROUTER_DB: `${vars.PLATFORM_DATA_DIR || './data'}/router.db` }
      const router = await smallStart(async () =>
        (await import('../../router/host/node.ts')).serveRouter({ ...defaults, ...set(vars) }),
      )
      running.push(router)
      say(`router   ${router.origin}`)
    }
    if (runtime.setupLink !== undefined) {
      say(`setup    ${runtime.setupLink} (makes the first owner; for one hour, one use)`)
    }
    await stop
  } finally {
    await Promise.all(running.map(service => service.close()))
  }
}

/** The variables that hold a value: an empty one must not hide a default. */
function set(vars: ServicesOptions['vars']): ServicesOptions['vars'] {
  return Object.fromEntries(Object.entries(vars).filter(([, value]) => value !== undefined && value !== ''))
}

import type { Service } from '../../shared/host/serve.ts'
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
  const { serveRuntime } = await import('./node.ts')
  try {
    const runtime = await serveRuntime(vars)
    running.push(runtime)
    say(`runtime  ${runtime.origin}`)
    if (withRouter) {
      const { serveRouter } = await import('../../router/host/node.ts')
      const folder = vars.PLATFORM_DATA_DIR || './data'
      const router = await serveRouter({
        ROUTER_BIND: '127.0.0.1:8090',
        ROUTER_DB: `${folder}/router.db`,
        ...set(vars),
      })
      running.push(router)
      say(`router   ${router.origin}`)
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

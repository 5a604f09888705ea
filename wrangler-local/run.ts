import { installSqld } from '../scripts/sqld.ts'
import { untilSignal } from '../shared/host/until-signal.ts'
import { startSqld } from '../tests/backends/sqld.ts'
import { startWorker } from './workers.ts'

/** Both services in workerd against a libSQL server with throw-away data, until a signal. */
const stop = untilSignal()
await installSqld()
// One for each: both have a table of the name `budgets`.
const [sqld, routerSqld] = await Promise.all([startSqld(), startSqld()])
const runtime = await startWorker('runtime', { port: 8080, vars: { PLATFORM_DATABASE_URL: sqld.primaryUrl } })
const router = await startWorker('router', { port: 8090, vars: { ROUTER_DB: routerSqld.primaryUrl } })
console.log(
  `runtime  ${runtime.url.origin}\nrouter   ${router.url.origin}\ndata     ${sqld.primaryUrl} and ${routerSqld.primaryUrl} (thrown away at the end)`,
)
await stop
await Promise.all([runtime.close(), router.close()])
await Promise.all([sqld.stop(), routerSqld.stop()])

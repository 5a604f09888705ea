import { type Bind, toOrigin } from '../../shared/http/bind.ts'
import { routerHealth } from '../../shared/wire/router/health.ts'

/** What listens at an address. */
export type Listener = 'nobody' | 'router' | 'router not ready' | 'another program'

const PROBE_MS = 3000

/** Asks an address for its health: only an answer that names the router counts as a router. */
export async function probeRouter(origin: string): Promise<Listener> {
  let answer: Response
  try {
    answer = await fetch(`${origin}/healthz`, { redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) })
  } catch (error) {
    return refused(error) ? 'nobody' : 'another program'
  }
  const body: unknown = await answer.json().catch(() => undefined)
  const health = routerHealth.safeParse(body)
  if (!health.success) return 'another program'
  return answer.ok ? 'router' : 'router not ready'
}

/** Where a router listens by default, alone and beside a runtime (`npm start`). */
export const USUAL_ROUTERS = [
  { host: '127.0.0.1', port: 8080 },
  { host: '127.0.0.1', port: 8090 },
] as const satisfies Bind[]

/** Where no setting names the router: the usual address at which one answers, else the first. */
export async function usualRouter(usual: readonly [Bind, ...Bind[]] = USUAL_ROUTERS): Promise<Bind> {
  for (const bind of usual) if ((await probeRouter(toOrigin(bind))) === 'router') return bind
  return usual[0]
}

/** No listener. A program that takes the connection and then says nothing, or nothing of HTTP, is another listener. */
function refused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  if (cause instanceof AggregateError) return cause.errors.every(one => codeOf(one) === 'ECONNREFUSED')
  return codeOf(cause) === 'ECONNREFUSED'
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined)

/** Where programs of this machine reach a router that listens there. */
export function reachableOrigin({ host, port }: Bind): string {
  const near = host === '0.0.0.0' || host === 'localhost' ? '127.0.0.1' : host === '::' ? '::1' : host
  return toOrigin({ host: near, port })
}

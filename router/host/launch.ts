import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { bindSchema, toOrigin } from '../../shared/http/bind.ts'
import { nearest } from '../../shared/wire/nearest.ts'
import { inboundApis } from '../../shared/wire/router/conventions.ts'
import { AGENTS, agentNamed, baseUrls } from '../onboard/agents.ts'
import { ownService, serviceAad } from './own-service.ts'
import { probeRouter, reachableOrigin, USUAL_ROUTERS, usualRouter } from './probe-router.ts'

type Vars = Readonly<Record<string, string | undefined>>

export interface LaunchAsk {
  vars: Vars
  agent: string
  args: readonly string[]
}

/** Runs a program on this terminal with the addresses of the router, and gives its exit code. */
export async function launch({ vars, agent, args }: LaunchAsk): Promise<{ code: number; failure?: string }> {
  const origin = await routerOrigin(vars)
  if (origin === undefined) return { code: 2, failure: 'ROUTER_BIND: expected host:port or [v6]:port.' }
  if ((await probeRouter(origin)) !== 'router') {
    return {
      code: 3,
      failure: `No router answers at ${vars.ROUTER_BIND ? origin : looked(origin)}: start one with \`router serve\` or \`router onboard --apply\`.`,
    }
  }
  const known = agentNamed(agent)
  const variables = baseUrls(origin, inboundApis, known === undefined ? [] : [known])
  const env: Record<string, string | undefined> = { ...vars }
  for (const { name, value } of variables) env[name] = value
  if (known?.config !== undefined) {
    const { variable, withAddress } = known.config
    const text = withAddress(origin, vars[variable])
    if (text === undefined) return { code: 2, failure: `${variable}: expected a JSON object without comments.` }
    env[variable] = text
  }
  const child = spawn(known?.command ?? agent, [...(known?.args?.(origin) ?? []), ...args], { stdio: 'inherit', env })
  // A terminal sends these to both; what ends the program is the program's business. SIGTERM comes to us alone.
  const ignored = () => undefined
  const passed = (signal: NodeJS.Signals) => void child.kill(signal)
  process.on('SIGINT', ignored).on('SIGQUIT', ignored).on('SIGTERM', passed).on('SIGHUP', passed)
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', error => {
        if ('code' in error && (error.code === 'ENOENT' || error.code === 'EACCES'))
          resolve({ code: 2, failure: `There is no program called ${agent} on the PATH${meantAgent(agent)}` })
        else reject(error)
      })
      child.once('exit', (code, signal) => resolve({ code: code ?? 128 + constants.signals[signal ?? 'SIGTERM'] }))
    })
  } finally {
    process.off('SIGINT', ignored).off('SIGQUIT', ignored).off('SIGTERM', passed).off('SIGHUP', passed)
  }
}

/** Where a router was looked for in vain. */
function looked(origin: string): string {
  const usual = USUAL_ROUTERS.map(toOrigin)
  return origin === usual[0] ? usual.join(' or ') : origin
}

/** The agent whose name was mistyped. */
function meantAgent(given: string): string {
  const meant = nearest(
    given,
    AGENTS.map(({ command }) => command),
  )
  return meant === undefined || meant === given ? '.' : `: did you mean ${meant}?`
}

async function routerOrigin(vars: Vars): Promise<string | undefined> {
  if (!vars.ROUTER_BIND) return (await ownService(serviceAad(vars)))?.origin ?? toOrigin(await usualRouter())
  const bind = bindSchema.safeParse(vars.ROUTER_BIND)
  if (!bind.success) return undefined
  return reachableOrigin(bind.data)
}

import { resolve } from 'node:path'
import { type Bind, bindSchema, toOrigin } from '../../shared/http/bind.ts'
import { type InboundApi, inboundApis } from '../../shared/wire/router/conventions.ts'
import { AGENTS, type Agent, baseUrls } from '../onboard/agents.ts'
import { BlockError, withBlock, withoutBlock } from '../onboard/marked-block.ts'
import { linesThatSet, type Shell, shellLines, type Variable } from '../onboard/shell-lines.ts'
import { ownService, type ServiceAad, serviceAad } from './own-service.ts'
import { probeRouter, reachableOrigin, USUAL_ROUTERS, usualRouter } from './probe-router.ts'
import { detectShell, findProgram, readStartUpFile, type StartUpFile, startUpPath } from './start-up-file.ts'

type Vars = Readonly<Record<string, string | undefined>>

/** Onboarding is refused and nothing was changed. The message says what to do instead. */
export class OnboardError extends Error {
  override name = 'OnboardError'
}

export interface OnboardAsk {
  vars: Vars
  provider: InboundApi | 'both' | undefined
  /** Only this agent, whether it is found or not. */
  agent: Agent | undefined
  port: number | undefined
}

export interface OnboardPlan {
  shell: Shell
  agents: { agent: Agent; path: string | undefined }[]
  origin: string
  /** `start`: a router is to be started; `own`: the one that onboard started runs; `other`: another program started it. */
  service: 'start' | 'own' | 'other'
  place: ServiceAad
  /** Environment of the router that is to be started. */
  serviceVars: Vars
  variables: Variable[]
  file: StartUpFile
  after: string
}

/** Everything that onboard would do; throws when it must not. Changes nothing. */
export async function onboardPlan({ vars, provider, agent: only, port }: OnboardAsk): Promise<OnboardPlan> {
  const agents = []
  for (const agent of only === undefined ? AGENTS : [only]) {
    const path = await findProgram(agent.command, vars)
    if (path !== undefined || agent === only) agents.push({ agent, path })
  }
  const place = serviceAad(vars)
  const { bind, origin, service } = await plannedService(place, vars, port)
  const found = agents.map(({ agent }) => agent)
  const variables = baseUrls(origin, apisOf(provider, found), found)
  const { shell, path } = detectShell(vars)
  if (shell === undefined) {
    const settings = variables.map(({ name, value }) => `${name}=${value}`).join(' ')
    throw new OnboardError(
      `The shell ${path || 'of this account'} is none that onboard knows (bash, zsh, fish): set ${settings} yourself, or use \`router launch\`.`,
    )
  }
  const file = await readStartUpFile(startUpPath(shell, vars))
  const pidFile = service === 'other' ? undefined : place.pidFile
  return {
    shell,
    agents,
    origin,
    service,
    place,
    variables,
    file,
    serviceVars: serviceVars(vars, bind, place),
    after: newText(file, shellLines(shell, { variables, pidFile }), variables),
  }
}

function apisOf(provider: OnboardAsk['provider'], agents: readonly Agent[]): readonly InboundApi[] {
  if (provider === 'both') return inboundApis
  if (provider !== undefined) return [provider]
  return agents.length === 0 ? inboundApis : inboundApis.filter(api => agents.some(agent => agent.apis.includes(api)))
}

function newText(file: StartUpFile, lines: readonly string[], variables: readonly Variable[]): string {
  try {
    const [taken] = linesThatSet(withoutBlock(file.text ?? '').text ?? '', variables)
    if (taken !== undefined) {
      throw new OnboardError(
        `${file.path} sets ${taken.name} itself, in line ${taken.line}, and that is not overwritten: take the line out first. If it names a provider of yours, give that address to the router as ROUTER_UPSTREAM_MESSAGES or ROUTER_UPSTREAM_CHAT.`,
      )
    }
    const bytes = lines.map(line => Buffer.from(line, 'utf8').toString('latin1'))
    return withBlock(file.text, bytes, file.missingFolders)
  } catch (error) {
    if (error instanceof BlockError) throw new OnboardError(`${file.path} ${error.message}.`, { cause: error })
    throw error
  }
}

async function plannedService(place: ServiceAad, vars: Vars, port: number | undefined) {
  if (vars.ROUTER_KEYS)
    throw new OnboardError('ROUTER_KEYS is set, and a base address carries no key: unset it to onboard this shell.')
  const own = await ownService(place)
  const given = await givenBind(vars, own !== undefined || port !== undefined)
  const { host } = given
  const keeps = own !== undefined && port === undefined && !vars.ROUTER_BIND
  const number = keeps ? Number(new URL(own.origin).port) : (port ?? given.port)
  const bind = { host, port: number }
  const origin = reachableOrigin(bind)
  if (own !== undefined && own.origin !== origin) {
    throw new OnboardError(
      `A router that onboard started runs at ${own.origin} (process ${own.pid}): run \`router offboard\` before you move it.`,
    )
  }
  const listener = await probeRouter(origin)
  if (listener === 'another program')
    throw new OnboardError(`Port ${number} is held by another program, which is no router: choose one with --port.`)
  if (listener === 'router not ready' || (own !== undefined && listener === 'nobody'))
    throw new OnboardError(`The router at ${origin} is not ready: try again in a moment, or run \`router offboard\`.`)
  const service = listener === 'nobody' ? ('start' as const) : own === undefined ? ('other' as const) : ('own' as const)
  return { bind: toOrigin(bind).slice('http://'.length), origin, service }
}

async function givenBind({ ROUTER_BIND }: Vars, isElsewhere: boolean): Promise<Bind> {
  if (!ROUTER_BIND) return isElsewhere ? USUAL_ROUTERS[0] : usualRouter()
  const bind = bindSchema.safeParse(ROUTER_BIND)
  if (!bind.success) throw new OnboardError('ROUTER_BIND: expected host:port or [v6]:port.')
  return bind.data
}

/** The service observes, whatever this shell says, and finds its files from a folder of its own. */
function serviceVars(vars: Vars, bind: string, { folder }: ServiceAad): Vars {
  const { ROUTER_CONFIG: _, ROUTER_KEYS: __, ROUTER_DB: db, ...rest } = vars
  const absolute = (path: string | undefined) => path && resolve(path)
  const store = !db ? resolve(folder, 'router.db') : /^[a-z][a-z0-9+.-]+:|^:memory:/i.test(db) ? db : resolve(db)
  return {
    ...rest,
    ROUTER_BIND: bind,
    ROUTER_DB: store,
    ROUTER_MODE: 'observe',
    ROUTER_SIGNING_KEY_FILE: absolute(rest.ROUTER_SIGNING_KEY_FILE),
    ROUTER_ANCHOR_FILE: absolute(rest.ROUTER_ANCHOR_FILE),
  }
}

import { Command, Option, UsageError } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import type { OnboardAsk, OnboardPlan } from '../host/onboard-plan.ts'

/** `router onboard`: programs of this shell come through a router of this machine. */
export class OnboardCommand extends Command {
  static override paths = [['onboard']]
  static override usage = Command.Usage({
    description:
      'Send the coding agents of this shell through a router that observes; shows the plan unless --apply is given.',
    details: `
      Finds the shell of this account (bash, zsh or fish) and the coding agents on it. --apply starts a router that only observes, and
      adds lines between two marks to the shell's start-up file, which set the base addresses while that router runs. Configs of agents
      are not changed. \`router offboard\` undoes all of it and leaves each file as it was, byte for byte.

      Exit code 1: refused, with the reason: another program holds the port, or the start-up file sets such an address itself.
    `,
    examples: [
      ['What it would do', '$0 onboard'],
      ['Do it, on another port', '$0 onboard --apply --port 9000'],
    ],
  })

  apply = Option.Boolean('--apply', false, { description: 'Do it.' })
  provider = Option.String('--provider', {
    description: 'messages, chat or both; default: what the agents found here speak.',
  })
  agent = Option.String('--agent', { description: 'Only this agent: claude-code, codex, aider or opencode.' })
  port = Option.String('--port', {
    description: 'Port of the router (that of ROUTER_BIND, else of the router at 8080 or 8090, else 8080).',
  })
  yes = Option.Boolean('--yes', false, { description: 'Do not ask again on a terminal.' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    const { onboardPlan } = await import('../host/onboard-plan.ts')
    const { env, stdout } = this.context
    const plan = await onboardPlan({ vars: env, ...(await this.asked()) })
    if (!this.json) stdout.write(await described(plan))
    const wanted = this.apply && (await this.confirmed())
    if (wanted) await carryOut(plan)
    if (this.json) stdout.write(jsonText({ applied: wanted, ...(await toJson(plan)) }) + '\n')
    else stdout.write(wanted ? await farewell(plan) : 'Nothing was changed. With --apply it is done.\n')
    return 0
  }

  private async asked(): Promise<Omit<OnboardAsk, 'vars'>> {
    const { AGENTS, agentNamed } = await import('../onboard/agents.ts')
    const { provider } = this
    if (provider !== undefined && provider !== 'messages' && provider !== 'chat' && provider !== 'both')
      throw new UsageError(`--provider takes messages, chat or both, not ${provider}.`)
    const agent = this.agent === undefined ? undefined : agentNamed(this.agent)
    if (this.agent !== undefined && agent === undefined)
      throw new UsageError(`--agent takes ${AGENTS.map(({ id }) => id).join(', ')}, not ${this.agent}.`)
    const port = this.port === undefined ? undefined : Number(this.port)
    if (port !== undefined && (!/^\d{1,5}$/.test(this.port ?? '') || port < 1 || port > 65_535))
      throw new UsageError(`--port takes a number from 1 to 65535, not ${this.port}.`)
    return { provider, agent, port }
  }

  private async confirmed(): Promise<boolean> {
    const { stdin, stdout } = this.context
    if (this.yes || this.json || !('isTTY' in stdin) || stdin.isTTY !== true) return true
    const { createInterface } = await import('node:readline/promises')
    const asking = createInterface({ input: stdin, output: stdout })
    try {
      return /^y(es)?$/i.test((await asking.question('Do it? [y/N] ')).trim())
    } finally {
      asking.close()
    }
  }
}

async function carryOut({ service, place, origin, serviceVars, file, after }: OnboardPlan): Promise<void> {
  const { startOwn, stopOwn } = await import('../host/own-service.ts')
  const { replaceStartUpFile } = await import('../host/start-up-file.ts')
  if (service === 'start') await startOwn({ place, origin, vars: serviceVars })
  if (after === file.text) return
  try {
    await replaceStartUpFile(file, after)
  } catch (error) {
    if (service === 'start') await stopOwn(place, 40_000)
    throw error
  }
}

const SERVICE: Record<OnboardPlan['service'], string> = {
  start: 'is started and observes',
  own: 'runs already, started by onboard',
  other: 'runs already, started by another program',
}

async function described(plan: OnboardPlan): Promise<string> {
  const { shell, agents, origin, service, place, serviceVars, file, after } = plan
  const lines = [
    `shell     ${shell}, which reads ${file.path}${file.real === file.path ? '' : ` (${file.real})`}`,
    ...(agents.length === 0 ? ['agents    none of claude, codex, aider, opencode is on the PATH'] : []),
    ...agents.map(
      ({ agent, path }) => `agent     ${agent.id}, ${path ?? 'not on the PATH'}${agent.note ? `; ${agent.note}` : ''}`,
    ),
    `router    ${origin} ${SERVICE[service]}`,
    ...(service === 'start' ? [`          traces in ${serviceVars.ROUTER_DB}, log in ${place.logFile}`] : []),
    ...(service === 'other' ? ['          new shells set its address also while it does not run'] : []),
    '',
  ]
  return `${lines.join('\n')}\n${after === file.text ? `${file.path} has these lines already.\n` : await diffOf(plan)}\n`
}

async function diffOf({ file, after }: OnboardPlan): Promise<string> {
  const { fileDiff } = await import('../host/file-diff.ts')
  return after === file.text ? '' : fileDiff(file.path, file.text, after)
}

async function farewell({ shell, file, variables, agents }: OnboardPlan): Promise<string> {
  const codex = agents.some(({ agent }) => agent.args !== undefined) ? ' Start codex with `router launch codex`.' : ''
  return (
    `Done. New ${shell} shells set ${variables.map(({ name }) => name).join(' and ')}; for this one: source ${file.path}\n` +
    `\`router offboard\` takes it back.${codex}\n`
  )
}

async function toJson(plan: OnboardPlan) {
  const { shell, agents, origin, service, variables, file, after } = plan
  return {
    shell,
    origin,
    service,
    variables,
    agents: agents.map(({ agent, path }) => ({ id: agent.id, path: path ?? null })),
    changes: after === file.text ? [] : [{ path: file.path, diff: await diffOf(plan) }],
  }
}

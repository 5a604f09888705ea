import { Command, Option, UsageError } from 'clipanion'
import { AWAITS_APPROVAL } from '../../shared/cli/exit-code.ts'
import { jsonText } from '../../shared/cli/json-text.ts'
import { styleOf } from '../../shared/cli/style.ts'
import type { RuntimeClient } from '../../shared/client/client.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { progress, unpricedText } from './progress.ts'
import { givenInput, isRefusal, ServiceCommand, WHERE } from './service-command.ts'
import { printable, spinner } from './terminal.ts'
import { timeText } from './verb.ts'

const RECONNECT_MS = 1000
/** After so long without an event the run is asked whether it waits for what no event says. */
const QUIET_MS = 2000
/** As a shell reports a program that Ctrl-C ended. */
const INTERRUPTED = 130

/** `runtime run`: starts a run and shows what it does until it ends. */
export class RunCommand extends ServiceCommand {
  static override paths = [['run']]
  static override usage = Command.Usage({
    description: 'Start a run and watch it to its end.',
    details: `
      ${WHERE}

      Shows each step on standard error as it ends, with its duration and the cost of the run so far. The output goes to standard
      output, so it can be piped. Ctrl-C does not stop the run: it goes on, and --watch shows it again.
    `,
    examples: [
      ['Ask an agent for something', '$0 run helper "Summarise the open issues."'],
      ['Give it an input of your own', `$0 run helper --input '{"customer":42}'`],
      ['Watch a run that was started elsewhere', '$0 run --watch 0190…'],
    ],
  })

  agent = Option.String({ name: 'agent', required: false })
  prompt = Option.String({ name: 'prompt', required: false })
  input = Option.String('--input', { description: 'The input as a JSON object, in place of a prompt.' })
  watch = Option.String('--watch', { description: 'The id of a run to watch instead of starting one.' })
  json = Option.Boolean('--json', false, { description: 'Print the whole run as JSON at its end.' })
  quiet = Option.Boolean('--quiet', false, { description: 'Do not show the steps.' })

  protected async act(client: RuntimeClient): Promise<number> {
    const { stderr } = this.context
    const id = this.watch ?? (await this.start(client))
    const params = { id }
    // An address or an id that is wrong is refused at once, and not waited for.
    if (this.watch !== undefined) await client.runs.get({ params })
    const spin = spinner(stderr)
    const tell = (line: string) => {
      if (this.quiet) return
      spin.stop()
      stderr.write(line + '\n')
      spin.start()
    }
    const shown = progress(styleOf(stderr, this.context.env))
    if (this.watch === undefined) tell(`run ${id}`)
    const leave = () => {
      spin.stop()
      stderr.write(`\nThe run goes on. runtime run --watch ${id} shows it again; runtime runs cancel ${id} stops it.\n`)
      process.exit(INTERRUPTED)
    }
    process.once('SIGINT', leave)
    const waiting = rateLimitWaits(client, id, tell)
    try {
      if (!this.quiet) spin.start()
      let lastEventId: string | undefined
      let isAway = false
      const onUnanswered = () => {
        if (!isAway) tell('The service does not answer. What comes once it does is shown here.')
        isAway = true
      }
      for (;;) {
        try {
          for await (const event of client.runs.events({ params }, { lastEventId, onUnanswered })) {
            isAway = false
            waiting.heard()
            lastEventId = event.id ?? lastEventId
            for (const line of shown.of(event.data)) tell(line)
            if (event.data.kind === 'step_waiting' && (await waits(client, id))) return AWAITS_APPROVAL
          }
        } catch (error) {
          // A service that is started again goes on with the run, and so does this.
          if (isRefusal(error)) throw error
        }
        const run = await client.runs.get({ params }).catch((error: unknown) => {
          if (isRefusal(error)) throw error
          return undefined
        })
        if (run && isTerminal(run.status)) {
          spin.stop()
          return this.end(run)
        }
        await new Promise(resolve => setTimeout(resolve, RECONNECT_MS))
      }
    } finally {
      process.off('SIGINT', leave)
      waiting.stop()
      spin.stop()
    }
  }

  private async start(client: RuntimeClient): Promise<string> {
    const { agent, prompt, input } = this
    if (agent === undefined) throw new UsageError('say which agent: runtime run AGENT "…"')
    if (prompt !== undefined && input !== undefined) throw new UsageError('give a prompt or --input, not both')
    const given = input === undefined ? { ...(prompt !== undefined && { prompt }) } : givenInput(input)
    return (await client.runs.create({ body: { agentName: agent, input: given } })).id
  }

  private end(run: Run): number {
    const { status, output = {}, error, costUsd, tokensIn, tokensOut, cancelReason, unpricedCalls } = run
    if (!this.quiet) {
      const cost = `${costUsd} USD${unpricedText(unpricedCalls)}`
      this.context.stderr.write(`${status}  ${tokensIn} tokens in, ${tokensOut} out, ${cost}\n`)
    }
    if (this.json) this.say(jsonText(run))
    else if (status === 'succeeded') {
      const { result, ...rest } = output
      const alone = typeof result === 'string' && Object.keys(rest).length === 0
      this.say(alone ? printable(result) : jsonText(output))
    }
    const why = error ? `${error.code}: ${error.message}` : cancelReason
    if (status !== 'succeeded' && why !== undefined) this.context.stderr.write(printable(why) + '\n')
    return status === 'succeeded' ? 0 : 1
  }
}

/** Says that the run waits for the rate limit of its provider, once for each wait. */
function rateLimitWaits(client: RuntimeClient, id: string, tell: (line: string) => void) {
  let isSaid = false
  const look = async () => {
    const { parked } = await client.runs.get({ params: { id }, query: { fields: 'summary' } })
    const isLimited = parked?.reason === 'rate_limit'
    if (isLimited && !isSaid) {
      const until = parked.until === undefined ? '' : `; next call ${timeText(parked.until)}`
      tell(`WAITS for the rate limit of its provider${until}`)
    }
    isSaid = isLimited
  }
  const timer = setInterval(() => void look().catch(() => undefined), QUIET_MS)
  return { heard: () => timer.refresh(), stop: () => clearInterval(timer) }
}

/**
 * Whether nothing goes on until a human decides; other steps of the run may still be at work. A run whose question was just answered is
 * waiting for a moment more, and goes on.
 */
async function waits(client: RuntimeClient, id: string): Promise<boolean> {
  const params = { id }
  for (;;) {
    const approvals = await client.approvals.ofRun({ params })
    if (!approvals.some(one => one.status === 'pending')) return false
    const { status } = await client.runs.get({ params, query: { fields: 'summary' } })
    if (status !== 'running') return status === 'waiting'
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

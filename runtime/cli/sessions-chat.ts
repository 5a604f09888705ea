import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'
import { Command, Option } from 'clipanion'
import { isTty } from '../../shared/cli/style.ts'
import { ClientError, type RuntimeClient } from '../../shared/client/client.ts'
import { pause } from '../../shared/client/send-call.ts'
import type { SessionEventData, SessionEventName } from '../../shared/wire/runtime/session.ts'
import { explanationOf, isRefusal, ServiceCommand } from './service-command.ts'
import { printable, type Spinner, spinner } from './terminal.ts'

const RECONNECT_MS = 1500

/** `runtime sessions chat`: a conversation with an agent of a running service. */
export class SessionsChatCommand extends ServiceCommand {
  static override paths = [['sessions', 'chat']]
  static override usage = Command.Usage({
    description: 'Talk to an agent of a running runtime.',
    details: `
      Opens a session over HTTP and sends each line as a message; the answer appears as the model writes it.
      The line /stop ends the session for good. /exit or the end of the input leaves it open, to be continued with --session.
      PLATFORM_URL and PLATFORM_API_KEY may give the address and the key.
    `,
    examples: [
      ['Talk to the agent named helper', '$0 sessions chat helper --key wb_live_…'],
      ['Go on with an earlier session', '$0 sessions chat helper --session 0190…'],
    ],
  })

  agent = Option.String({ name: 'agent' })
  override key = Option.String('--key', { description: 'An API key with sessions:write; default PLATFORM_API_KEY.' })
  session = Option.String('--session', { description: 'The id of a session to continue.' })

  protected async act(client: RuntimeClient): Promise<number> {
    const { stdin, stdout, stderr } = this.context
    const over = new AbortController()
    try {
      const { id } = await this.open(client)
      stderr.write(`session ${id}\n`)
      const hearing = listen(eventsOf(client, id, over.signal), stdout, spinner(stderr))
      const prompt = () => void (isTty(stdin) && stdout.write('> '))
      prompt()
      // Made only now: lines that come before the iteration starts are lost.
      for await (const line of createInterface({ input: stdin, terminal: false })) {
        if (line.trim() === '/exit') break
        if (line.trim() === '/stop') {
          await client.sessions.stop({ params: { id } })
          break
        }
        if (line.trim() !== '') await talk(client, id, line, hearing, stderr)
        if (hearing.stopped()) break
        prompt()
      }
      return 0
    } finally {
      over.abort()
      stdin.destroy()
    }
  }

  private open(client: RuntimeClient): Promise<{ id: string }> {
    const { agent, session } = this
    if (session === undefined) return client.sessions.create({ body: { agentName: agent } })
    return client.sessions.get({ params: { id: session } })
  }
}

type Heard = SessionEventData<SessionEventName>

/** What happens in a session until it is stopped, also while its service is started again. */
async function* eventsOf({ sessions }: RuntimeClient, id: string, signal: AbortSignal): AsyncGenerator<Heard> {
  let lastEventId: string | undefined
  for (;;) {
    try {
      for await (const event of sessions.events({ params: { id } }, { signal, lastEventId })) {
        lastEventId = event.id ?? lastEventId
        yield event.data
        if (event.event === 'session_stopped') return
      }
    } catch (error) {
      if (signal.aborted || isRefusal(error)) throw error
    }
    await pause(RECONNECT_MS, signal)
  }
}

/** One message and its answer. A refusal of the service is shown, and the conversation goes on. */
async function talk(client: RuntimeClient, id: string, line: string, hearing: Hearing, stderr: Writable) {
  const turn = hearing.begin()
  try {
    const { status, text, finish } = await client.sessions.message({ params: { id }, body: { content: line } })
    if (status === 'waiting') stderr.write('\n(waiting for a human: see GET /v1/approvals)\n')
    await (status === 'completed' ? hearing.complete(text) : turn.over)
    if (finish === 'truncated')
      stderr.write('(the answer was cut off: raise limits.maxOutputTokens, or ask for less)\n')
    if (finish === 'refused') stderr.write('(the model refused to answer)\n')
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    turn.end()
    stderr.write(explanationOf(error) + '\n')
  }
}

interface Hearing {
  begin(): { over: Promise<void>; end(): void }
  /** The answer came whole by another way: what was not heard of it yet is written. */
  complete(text: string): Promise<void>
  stopped(): boolean
}

/** How long the stream may be behind the answer to the message itself. */
const BEHIND_MS = 1000

/** Writes the received text to the terminal; a text that starts anew starts on a new line. */
function listen(events: AsyncIterable<Heard>, stdout: Writable, spin: Spinner): Hearing {
  let shown = ''
  let over = Promise.withResolvers<void>()
  let stopped = false

  const write = (text: string) => {
    if (text === '') return
    spin.stop()
    stdout.write(printable(text))
    shown += text
  }
  const anew = () => {
    if (shown !== '' && !shown.endsWith('\n')) stdout.write('\n')
    shown = ''
  }
  const finish = () => {
    spin.stop()
    anew()
    over.resolve()
  }
  const whole = (text: string) => {
    if (!text.startsWith(shown)) anew()
    write(text.slice(shown.length))
    finish()
  }

  void (async () => {
    for await (const event of events) {
      if ('delta' in event) {
        if (event.seq === 1) anew()
        write(event.delta)
      } else if ('text' in event) whole(event.text)
      else {
        stopped ||= 'reason' in event
        finish()
      }
    }
  })().catch(() => undefined)

  return {
    begin() {
      over = Promise.withResolvers<void>()
      shown = ''
      spin.start()
      return { over: over.promise, end: finish }
    },
    async complete(text) {
      const { promise } = over
      let timer: ReturnType<typeof setTimeout> | undefined
      const late = new Promise<'late'>(resolve => {
        timer = setTimeout(() => resolve('late'), BEHIND_MS)
      })
      if ((await Promise.race([promise, late])) === 'late') whole(text)
      clearTimeout(timer)
    },
    stopped: () => stopped,
  }
}

import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { requireBackend } from '../backends/require.ts'

const BROWSER = ['firefox-esr', 'firefox'].find(name => spawnSync(name, ['--version']).status === 0)

/** Whether tests in Firefox run here; see requireBackend. */
export function hasFirefox(): boolean {
  return requireBackend('firefox', BROWSER !== undefined, 'apt-get install firefox-esr')
}

interface Message {
  id?: number
  type: 'success' | 'error' | 'event'
  result?: unknown
  message?: string
  params?: { level: string; text: string }
}

/** A Firefox of its own with one page, driven over WebDriver BiDi, which it speaks itself. */
export async function openFirefox() {
  const profile = await mkdtemp(join(tmpdir(), 'waybill-firefox-'))
  const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0']
  const program = spawn(BROWSER!, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const gone = new Promise(resolve => program.once('exit', resolve))
  const address = await new Promise<string>((resolve, reject) => {
    program.once('exit', code => reject(new Error(`Firefox ended with ${code}`)))
    createInterface(program.stderr).on('line', line => {
      const [, found] = /WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  const socket = new WebSocket(`${address}/session`)
  await new Promise(resolve => socket.addEventListener('open', resolve, { once: true }))

  const said: string[] = []
  const asked = new Map<number, PromiseWithResolvers<unknown>>()
  socket.addEventListener('message', ({ data }) => {
    const { id, type, result, message, params } = JSON.parse(String(data)) as Message
    if (params !== undefined && ['error', 'warn'].includes(params.level)) said.push(params.text)
    if (id === undefined) return
    if (type === 'success') asked.get(id)?.resolve(result)
    else asked.get(id)?.reject(new Error(message))
    asked.delete(id)
  })

  let last = 0
  function send<T>(method: string, params: object): Promise<T> {
    const answer = Promise.withResolvers<unknown>()
    asked.set(++last, answer)
    socket.send(JSON.stringify({ id: last, method, params }))
    return answer.promise as Promise<T>
  }

  await send('session.new', { capabilities: {} })
  await send('session.subscribe', { events: ['log.entryAdded'] })
  const { contexts } = await send<{ contexts: { context: string }[] }>('browsingContext.getTree', {})
  const { context } = contexts[0]!

  /** The value of an expression in the page. */
  async function run<T>(expression: string): Promise<T> {
    const target = { context }
    const { result, exceptionDetails } = await send<{
      result?: { value: string }
      exceptionDetails?: { text: string }
    }>('script.evaluate', {
      expression: `(async () => JSON.stringify(await (${expression})) ?? 'null')()`,
      target,
      awaitPromise: true,
      userActivation: true,
    })
    if (result === undefined) throw new Error(`${expression}: ${exceptionDetails?.text}`)
    return JSON.parse(result.value) as T
  }

  return {
    run,
    goto: (url: string) => send('browsingContext.navigate', { context, url, wait: 'complete' }),
    async resize(width: number, height: number): Promise<void> {
      await send('browsingContext.setViewport', { context, viewport: { width, height } })
    },
    /** What the browser complained about since the last time this was asked: a breach of the page's policy, an uncaught error. */
    complaints: () => said.splice(0),
    async close(): Promise<void> {
      program.kill()
      await gone
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

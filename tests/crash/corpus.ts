import { StepFailure } from '../../runtime/execution/failure.ts'
import type { ModelAnswer, ModelCall, ModelRequest } from '../../runtime/execution/models/model.ts'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import type { ConnectorAction } from '../../runtime/execution/tools/connector-tool.ts'
import type { OutboundAnswer, OutboundRequest } from '../../runtime/execution/tools/http-request-tool.ts'
import type { ManifestInput } from '../../shared/wire/runtime/manifest.ts'

/** A run whose every step has a far end that writes down what reached it. */
export interface CrashCase {
  name: string
  manifest: ManifestInput
  agents?: Record<string, ManifestInput>
  contextTokens?: number
  /** The answer to the turn that follows `turn` earlier ones; every answer depends on the request alone. */
  answer: (turn: number, request: ModelRequest, call: ModelCall) => ModelAnswer
  signals?: readonly string[]
  /** How else than the undisturbed run it may end, when it was killed at a step that must not be repeated. */
  mayFail?: string
}

const get = (path: string) => ({ name: 'http_request', arguments: { url: `https://far.example/${path}` } })
const post = (path: string, body = 'x') => ({
  name: 'http_request',
  arguments: { url: `https://far.example/${path}`, method: 'POST', body },
})
const wait = (seconds: number) => ({ name: 'wait', arguments: { seconds } })

const egress = [{ host: 'far.example' }]
const retry = { backoffMs: 1, maxBackoffMs: 5 }
const inOrder = (answers: readonly ModelAnswer[]) => (turn: number) => {
  const answer = answers[turn]
  if (!answer) throw new Error(`nothing is scripted for turn ${turn + 1}`)
  return answer
}

export const corpus: readonly CrashCase[] = [
  {
    name: 'a loop of reads, timers and writes',
    manifest: { tools: ['wait', 'http_request'], egress, retry },
    answer: inOrder([
      says('', [get('a')]),
      says('', [wait(0)]),
      says('', [post('b')]),
      says('', [get('c')]),
      says('done'),
    ]),
  },
  {
    name: 'calls side by side',
    manifest: { tools: ['wait', 'http_request'], egress, retry },
    answer: inOrder([says('', [get('a'), post('b'), wait(0), get('c')]), says('done')]),
  },
  {
    name: 'failures that pass',
    manifest: { tools: ['http_request'], egress, retry },
    answer(turn, _request, { key }) {
      if (turn === 1 && key.endsWith(':1')) throw new StepFailure('overloaded', 'busy', { transient: true })
      return inOrder([says('', [get('flaky')]), says('done')])(turn)
    },
  },
  {
    name: 'a human who approves',
    manifest: { tools: ['http_request', 'ask_human'], egress, retry, approvals: { tools: ['http_request'] } },
    answer: inOrder([
      says('', [post('b')]),
      says('', [{ name: 'ask_human', arguments: { prompt: 'which one?' } }]),
      says('done'),
    ]),
  },
  {
    name: 'signals and a long timer',
    manifest: { tools: ['wait', 'wait_signal'], retry },
    signals: ['first', 'second'],
    answer: inOrder([
      says('', [{ name: 'wait_signal', arguments: { name: 'go' } }]),
      says('', [wait(1.05)]),
      says('', [{ name: 'wait_signal', arguments: { name: 'go' } }]),
      says('done'),
    ]),
  },
  {
    name: 'agents that call agents',
    manifest: { subAgents: [{ name: 'helper' }], retry },
    agents: { helper: { tools: ['http_request'], egress, retry } },
    answer(turn, { tools }) {
      const helper = tools.some(tool => tool.name === 'http_request')
      if (helper) return inOrder([says('', [get('h')]), says('helped')])(turn)
      const ask = { name: 'agent__helper', arguments: { prompt: 'help' } }
      return inOrder([says('', [ask, ask]), says('done')])(turn)
    },
  },
  {
    name: 'a confidence gate and a repaired output',
    manifest: {
      tools: ['http_request'],
      egress,
      retry,
      confidence: { threshold: 0.5, gates: ['tools'] },
      outputSchema: { type: 'object', required: ['n'], properties: { n: { type: 'number' } } },
    },
    answer(turn, { messages }) {
      const last = messages.at(-1)
      if (last?.role === 'user' && last.text.includes('"confidence"')) return says('{"confidence": 0.5}')
      return inOrder([says('', [post('b')]), says('no'), says('{"n": 1}')])(turn)
    },
  },
  {
    name: 'a conversation that is shortened, and an answer beside the journal',
    manifest: { tools: ['http_request'], egress, retry, limits: { maxOutputTokens: 16 } },
    contextTokens: 30_000,
    answer(turn, { system, messages }) {
      if (system.startsWith('You shorten')) return says('it was long')
      const first = messages[0]
      if (first?.role === 'user' && first.text.includes('it was long')) return says('done')
      return inOrder([says('', [get('small')]), says('', [get('large')])])(turn)
    },
  },
  {
    name: 'actions of a connector',
    manifest: { connectors: ['slack'], retry },
    answer: inOrder([
      says('', [{ name: 'slack__list_users' }]),
      says('', [{ name: 'slack__post_message' }, { name: 'slack__list_users' }]),
      says('done'),
    ]),
  },
  {
    name: 'a write that must not be repeated',
    manifest: { tools: [{ name: 'http_request', onInterrupted: 'fail' }], egress, retry },
    answer: inOrder([says('', [post('b')]), says('done')]),
    mayFail: 'step_uncertain',
  },
]

/** The actions of a connector: one that reads, and one that must not be done twice. */
export function remoteActions(reached: (what: string, key: string) => void): ConnectorAction[] {
  const action = (name: string, what: string, effect: 'read' | 'once'): ConnectorAction => ({
    connectorId: 'slack',
    name,
    about: what,
    effect,
    parameters: { type: 'object' },
    coerceArguments: given => given,
    async call(_given, _place, { key }) {
      reached(what, key)
      return { status: 200, headers: {}, body: what }
    },
  })
  return [action('list_users', 'GET list_users', 'read'), action('post_message', 'POST post_message', 'once')]
}

/** The far end of `http_request`; the same request always gets the same answer, but for one that is busy the first time. */
export function remoteRunEnd({ url, method, headers }: OutboundRequest): OutboundAnswer {
  const key = headers['idempotency-key'] ?? ''
  if (url.pathname === '/flaky' && key.endsWith(':1')) throw new StepFailure('busy', 'try again', { transient: true })
  const text = url.pathname === '/large' ? 'long '.repeat(60_000) : `${method} ${url.pathname}`
  return { status: 200, headers: {}, body: new TextEncoder().encode(text), truncated: false }
}

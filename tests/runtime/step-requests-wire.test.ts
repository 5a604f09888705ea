import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Step } from '../../shared/wire/runtime/run.ts'
import type { StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { completionFrames, completionOf, messageFrames, messageOf } from '../upstream/frames.ts'
import { answer, type Script, stream } from '../upstream/scripted.ts'
import { until } from './node-fixture.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

type Json = Record<string, unknown>

/** A request with the names of no provider: who said what, what was called with what, and what came of it. */
interface Plain {
  system: string
  turns: Json[]
  tools: Json[]
}

interface Dialect {
  provider: string
  model: string
  calls: (...calls: [name: string, given: Json][]) => Script
  says: (text: string) => Script
  thinks: (thinking: string, name: string, given: Json) => Script
  read: (body: Json) => Plain
}

const text = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : ((content ?? []) as Json[]).map(block => (block.type === 'text' ? String(block.text) : '')).join('')

const chat: Dialect = {
  provider: 'openai',
  model: 'openai/gpt-4.1-mini',
  calls: (...calls) => {
    const tool_calls = calls.map(([name, given], at) => ({
      id: `call_${at}`,
      type: 'function',
      function: { name, arguments: JSON.stringify(given) },
    }))
    return stream(completionFrames(completionOf([{ content: 'I call.', tool_calls }])))
  },
  says: said => stream(completionFrames(completionOf([{ content: said }]))),
  thinks: (reasoning_content, name, given) => {
    const tool_calls = [{ id: 'c', type: 'function', function: { name, arguments: JSON.stringify(given) } }]
    return stream(completionFrames(completionOf([{ reasoning_content, content: '', tool_calls }])))
  },
  read({ messages, tools = [] }) {
    const all = messages as Json[]
    return {
      system: text(all.find(({ role }) => role === 'system' || role === 'developer')?.content),
      turns: all.flatMap(({ role, content, tool_calls = [], tool_call_id }): Json[] => {
        if (role === 'system' || role === 'developer') return []
        if (role === 'tool') return [{ result: tool_call_id, content: text(content) }]
        const calls = (tool_calls as { id: string; function: { name: string; arguments: string } }[]).map(
          ({ id, function: { name, arguments: given } }) => ({ id, name, arguments: JSON.parse(given) }),
        )
        return [{ role, text: text(content), calls }]
      }),
      tools: (tools as { function: Json }[]).map(({ function: { name, description, parameters } }) => ({
        name,
        description,
        parameters,
      })),
    }
  },
}

/** A host of this dialect never gives an id twice. */
let made = 0

const messages: Dialect = {
  provider: 'anthropic',
  model: 'anthropic/claude-haiku-4-5',
  calls: (...calls) =>
    stream(
      messageFrames(
        messageOf([
          { type: 'text', text: 'I call.' },
          ...calls.map(([name, input]) => ({ type: 'tool_use', id: `toolu_${++made}`, name, input })),
        ]),
      ),
    ),
  says: said => stream(messageFrames(messageOf([{ type: 'text', text: said }]))),
  thinks: (thinking, name, input) => {
    const content = [
      { type: 'thinking', thinking, signature: 's' },
      { type: 'tool_use', id: 'c', name, input },
    ]
    return stream(messageFrames(messageOf(content)))
  },
  read: ({ system, messages: all, tools = [] }) => ({
    system: text(system),
    turns: (all as { role: string; content: unknown }[]).flatMap(({ role, content }): Json[] => {
      const blocks = (typeof content === 'string' ? [{ type: 'text', text: content }] : content) as Json[]
      const results = blocks.filter(({ type }) => type === 'tool_result')
      if (results.length > 0) {
        return results.map(one => ({ result: one.tool_use_id, content: text(one.content) }))
      }
      const calls = blocks.flatMap(({ type, id, name, input }) =>
        type === 'tool_use' ? [{ id, name, arguments: input }] : [],
      )
      return [{ role, text: text(blocks), calls }]
    }),
    tools: (tools as Json[]).map(({ name, description, input_schema }) => ({
      name,
      description,
      parameters: input_schema,
    })),
  }),
}

function told({ request }: StepRequest): Plain {
  return {
    system: request!.system.text,
    turns: request!.messages.flatMap((message): Json[] => {
      if (message.role === 'tool') return message.results.map(one => ({ result: one.callId, content: one.content }))
      const calls = message.role === 'assistant' ? message.toolCalls : []
      return [{ role: message.role, text: message.text, calls }]
    }),
    tools: request!.tools.map(one => ({ ...one })),
  }
}

describe.each([
  ['chat', chat],
  ['messages', messages],
])('what a step is said to have sent is what a provider of the dialect %s received', (_, dialect) => {
  let fixture: ProviderFixture
  const received = () => fixture.remote.seen.map(({ body }) => dialect.read(JSON.parse(body.toString()) as Json))
  const request = (id: string, stepId: string) =>
    fixture.json<StepRequest>(200, 'GET', `/v1/runs/${id}/steps/${stepId}/request`)

  beforeEach(async () => {
    fixture = await providerFixture()
    await fixture.configure(dialect.provider)
  })
  afterEach(() => fixture.close())

  it('in a loop with parallel calls, a call that a person refuses, one that does not fit, and a repeated question', async () => {
    const { remote } = fixture
    remote.queue(
      dialect.calls(['wait', { seconds: 0 }], ['wait', { seconds: 'soon' }]),
      dialect.calls(['wait_signal', { name: 'go' }]),
      answer(503, '{"error":{"message":"overloaded"}}'),
    )
    remote.always(dialect.says('Done, é<&>.'))
    const approvals = { tools: ['wait_signal'], onReject: 'continue' }
    const manifest = { systemPrompt: 'Be careful: é.', tools: ['wait', 'wait_signal'], approvals }
    const running = fixture.ran(dialect.model, manifest, 'Say hello to ann@example.com.')
    const asked = await until(async () => {
      const [one] = await fixture.json<{ id: string; runId: string }[]>(200, 'GET', '/v1/approvals?status=pending')
      return one
    }, 'a person is asked')
    await fixture.json(200, 'POST', `/v1/approvals/${asked.id}/reject`, { comment: 'not now' })
    const { run, steps } = await running
    expect(run.status).toBe('succeeded')
    const stepIds = modelSteps(steps)
    expect(stepIds).toEqual(['model-1', 'model-2', 'model-3'])
    const all = received()
    // The third question was asked twice.
    expect(all).toHaveLength(4)
    expect(all[3]).toEqual(all[2])
    for (const [at, stepId] of stepIds.entries()) {
      const found = await request(run.id, stepId)
      expect(found.request?.exact).toBe(true)
      expect(told(found)).toEqual(all[at])
    }
    expect(JSON.stringify(all[2])).toContain('a human said no: not now')
    expect(await request(run.id, 'model-3')).toMatchObject({
      answer: { text: 'Done, é<&>.', stop: 'end' },
      failures: [{ attempt: 1 }],
      step: { attempt: 2 },
    })
  })

  it('and what the model shows of its reasoning is kept, shown, and sent to no model', async () => {
    const { remote } = fixture
    remote.queue(dialect.thinks('Hm, ann@example.com …', 'wait', { seconds: 0 }))
    remote.always(dialect.says('Done.'))
    const { run } = await fixture.ran(dialect.model, { tools: ['wait'], privacy: { redact: ['email'] } })
    expect(await request(run.id, 'model-1')).toMatchObject({
      answer: { thinking: { text: 'Hm, [email] …' }, toolCalls: [{ name: 'wait' }] },
    })
    expect(received()).toHaveLength(2)
    expect(JSON.stringify(received()[1])).not.toContain('Hm,')
    expect(told(await request(run.id, 'model-2'))).toEqual(received()[1])
  })

  it('in a session that goes on, with a hint', async () => {
    const { json, remote } = fixture
    remote.always(dialect.says('Well.'))
    await json(201, 'POST', '/v1/agents', { name: 'friend', manifest: { model: dialect.model, tools: ['wait'] } })
    const { id } = await json<{ id: string }>(201, 'POST', '/v1/sessions', { agentName: 'friend' })
    for (const [at, content] of ['one', 'two', 'three'].entries()) {
      const hint = at === 1 ? { systemHint: 'Be brief.' } : {}
      const message = { content, ...hint }
      const { turnId } = await json<{ turnId: string }>(200, 'POST', `/v1/sessions/${id}/messages`, message)
      expect(told(await request(turnId, 'model-1'))).toEqual(received()[at])
    }
    expect(received()[2]?.turns).toHaveLength(5)
    expect(received()[2]?.system).toBe('Be brief.')
  })
})

const modelSteps = (steps: readonly Step[]): string[] =>
  steps.flatMap(({ kind, stepId }) => (kind === 'model' ? [stepId] : []))

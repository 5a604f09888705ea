import { expect, it } from 'vitest'
import type { StepCall } from '../step-spec.ts'
import { httpRequestTool, type OutboundRequest } from './http-request-tool.ts'

function requester() {
  const sent: OutboundRequest[] = []
  const tool = httpRequestTool(
    {
      outbound(request) {
        sent.push(request)
        return Promise.resolve({ status: 200, headers: {}, body: new Uint8Array(), truncated: false })
      },
    },
    [{ host: 'far.example', ports: [443] }],
    { name: 'http_request', needsApproval: false },
  )
  const step = { key: 'run/tool-1-1', signal: new AbortController().signal } as StepCall
  const place = { runId: 'run', turn: 1, index: 1, stepId: 'tool-1-1' }
  const call = (headers?: Record<string, string>) =>
    tool.call({ url: 'https://far.example/', ...(headers && { headers }) }, place, step)
  return { call, sent }
}

it.each([
  'Host',
  'host',
  'Idempotency-Key',
  'Transfer-Encoding',
  'content-length',
  'Connection',
  'Upgrade',
  'proxy-authorization',
])('sends nothing with a %s that the model made up', async name => {
  const { call, sent } = requester()
  await expect(call({ accept: '*/*', [name]: 'internal.admin' })).rejects.toMatchObject({
    code: 'bad_arguments',
    message: `the header "${name}" is made by the runtime: leave it out`,
  })
  expect(sent).toEqual([])
})

it('sends the other headers as they are, and the key of the step', async () => {
  const { call, sent } = requester()
  await call({ Authorization: 'Bearer x', 'content-type': 'text/plain' })
  await call()
  expect(sent.map(({ headers }) => headers)).toEqual([
    { Authorization: 'Bearer x', 'content-type': 'text/plain', 'idempotency-key': 'run/tool-1-1' },
    { 'idempotency-key': 'run/tool-1-1' },
  ])
})

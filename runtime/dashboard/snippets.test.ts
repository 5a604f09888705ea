import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { type ApiCall, curlOf, typescriptOf } from './snippets.ts'

const call: ApiCall = {
  about: 'x',
  operation: 'runs.create',
  body: { agentName: `it's`, input: { prompt: '$(touch /tmp/never) "a": 1 `b`' } },
}

it('is a command that a shell hands on as it was meant', () => {
  const shown = execFileSync('sh', ['-c', `curl() { printf '%s\\n' "$@"; }; ${curlOf(call)}`], {
    encoding: 'utf8',
    env: { PLATFORM_URL: 'http://x', PLATFORM_API_KEY: 'k' },
  })
  expect(shown.split('\n')).toContain('http://x/v1/runs')
  expect(shown.split('\n')).toContain(JSON.stringify(call.body))
  expect(curlOf({ about: 'x', operation: 'approvals.list', query: { status: 'pending' } })).toContain(
    `"$PLATFORM_URL"'/v1/approvals?status=pending'`,
  )
  expect(curlOf({ about: 'x', operation: 'agents.publish', params: { name: 'a/b' } })).toContain(
    '/v1/agents/a%2Fb/versions',
  )
})

it('names the operation as the typed client does', () => {
  expect(typescriptOf({ about: 'x', operation: 'runs.get', params: { id: '1' } })).toContain(
    'client.runs.get({ params: { id: "1" } })',
  )
})

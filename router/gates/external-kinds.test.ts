import { describe, expect, it, vi } from 'vitest'
import { type GateDocument, gateDocument, gateDocumentText } from './gate-document.ts'
import type { FunctionGate, GateFetch, ProcessJob, ProcessOutcome } from './gate-host.ts'
import type { GateConfig } from './gate-kinds.ts'
import { base, builtGate, never } from './testing/fake-gate.ts'
import { inputOf } from './testing/subject.ts'
import { normaliseVerdict, readVerdict, readVerdictText } from './verdict.ts'

const utf8 = new TextEncoder()
const request = {
  model: 'auto',
  max_tokens: 5,
  system: [{ type: 'text', text: 'be brief' }],
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ name: 'ls', input_schema: { type: 'object' } }],
}
const input = inputOf({ text: 'é"', calls: [['ls', '{"a": 1.0}']] }, { dialect: 'messages', request })

describe('the document a gate is told', () => {
  it('has exactly the members of the contract', () => {
    expect(JSON.parse(gateDocumentText('tests', input))).toEqual({
      v: 1,
      gate_id: 'tests',
      trace_id: input.traceId,
      api: 'messages',
      rung: 0,
      model: 'lab/small',
      candidate: 'é"',
      output: { tool_calls: [{ id: 'c0', name: 'ls', arguments: '{"a": 1.0}' }], refusal: null, finish: 'tool_use' },
      request: { model: 'auto', system: request.system, messages: request.messages, tools: request.tools },
    })
  })

  it('gives a function the same, and fills in what a request leaves out', () => {
    const chat = inputOf({ text: 'x' })
    for (const one of [input, chat])
      expect({ ...gateDocument('f', one) }).toEqual(JSON.parse(gateDocumentText('f', one)))
    expect(gateDocument('f', chat).request).toMatchObject({ model: 'auto', system: null, tools: [] })
  })
})

describe('a verdict from outside', () => {
  it.each<[string, unknown]>([
    ['{"verdict":"pass"}', { verdict: 'pass' }],
    [
      '{"verdict":"fail","score":0,"reason":"r","evidence_ref":"e","cost_usd":0.002,"x":1}',
      { verdict: 'fail', score: 0, reason: 'r', evidenceRef: 'e', costNano: 2_000_000 },
    ],
    ['{"verdict":"abstain","score":null,"reason":null}', { verdict: 'abstain' }],
    ['{"verdict":"pass","score":1.01}', { verdict: 'abstain', reason: 'bad_score', error: true }],
    [
      '{"verdict":"pass","score":-0.1,"cost_usd":1}',
      { verdict: 'abstain', reason: 'bad_score', error: true, costNano: 1_000_000_000 },
    ],
    ['{"verdict":"pass","score":"1"}', { verdict: 'abstain', reason: 'bad_score', error: true }],
    ['{"verdict":"PASS"}', { verdict: 'abstain', reason: 'bad_output', error: true }],
    ['{"verdict":"pass","cost_usd":-1}', { verdict: 'abstain', reason: 'bad_output', error: true }],
    ['{"verdict":"pass","cost_usd":1e300}', { verdict: 'abstain', reason: 'bad_output', error: true }],
    ['{"verdict":"pass","reason":5}', { verdict: 'abstain', reason: 'bad_output', error: true }],
    ['"pass"', { verdict: 'abstain', reason: 'bad_output', error: true }],
    ['[]', { verdict: 'abstain', reason: 'bad_output', error: true }],
    ['pass', { verdict: 'abstain', reason: 'bad_output', error: true }],
    ['', { verdict: 'abstain', reason: 'bad_output', error: true }],
  ])('reads %s', (text, expected) => {
    expect(readVerdictText(text)).toEqual(expected)
  })

  it('is cut to what a receipt can hold, between characters', () => {
    const { reason, evidenceRef } = normaliseVerdict({
      verdict: 'fail',
      reason: `${'a'.repeat(199)}😀`,
      evidenceRef: '😀'.repeat(150),
    })
    expect([reason, evidenceRef]).toEqual(['a'.repeat(199), '😀'.repeat(100)])
    expect(normaliseVerdict({ verdict: 'fail', reason: 'a\ud800b' }).reason).toBe('a\ufffdb')
    expect(normaliseVerdict({ verdict: 'pass', score: Number.NaN })).toMatchObject({ verdict: 'abstain', error: true })
    expect(readVerdict({ verdict: 'pass', score: Number.NaN }).reason).toBe('bad_score')
  })
})

describe('subprocess', () => {
  const config: GateConfig<'subprocess'> = {
    ...base,
    kind: 'subprocess',
    cmd: ['check', '-q'],
    cwd: '/w',
    envPass: ['CI'],
    stdin: 'json',
  }
  const exited = (code: number | null, stdout: string): ProcessOutcome => ({
    kind: 'exited',
    code,
    stdout: utf8.encode(stdout),
    stderr: new Uint8Array(),
  })

  it.each<[string, ProcessOutcome, string]>([
    ['one line', exited(0, '{"verdict":"pass"}'), 'pass'],
    ['the last line that is not empty', exited(0, 'log\n{"verdict":"fail"}\n{"verdict":"pass"}\n \r\n\n'), 'pass'],
    ['a last line that is no verdict', exited(0, '{"verdict":"pass"}\ndone'), 'abstain bad_output'],
    ['nothing', exited(0, ''), 'abstain bad_output'],
    ['a pass with a bad exit', exited(1, '{"verdict":"pass"}'), 'abstain exit_nonzero'],
    ['a pass and then a signal', exited(null, '{"verdict":"pass"}'), 'abstain exit_nonzero'],
    ['too much', { kind: 'output_too_large' }, 'abstain output_too_large'],
    ['no program', { kind: 'spawn_failed' }, 'abstain spawn_failed'],
  ])('reads %s', async (_, outcome, expected) => {
    const { verdict, reason, error } = await builtGate(config, { runProcess: async () => outcome }).run(input, never)
    expect(reason === undefined ? verdict : `${verdict} ${reason}`).toBe(expected)
    expect(error ?? false).toBe(verdict === 'abstain')
  })

  it('keeps the candidate out of the arguments', async () => {
    const jobs: ProcessJob[] = []
    const runProcess = async (job: ProcessJob) => {
      jobs.push(job)
      return exited(0, '{"verdict":"pass"}')
    }
    await builtGate(config, { runProcess }).run(input, never)
    await builtGate({ ...config, stdin: 'text' }, { runProcess }).run(input, never)
    expect(jobs[0]).toMatchObject({
      cmd: ['check', '-q'],
      cwd: '/w',
      envPass: ['CI'],
      env: { ROUTER_GATE_ID: 'g' },
      stdoutLimit: 65_536,
      stderrLimit: 8192,
    })
    expect(jobs.map(({ stdin }) => new TextDecoder().decode(stdin))).toEqual([gateDocumentText('g', input), 'é"'])
  })
})

describe('http', () => {
  const config: GateConfig<'http'> = {
    ...base,
    kind: 'http',
    url: 'https://gate.example/judge',
    headersEnv: { authorization: 'TOKEN' },
    method: 'POST',
  }
  const env = (name: string) => (name === 'TOKEN' ? 'Bearer k' : undefined)
  const judge = async (fetch: GateFetch) => {
    const { verdict, reason, error } = await builtGate(config, { fetch, env }).run(input, never)
    return `${verdict}${reason === undefined ? '' : ` ${reason}`}${error ? ' (error)' : ''}`
  }

  it('posts the document with the configured headers, and follows nothing', async () => {
    const fetch = vi.fn<GateFetch>(async () => Response.json({ verdict: 'pass', score: 0.5 }))
    const verdict = await builtGate(config, { fetch, env }).run(input, never)
    expect(verdict).toEqual({ verdict: 'pass', score: 0.5 })
    const [url, init] = fetch.mock.calls[0]!
    expect([url, init.method, init.redirect, init.signal]).toEqual([config.url, 'POST', 'manual', never])
    expect(init.headers).toMatchObject({ authorization: 'Bearer k', 'content-type': 'application/json' })
    expect((JSON.parse(String(init.body)) as GateDocument).candidate).toBe('é"')
  })

  it.each<[string, () => Response, string]>([
    ['a fail', () => Response.json({ verdict: 'fail' }), 'fail'],
    ['an abstention', () => Response.json({ verdict: 'abstain' }), 'abstain'],
    ['a server error', () => Response.json({ verdict: 'pass' }, { status: 503 }), 'abstain http_503 (error)'],
    [
      'a redirect',
      () => new Response(null, { status: 302, headers: { location: 'http://x/' } }),
      'abstain http_302 (error)',
    ],
    ['bad JSON', () => new Response('pass'), 'abstain bad_output (error)'],
    ['an empty body', () => new Response(null, { status: 204 }), 'abstain bad_output (error)'],
    ['a bad score', () => Response.json({ verdict: 'pass', score: 7 }), 'abstain bad_score (error)'],
    ['a flood', () => new Response(new Uint8Array(70_000)), 'abstain output_too_large (error)'],
    [
      'a body that breaks off',
      () => new Response(new ReadableStream({ start: c => c.error(new Error('cut')) })),
      'abstain unreachable (error)',
    ],
  ])('reads %s', async (_, answer, expected) => {
    expect(await judge(async () => answer())).toBe(expected)
  })

  it('abstains when nobody answers, and does not pass the cause on', async () => {
    expect(await judge(() => Promise.reject(new TypeError('fetch failed: secret')))).toBe('abstain unreachable (error)')
  })
})

describe('function', () => {
  const functionGate = (id: string, grade: FunctionGate) =>
    builtGate({ ...base, id, kind: 'function', name: 'grade' }, { functions: { grade } }).run

  it('hands on the verdict, and tells the function when it is over', async () => {
    const judge = vi.fn(() => ({ verdict: 'pass' as const, score: 0.25, cost_usd: 0.001 }))
    expect(await functionGate('f', judge)(input, never)).toEqual({ verdict: 'pass', score: 0.25, costNano: 1_000_000 })
    expect(judge).toHaveBeenCalledWith(expect.objectContaining({ candidate: 'é"', gate_id: 'f' }), { signal: never })
  })

  it('abstains when the function throws, rejects or answers nonsense', async () => {
    const throwing = functionGate('f', () => {
      throw new Error('the answer was é"')
    })
    const rejecting = functionGate('f', () => Promise.reject(new Error('x')))
    const nonsense = functionGate('f', (() => true) as never)
    const reasons = await Promise.all([throwing, rejecting, nonsense].map(gate => gate(input, never)))
    expect(reasons).toEqual(
      ['threw', 'threw', 'bad_output'].map(reason => ({ verdict: 'abstain', reason, error: true })),
    )
  })
})

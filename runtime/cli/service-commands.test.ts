import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { freePort } from '../../scripts/bench/free-port.ts'
import { typed } from '../../shared/cli/testing/typed.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { genesis, sealEvent } from '../execution/journal/event.ts'
import { runtimeProgram } from './commands.ts'
import { atTerminal, type TerminalFixture, terminalFixture } from './testing/terminal-fixture.ts'

let fixture: TerminalFixture
beforeAll(async () => {
  fixture = await terminalFixture()
})
afterAll(() => fixture.close())

describe('runtime agents', () => {
  it('applies files of three formats, and again without a change, and tells what was published', async () => {
    const folder = join(fixture.folder, 'agents')
    await mkdir(folder)
    const file = (name: string, text: string) => writeFile(join(folder, name), text).then(() => join(folder, name))
    const toml = await file('one.toml', 'name = "one"\n[manifest]\nsystemPrompt = "Be brief."\ntools = ["wait"]\n')
    const yaml = await file(
      'more.yaml',
      'name: two\nmanifest:\n  model: demo/echo\n---\nname: three\ndescription: last\n',
    )
    const json = await file('four.json', JSON.stringify({ name: 'four', labels: { team: 'a' } }))
    const first = await fixture.run('agents', 'apply', toml, yaml, json)
    expect([first.code, first.err, first.out]).toEqual([
      ...[
        0,
        '',
        'one  created  version 1\ntwo  created  version 1\nthree  created  version 1\nfour  created  version 1\n',
      ],
    ])
    await file('one.toml', 'name = "one"\n[manifest]\nsystemPrompt = "Be long."\n')
    const again = await fixture.run('agents', 'apply', toml, json)
    expect(again.out).toBe('one  published  version 2\nfour  unchanged  version 1\n')
    const listed = await fixture.run('agents', 'list')
    expect(listed.out.split('\n').map(line => line.split('  ')[0])).toEqual([
      ...['AGENT', 'four', 'three', 'two', 'one', ''],
    ])
    expect(listed.out).toContain('  last\n')
  })

  it.each([
    ['toml', `name = "bad"\n[manifest]\nsystemPrompt = "${'w'.repeat(3000)}" oops\n`, 'line 3, column 3019: each key'],
    [
      'toml',
      `name = "bad"\nx = ${'['.repeat(5000)}${']'.repeat(5000)}\n`,
      /line 2, column \d+: document contains exce/,
    ],
    ['toml', `name = "bad"\n${'a.'.repeat(50_000)}a = 1\n`, 'it is nested too deep'],
    ['yaml', `name: bad\nx: ${'['.repeat(5000)}${']'.repeat(5000)}\n`, 'it is nested too deep at line 2'],
    ['json', `{"name":"bad","x":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, 'it is nested too deep'],
  ])('say of %s that is too long or too deep where, in a sentence', async (ending, text, wanted) => {
    const file = join(fixture.folder, `bad.${ending}`)
    await writeFile(file, text)
    const { code, err } = await fixture.run('agents', 'apply', file)
    expect(code).toBe(2)
    expect(err).toMatch(wanted)
    expect(err.length).toBeLessThan(500)
    await rm(file)
  })

  it('names the file and the member that is wrong, and applies nothing when a file cannot be read', async () => {
    const bad = join(fixture.folder, 'bad.yaml')
    const good = join(fixture.folder, 'good.json')
    await writeFile(good, '{"name":"never"}')
    for (const [text, wanted] of [
      ['name: [', /bad\.yaml: .*line 1/],
      ['manifest: {}', /bad\.yaml: expected an agent, with a name and a manifest/],
      ['name: bad\nmanifest: { inputSchema: { type: object, default: .inf } }', /bad\.yaml: .*\/default is no number/],
    ] as const) {
      await writeFile(bad, text)
      const said = await fixture.run('agents', 'apply', good, bad)
      expect([said.code, said.err]).toEqual([2, expect.stringMatching(wanted)])
    }
    expect((await fixture.run('agents', 'list')).out).not.toContain('never')
    await writeFile(bad, 'name: bad\nmanifest:\n  isolation: strong\n')
    const refused = await fixture.run('agents', 'apply', bad)
    expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(/bad\.yaml: .*isolation/)])
  })
})

describe('runtime run', () => {
  it('tells each step and what it cost, and gives the output alone on standard output', async () => {
    await fixture.call('POST', '/v1/agents', { name: 'worker', manifest: { tools: ['wait', 'ask_human'] } })
    const said = await fixture.run('run', 'worker', '/call*2 wait {"seconds":0}')
    expect(said.code).toBe(0)
    expect(said.out).toContain('waitedUntil')
    const steps = said.err.split('\n').filter(line => line.startsWith('ok'))
    expect(steps.map(line => line.split(/\s+/)[1])).toEqual(['model-1', 'timer-1-1', 'model-2', 'timer-2-1', 'model-3'])
    for (const line of steps) expect(line).toMatch(/^ok {4}\S+ +\S+ {2}[\d.]+ m?s {2}[\d.]+ USD$/)
    expect(said.err).toMatch(/^run [0-9a-f-]{36}\n/)
    expect(said.err).toMatch(/\nsucceeded {2}\d+ tokens in, \d+ out, [\d.]+ USD\n$/)
    // Nothing moves where there is no watcher.
    expect(said.err).not.toContain('\r')
    const infinite = await fixture.run('run', 'worker', '--input', '{"prompt":"hello","limit":1e400}')
    expect([infinite.code, infinite.err]).toEqual([2, '--input: /limit is no number that JSON can carry\n'])
    const quiet = await fixture.run('run', 'worker', 'hello', '--quiet', '--json')
    expect([quiet.err, (JSON.parse(quiet.out) as Run).status]).toEqual(['', 'succeeded'])
  })

  it('shows what one of its model steps sent and got', async () => {
    const { err } = await fixture.run('run', 'worker', 'hello there')
    const id = /^run (\S+)/.exec(err)![1]!
    const shown = await fixture.run('runs', 'request', id, 'model-1')
    expect([shown.code, shown.out]).toEqual([
      0,
      expect.stringMatching(/── user\nhello there\n[\s\S]*── answer \(end\)\n/),
    ])
    const json = await fixture.run('runs', 'request', id, 'model-1', '--json')
    expect(JSON.parse(json.out)).toMatchObject({ request: { exact: true }, answer: { stop: 'end' } })
    const unknown = await fixture.run('runs', 'request', id, 'model-9')
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('model-9')])
  })

  it('stops at a question with code 4, and shows the rest once a human has decided', async () => {
    const said = await fixture.run('run', 'worker', '/call ask_human {"prompt":"how many?"}')
    expect([said.code, said.err]).toEqual([4, expect.stringMatching(/WAITS \S+ +ask_human {2}question: how many\?/)])
    const id = /^run (\S+)/.exec(said.err)![1]!
    const approval = /runtime approvals approve (\S+)/.exec(said.err)![1]!
    const listed = await fixture.run('approvals', 'list')
    expect(listed.out).toMatch(new RegExp(`\n${approval}  worker  pending  question  \\S+ \\S+Z  how many\\?\n$`))
    const done = await fixture.run('approvals', 'approve', approval, '--output', '12')
    expect([done.code, done.out]).toEqual([0, `${approval}  approved  run ${id}\n`])
    const elsewhere = await fixture.run('run', '--watch', id, '--url', 'http://127.0.0.1:1')
    expect([elsewhere.code, elsewhere.err]).toEqual([3, expect.stringContaining('does not answer')])
    const watched = await fixture.run('run', '--watch', id)
    expect([watched.code, watched.out]).toEqual([0, expect.stringContaining('12')])
    expect((await fixture.run('approvals', 'list')).out).toBe('')
    expect((await fixture.run('approvals', 'list', '--all')).out).toContain('  worker  approved  ')
    const twice = await fixture.run('approvals', 'reject', approval)
    expect([twice.code, twice.err]).toEqual([1, expect.stringContaining('takes no decision')])
  })

  it('ends with 1 and the reason when the run fails, and says what it was not given', async () => {
    const said = await fixture.run('run', 'worker', '/call ask_human {"prompt":"go?"}')
    const id = /^run (\S+)/.exec(said.err)![1]!
    const [open] = await fixture.call<Approval[]>('GET', `/v1/runs/${id}/approvals`)
    await fixture.run('approvals', 'reject', open!.id, '--comment', 'not today')
    const failed = await fixture.run('run', '--watch', id)
    expect([failed.code, failed.out, failed.err]).toEqual([
      1,
      '',
      expect.stringContaining('approval_rejected: not today'),
    ])
    expect((await fixture.run('run', 'nobody', 'x')).err).toBe('agent not found: nobody\n')
    const wrong = await fixture.run('run', 'worker', '--input', '[1]')
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('expected a JSON object')])
    const lost = await atTerminal(['run', 'x'], {
      PLATFORM_URL: 'http://127.0.0.1:9',
      PLATFORM_API_KEY: 'k',
    })
    expect([lost.code, lost.err]).toEqual([3, expect.stringContaining('does not answer')])
    expect((await atTerminal(['run', 'x'], {})).err).toMatch(/^A key is needed/)
  })

  it('goes on with a run when the service is started again, and shows each step once', async () => {
    const own = await terminalFixture({ PLATFORM_BIND: `127.0.0.1:${await freePort()}` })
    try {
      await own.call('POST', '/v1/agents', { name: 'worker', manifest: { tools: ['wait'] } })
      const running = own.run('run', 'worker', '/call wait {"seconds":1}')
      const steps = async () => {
        const [run] = await own.call<Run[]>('GET', '/v1/runs')
        return run ? own.call<object[]>('GET', `/v1/runs/${run.id}/steps`) : []
      }
      await expect.poll(async () => (await steps()).length).toBe(2)
      await own.stop()
      await own.again()
      const { code, err } = await running
      const ended = err.split('\n').filter(line => line.startsWith('ok'))
      expect([code, ended.map(line => line.split(/\s+/)[1])]).toEqual([0, ['model-1', 'timer-1-1', 'model-2']])
    } finally {
      await own.close()
    }
  })

  it('shows that it is at work to a person only', async () => {
    const stderr = Object.assign(new PassThrough(), { isTTY: true })
    const args = ['run', 'worker', '/call wait {"seconds":0.35}']
    const { code, err } = await typed(runtimeProgram, args, { env: fixture.env(), stderr })
    expect([code, err]).toEqual([0, expect.stringMatching(/\r[|/\\-]/)])
  })
})

describe('runtime export', () => {
  it('writes what verifies offline, once for each run, and can be continued', async () => {
    const to = join(fixture.folder, 'audit')
    const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'one' } })
    await fixture.call('GET', `/v1/runs/${id}/events`)
    expect((await fixture.run('export', id, '--to', to)).out).toBe(`1 run written to ${to}\n`)
    const file = (what: string) => join(to, `${id}.${what}.json`)
    const args = ['verify', file('receipt'), '--journal', file('journal'), '--key', join(to, 'keys.json')]
    const verified = await fixture.run(...args)
    expect([verified.code, verified.out]).toEqual([0, expect.stringContaining('events match')])
    const session = await fixture.call<{ id: string }>('POST', '/v1/sessions', { agentName: 'worker' })
    await fixture.call('POST', `/v1/sessions/${session.id}/messages`, { content: 'hello' })
    const all = await fixture.run('export', '--all', '--to', to)
    const receipts = (await readdir(to)).filter(name => name.endsWith('.receipt.json'))
    expect(all.out).toBe(`${receipts.length - 1} runs written to ${to}\n`)
    expect(receipts.length).toBeGreaterThan(4)
    expect((await readdir(to)).filter(name => name.endsWith('.part'))).toEqual([])
    expect((await fixture.run('export', '--all', '--to', to)).out).toBe(`0 runs written to ${to}\n`)
    expect((JSON.parse(await readFile(file('run'), 'utf8')) as Run).input).toEqual({ prompt: 'one' })
    expect((await fixture.run('export')).code).toBe(2)
  })

  it('goes on past a run that is deleted meanwhile, and leaves no part of it', async () => {
    const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'gone' } })
    await fixture.call('GET', `/v1/runs/${id}/events`)
    const headers = { authorization: `Bearer ${fixture.env().PLATFORM_API_KEY}` }
    const server = createServer(async (request, response) => {
      const url = fixture.env().PLATFORM_URL + request.url
      if (url.endsWith(`/${id}/journal`)) await fetch(url.replace(/\/journal$/, ''), { method: 'DELETE', headers })
      const { accept = '*/*' } = request.headers
      const answer = await fetch(url, { headers: { ...headers, accept } })
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
      response.end(await answer.text())
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const to = join(fixture.folder, 'deleted')
    const { code, err } = await fixture.run('export', '--all', '--to', to, '--url', url)
    expect([code, err]).toEqual([0, '1 run was deleted meanwhile and left out\n'])
    const files = await readdir(to)
    expect(files.filter(name => name.startsWith(id))).toEqual([])
    expect(files.length).toBeGreaterThan(3)
    server.close()
  })
})

describe('a signing key that is renewed while runs are read', () => {
  beforeAll(() => fixture.call('POST', '/v1/agents', { name: 'signed' }))

  /** The service behind an address that, when runs are listed first, renews the key and ends a run under the new one. */
  async function renewing() {
    let renewed: Promise<string> | undefined
    async function renew(): Promise<string> {
      const { out } = await fixture.run('keys', 'rotate')
      for (;;) {
        const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'signed', input: { prompt: 'one' } })
        await fixture.call('GET', `/v1/runs/${id}/events`)
        const { payload } = await fixture.call<Receipt>('GET', `/v1/runs/${id}/receipt`)
        if (payload.keyId === out.trim()) return id
        await pause(200)
      }
    }
    const server = createServer(async (request, response) => {
      if (request.url?.startsWith('/v1/runs?')) renewed ??= renew()
      await renewed
      const { authorization = '', accept = '*/*' } = request.headers
      const answer = await fetch(fixture.env().PLATFORM_URL + request.url, { headers: { authorization, accept } })
      const link = answer.headers.get('link')
      const type = answer.headers.get('content-type') ?? ''
      response.writeHead(answer.status, { 'content-type': type, ...(link !== null && { link }) })
      response.end(await answer.text())
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return {
      run: (...args: string[]) => fixture.run(...args, '--url', url),
      id: async () => (await renewed)!,
      [Symbol.asyncDispose]: async () => void server.close(),
    }
  }

  it('is in the list beside what is exported', async () => {
    await using service = await renewing()
    const to = join(fixture.folder, 'renewed')
    expect((await service.run('export', '--all', '--to', to)).code).toBe(0)
    const receipt = join(to, `${await service.id()}.receipt.json`)
    expect(await fixture.run('verify', receipt, '--key', join(to, 'keys.json'))).toMatchObject({ code: 0 })
  }, 60_000)
})

describe('a run whose journal is long', () => {
  beforeAll(() => fixture.call('POST', '/v1/agents', { name: 'long' }))

  /** The end of a run, made in the store: three megabytes in short events, of which one was changed later or none. */
  async function longRun(changed?: number): Promise<string> {
    const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'long', input: { prompt: 'all' } })
    await fixture.call('GET', `/v1/runs/${id}/events`)
    const db = await openDb(join(fixture.folder, 'data', 'waybill.db'))
    let head = genesis(id)
    const rows: [number, string, string][] = []
    for (let at = 0; at < 60; at++) {
      const text = 'é and words '.repeat(4000)
      const draft = { kind: 'step_completed' as const, stepId: 'tool-1-1', attempt: 1, payload: { output: text } }
      const { entry, body } = sealEvent(head, id, draft, new Date())
      rows.push([entry.seq, entry.hash, at === changed ? body.replace('words', 'WORDS') : body])
      head = entry
    }
    await db.write([
      { sql: 'delete from events where run_id = ?', args: [id] },
      { sql: 'delete from receipts where run_id = ?', args: [id] },
      { sql: 'update runs set event_count = ?, head = ? where id = ?', args: [head.seq, head.hash, id] },
      ...rows.map(([seq, hash, body]) => ({
        sql: 'insert into events (run_id, seq, hash, body) values (?, ?, ?, ?)',
        args: [id, seq, hash, body],
      })),
    ])
    await db.close()
    return id
  }

  it('is exported and archived without being held, and left out where it does not verify', async () => {
    const own = join(fixture.folder, 'long')
    const id = await longRun()
    const journal = await fixture.call<object>('GET', `/v1/runs/${id}/journal`)
    const written = vi.spyOn(JSON, 'stringify')
    onTestFinished(() => written.mockRestore())
    const longest = () => Math.max(...written.mock.results.map(({ value }) => String(value ?? '').length))
    expect(await fixture.run('export', id, '--to', own)).toMatchObject({ code: 0 })
    expect(longest()).toBeLessThan(1_500_000)
    expect(JSON.parse(await readFile(join(own, `${id}.journal.json`), 'utf8'))).toEqual(journal)

    const receipt = await fixture.call('GET', `/v1/runs/${id}/receipt`)
    const broken = await longRun(50)
    written.mockClear()
    const { code, err } = await fixture.run('archive', '--days', '0', '--to', own)
    expect([code, err]).toEqual([1, expect.stringMatching(new RegExp(`^${broken} is left out: [^\n]*\n$`))])
    expect(longest()).toBeLessThan(1_500_000)
    const [name = ''] = (await readdir(own)).filter(file => file.endsWith('.jsonl'))
    const lines = (await readFile(join(own, name), 'utf8')).trimEnd().split('\n')
    const archived = lines.map(line => JSON.parse(line) as { run: Run; journal: object; receipt: object })
    expect(archived.filter(({ run }) => run.id === broken)).toEqual([])
    expect(archived.find(({ run }) => run.id === id)).toMatchObject({ journal, receipt })
    for (const gone of [id, broken]) await fixture.call('DELETE', `/v1/runs/${gone}`)
  })
})

describe('runtime archive', () => {
  it('writes what ended into one file that verifies, deletes what is in it but for open sessions, and the store can shrink', async () => {
    const to = join(fixture.folder, 'archive')
    const { id } = await fixture.call<Run>('POST', '/v1/runs', {
      agentName: 'worker',
      // A separator of lines that JSON leaves as it is, and that ends no line of the file.
      input: { prompt: `\u2028${'x'.repeat(500_000)}` },
    })
    await fixture.call('GET', `/v1/runs/${id}/events`)
    const session = await fixture.call<{ id: string }>('POST', '/v1/sessions', { agentName: 'worker' })
    await fixture.call('POST', `/v1/sessions/${session.id}/messages`, { content: 'hello' })
    expect((await fixture.run('archive', '--to', to)).out).toContain('no run to archive ended more than 90')
    expect((await readdir(to)).filter(name => name.startsWith('runs-'))).toEqual([])

    const both = [to, join(fixture.folder, 'beside')].map(folder =>
      fixture.run('archive', '--days', '0', '--to', folder, '--delete'),
    )
    const [said, beside] = await Promise.all(both)
    expect([said!.code, said!.err, beside!.code, beside!.err]).toEqual([0, '', 0, ''])
    const file = join(to, (await readdir(to)).find(name => name.endsWith('.jsonl'))!)
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
    expect(said!.out).toContain(`${lines.length} runs in ${file}, each verified`)
    await expect(fixture.call('GET', `/v1/runs/${id}`)).rejects.toThrow('404')
    expect(await fixture.call('GET', `/v1/runs/${id}/receipt`)).toMatchObject({ payload: { runId: id } })
    expect(await fixture.call<object[]>('GET', '/v1/runs')).toEqual([])
    expect((await fixture.call<object[]>('GET', '/v1/runs?trigger=session')).length).toBeGreaterThan(0)

    const key = ['--key', join(to, 'keys.json')]
    const fine = await fixture.run('archive', 'verify', file, ...key)
    expect([fine.code, fine.out]).toEqual([0, `${lines.length} of ${lines.length} runs valid\n`])
    const swapped = JSON.parse(lines[0]!) as { run: Run }
    const changed = [JSON.stringify({ ...swapped, run: { ...swapped.run, id: 'other' } }), ...lines.slice(1)]
    await writeFile(file, changed.join('\n').replace('"step_completed"', '"step_failed"') + '\n')
    const broken = await fixture.run('archive', 'verify', file, ...key)
    expect([broken.code, broken.out]).toEqual([1, expect.stringContaining('NOT VALID  line 1: ')])
    for (const [change, reason] of [
      [{ costUsd: 1 }, 'record_mismatch: costUsd of the run'],
      [{ agentName: 'other' }, 'record_mismatch: agentName of the run'],
      [{ input: { prompt: 'never said' } }, 'input_hash_mismatch: input of the run'],
      [{ output: { result: 'FORGED' } }, 'output_hash_mismatch: output of the run'],
    ] as const) {
      await writeFile(file, JSON.stringify({ ...swapped, run: { ...swapped.run, ...change } }) + '\n')
      const said = await fixture.run('archive', 'verify', file, ...key)
      expect([said.code, said.out]).toEqual([
        ...[1, `NOT VALID  line 1: ${reason} is not what was signed\n0 of 1 runs valid\n`],
      ])
    }
    await writeFile(file, `${lines[0]}\n${lines[0]}\n`)
    expect(await fixture.run('archive', 'verify', file, ...key)).toMatchObject({
      code: 1,
      out: 'NOT VALID  line 2: the same run as in line 1\n1 of 2 runs valid\n',
    })
    const keys = JSON.parse(await readFile(join(to, 'keys.json'), 'utf8')) as object
    await writeFile(join(to, 'stranger.json'), JSON.stringify({ ...keys, keys: [] }))
    expect(await fixture.run('archive', 'verify', file, '--key', join(to, 'stranger.json'))).toMatchObject({
      code: 1,
      out: expect.stringContaining('NOT VALID  line 1: unknown_key: '),
    })
    await writeFile(file, lines[0]!.slice(0, 100))
    expect(await fixture.run('archive', 'verify', file, ...key)).toMatchObject({
      code: 2,
      err: expect.stringContaining('line 1 is not JSON'),
    })
    await writeFile(file, '')
    expect(await fixture.run('archive', 'verify', file, ...key)).toMatchObject({
      code: 2,
      err: expect.stringContaining('it is empty'),
    })

    const { code, out } = await fixture.run('compact')
    const [, before, after] = /^(\d+) bytes before, (\d+) now/.exec(out) ?? []
    expect([code, Number(after) + 400_000 < Number(before)]).toEqual([0, true])
    await fixture.call('POST', `/v1/sessions/${session.id}/messages`, { content: 'and again' })
  })
})

it.each([
  ['archive', /stay with the service/],
  ['archive verify', /every line is valid/],
  ['compact', /back to the disk/],
  ['agents apply', /TOML, YAML or JSON/],
  ['agents list', /PLATFORM_API_KEY/],
  ['run', /0 {4}succeeded/],
  ['runs request', /tokens and cost/],
  ['approvals list', /waits for a human/],
  ['approvals approve', /--resolution/],
  ['approvals reject', /onReject/],
  ['export', /keys\.json/],
  ['backup', /master key/],
  ['restore', /the signature of every receipt/],
  ['doctor', /changes nothing/],
] as [string, RegExp][])('runtime %s --help teaches', async (path, wanted) => {
  const { code, out } = await atTerminal([...path.split(' '), '--help'], {})
  expect([code, out]).toEqual([0, expect.stringMatching(wanted)])
  expect(out).toContain('Examples')
})

import { spawn } from 'node:child_process'
import { access, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { evals } from '../../shared/wire/router/evals.ts'
import { explanation } from '../../shared/wire/router/explain.ts'
import { savings } from '../../shared/wire/router/savings.ts'
import { type TraceRecord, traceRecord } from '../../shared/wire/router/trace.ts'
import { traceList } from '../../shared/wire/router/traces.ts'
import { programEnv } from '../../tests/program-env.ts'
import { fileSink } from '../host/receipt-thread/storage.ts'
import { testSigner, testWriter } from '../host/testing/store-folder.ts'
import { routerSteps } from '../schema/steps.ts'
import { publishKey } from '../traces/keys.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { traceWriter } from '../traces/writer.ts'
import { demoDifferences } from './demo-run.ts'

const main = new URL('main.ts', import.meta.url).pathname
let folder: string

interface Ended {
  code: number | null
  out: string
  err: string
}

/** One command in a process of its own, in an empty environment. */
function router(args: readonly string[], vars: Record<string, string> = {}): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args], { env: { ...programEnv, ...vars }, cwd: folder })
  let [out, err] = ['', '']
  child.stdout.on('data', chunk => (out += chunk))
  child.stderr.on('data', chunk => (err += chunk))
  return new Promise(resolve => child.once('close', code => resolve({ code, out, err })))
}

describe('the commands', () => {
  let kept: string
  let trace: TraceRecord
  const store = () => ['--db', join(kept, 'router.db')]

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-commands-'))
    const { code, out, err } = await router(['demo', '--keep', '--json'], { TMPDIR: folder })
    expect([code, err]).toEqual([0, ''])
    const said = JSON.parse(out) as { ok: boolean; folder: string; trace: unknown; verify: { valid: boolean } }
    expect([said.ok, said.verify.valid]).toEqual([true, true])
    kept = said.folder
    trace = traceRecord.parse(said.trace)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('backup writes a copy that verifies, over nothing that is there, and compact gives room back', async () => {
    const file = join(folder, 'copy.db')
    const made = await router(['backup', file, ...store()])
    expect([made.code, made.err, made.out]).toEqual([0, '', `${file}  ${(await stat(file)).size} bytes\n`])
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const verified = await router(['verify', '--db', file, '--json'])
    expect(JSON.parse(verified.out)).toMatchObject({ valid: true, records: 1 })
    expect(await router(['backup', file, ...store()])).toMatchObject({
      code: 1,
      err: expect.stringContaining('is there already: name another file'),
    })
    const compacted = await router(['compact', '--db', file])
    expect([compacted.code, compacted.out]).toEqual([0, expect.stringMatching(/^\d+ bytes before, \d+ now\n$/)])
    const none = await router(['compact', '--db', join(folder, 'none.db')])
    expect([none.code === 0, none.err]).toEqual([false, expect.stringMatching(/none\.db/)])
  })

  it('demo shows the figures, leaves nothing behind, and needs nothing of its surroundings', async () => {
    const own = join(folder, 'own')
    await mkdir(own)
    const vars = { TMPDIR: own, ROUTER_MODE: 'nonsense', ROUTER_DB: '/nowhere/x.db', ROUTER_KEYS: 'bad' }
    const { code, out, err } = await router(['demo'], vars)
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(
      /^Rung 1 \(demo\/medium\) was served after 2 attempts for 0\.0092 USD, which saved 0\.0253 USD\.\n/,
    )
    expect(out).toContain('"baseline_same_token_usd": 0.0345')
    expect(out).toContain('chain: valid, 1 record')
    expect(await readdir(own)).toEqual([])
  })

  it('demo calls every figure by name that is not what it must be', () => {
    const report = {
      valid: true,
      records: 1,
      tenants: [
        {
          tenant_id: 'default',
          records: 1,
          broken_at: null,
          reason: null,
          last_checkpoint: 0,
          unanchored_tail: 0,
          unanchored_feedback: 0,
        },
      ],
    }
    expect(demoDifferences(200, trace, report)).toEqual([])
    const dearer = { ...trace, final: { ...trace.final, total_cost_usd: 0.0093, savings_usd: 0.0252 } }
    expect(demoDifferences(200, dearer, report)).toEqual([
      'total cost: expected 0.0092, got 0.0093',
      'savings: expected 0.0253, got 0.0252',
    ])
    expect(demoDifferences(502, { ...trace, attempts: [] }, { ...report, valid: false })).toHaveLength(7)
  })

  it('trace lists decisions and shows one by any of its ids', async () => {
    const list = traceList.parse(JSON.parse((await router(['trace', '--json', ...store()])).out))
    expect(list).toEqual({ traces: [trace], next: null })
    expect((await router(['trace', '--limit', '5', ...store()])).out).toContain('demo/medium')
    const one = await router(['trace', trace.final.response_id!, '--json', ...store()])
    expect(JSON.parse(one.out)).toEqual({ trace, feedback: [] })
    expect(JSON.parse((await router(['trace', trace.trace_id, ...store()])).out)).toEqual(trace)
  })

  it('explain, savings and evals tell the same story', async () => {
    const { summary, steps } = explanation.parse(
      JSON.parse((await router(['explain', trace.trace_id, '--json', ...store()])).out),
    )
    expect([summary, steps.length]).toEqual([expect.stringContaining('0.0253 USD'), 6])
    expect((await router(['explain', trace.trace_id, ...store()])).out).toContain(summary)
    const sums = savings.parse(JSON.parse((await router(['savings', '--group', 'model', '--json', ...store()])).out))
    expect(sums).toMatchObject({
      requests: 1,
      spent_usd: 0.0092,
      savings_usd: 0.0253,
      groups: [{ key: 'demo/medium' }],
    })
    expect((await router(['savings', ...store()])).out).toContain('73.3 %')
    const found = JSON.parse((await router(['evals', '--json', ...store()])).out) as unknown
    expect(evals.omit({ calibration: true, gates: true }).parse(found)).toMatchObject({ requests: 1, escalations: 1 })
    expect((await router(['evals', ...store()])).out).toMatch(/non-empty +1 +1 +0/)
  })

  it('savings says what samples of the top rung cost beside what was spent', async () => {
    const copy = join(folder, 'sampled.db')
    await router(['backup', copy, ...store()])
    const db = await openDb(copy)
    await db.execute({
      sql: `insert into shadows (tenant_id, trace_id, route_fp, ts_ms, served_in, served_out, top_in, top_out, same_nano, top_nano, spent_nano)
        values (?, ?, 'route', ?, 1, 1, 1, 1, 1000000, 2000000, 2000000)`,
      args: [trace.tenant_id, trace.trace_id, Date.now()],
    })
    db.close()
    const { out } = await router(['savings', '--db', copy])
    expect(out).toContain(
      '1 request was run on the top rung as well, for 0.002 USD that stand in no line above: it took 2.000 x',
    )
  })

  it('modes lists the five profiles', async () => {
    const { modes } = JSON.parse((await router(['modes', '--json'])).out) as { modes: { name: string }[] }
    expect(modes.map(({ name }) => name)).toEqual(['cost', 'balanced', 'quality', 'latency', 'max'])
  })

  it('doctor finds a good installation good', async () => {
    const { code, out } = await router(['doctor', '--config', join(kept, 'router.toml'), ...store()])
    expect(out).not.toContain('FAIL')
    expect(out).toMatch(/ok {3}chain of default: holds/)
    expect(code).toBe(0)
  })

  it('doctor refuses keys that a start would refuse, and names a variable that nothing reads', async () => {
    const keys = await router(['doctor', ...store()], { ROUTER_KEYS: 'abc' })
    expect([keys.code, keys.out]).toEqual([
      1,
      expect.stringMatching(/FAIL environment: ROUTER_KEYS: entry 1: expected/),
    ])
    const { out } = await router(['doctor', ...store()], { ROUTER_BINDD: 'x' })
    expect(out).toMatch(/ok {3}environment: every variable reads; ROUTER_BINDD is set, .* did you mean ROUTER_BIND\?/)
  })

  it('doctor says whether copies of checkpoints can be written', async () => {
    const of = async (file: string) => {
      const { code, out } = await router(['doctor', ...store()], { ROUTER_ANCHOR_FILE: file })
      return [code, out.split('\n').find(line => line.includes('anchor file'))]
    }
    const file = join(folder, 'anchor.jsonl')
    expect(await of(file)).toEqual([0, `ok   anchor file: ${file} takes copies`])
    const lost = join(folder, 'none', 'anchor.jsonl')
    expect(await of(lost)).toEqual([1, expect.stringContaining(`there is no folder ${join(folder, 'none')}: make it`)])
    expect(await of(folder)).toEqual([1, expect.stringContaining('which is a folder: name a file')])
    await expect(access(file)).rejects.toThrow('ENOENT')
  })

  it('doctor holds the clock against the record that was written last, whatever those before say', async () => {
    const place = join(folder, 'ahead.db')
    const db = await openDb(place)
    await migrate(db, 'router', routerSteps)
    const clockOf = async () =>
      (await router(['doctor', '--db', place])).out.split('\n').find(line => / clock: /.test(line))
    for (const [ahead, said] of [
      [86_400_000, /^FAIL clock: the clock is behind/],
      [0, /^ok {3}clock: after/],
    ] as const) {
      const writer = traceWriter({
        ...{ db, clock: systemClock, log: silentLog(), metrics: createMetrics() },
        mode: 'best-effort',
      })
      writer.start()
      writer.enqueue(sampleTrace({ at: Date.now() + ahead }))
      await writer.close()
      expect(await clockOf()).toMatch(said)
    }
    db.close()
  })

  it('doctor finds that a store is older than the copies of its checkpoints, before it signs a second history', async () => {
    const [place, older, anchor] = ['newer.db', 'older.db', 'newer.jsonl'].map(name => join(folder, name)) as [
      string,
      string,
      string,
    ]
    const db = await openDb(place)
    await migrate(db, 'router', routerSteps)
    await publishKey(db, testSigner, new Date())
    const write = async () => {
      const writer = testWriter(db, { sinks: [fileSink(`${older}.checkpoints.jsonl`), fileSink(anchor)] })
      writer.enqueue(sampleTrace())
      await writer.close()
    }
    await write()
    expect((await router(['backup', older, '--db', place])).code).toBe(0)
    const doctor = (vars: Record<string, string> = {}) => router(['doctor', '--db', older], vars)
    expect((await doctor({ ROUTER_ANCHOR_FILE: anchor })).out).toMatch(/ok {3}chain of/)
    await write()
    db.close()
    const says = (file: string) =>
      expect.stringMatching(`FAIL chain of .*: ${file} has a checkpoint at seq 1 that this store has not`)
    expect(await doctor()).toMatchObject({ code: 1, out: says(`${older}.checkpoints.jsonl`) })
    await rm(`${older}.checkpoints.jsonl`)
    expect(await doctor({ ROUTER_ANCHOR_FILE: anchor })).toMatchObject({ code: 1, out: says(anchor) })
  })

  it('a store whose pages do not read is no broken chain to verify', async () => {
    const place = join(folder, 'torn.db')
    await router(['backup', place, ...store()])
    const bytes = await readFile(place)
    await writeFile(place, bytes.subarray(0, bytes.length / 2))
    const { code, err } = await router(['verify', '--db', place])
    expect([code, err]).toEqual([3, expect.stringMatching(/damaged, or its disk fails: .*restore a backup/)])
  })

  it('doctor finds an index that says something else than the records, and sums are read from it', async () => {
    const place = join(folder, 'index.db')
    await router(['backup', place, ...store()])
    const db = await openDb(place)
    const { rows } = await db.execute("select rootpage from sqlite_master where name = 'traces_time'")
    await db.execute('pragma wal_checkpoint(truncate)')
    db.close()
    const bytes = await readFile(place)
    const at = bytes.indexOf('demo/medium', (Number(rows[0]?.rootpage) - 1) * bytes.readUInt16BE(16))
    bytes.write('demo/absent', at)
    await writeFile(place, bytes)
    const grouped = await router(['savings', '--db', place, '--group', 'model', '--json'])
    expect(grouped.out).toContain('demo/absent')
    const { code, out } = await router(['doctor', '--db', place])
    expect([code, out]).toEqual([
      1,
      expect.stringMatching(/FAIL store: .* is damaged \(.* index traces_time\): stop the router .* reindex/),
    ])
    const cut = join(folder, 'cut.db')
    await writeFile(cut, bytes.subarray(0, bytes.length / 2))
    const half = await router(['doctor', '--db', cut])
    expect([half.code, half.out]).toEqual([1, expect.stringMatching(/FAIL store: .*restore/)])
  })

  it('doctor names each thing that is wrong', async () => {
    const config = join(folder, 'wrong.toml')
    await writeFile(
      config,
      `provider = [{ id = "far", dialect = "chat", base_url = "http://127.0.0.1:9/v1", api_key_env = "FAR_KEY" }]
price = [{ model = "far/m", input_per_mtok = 1, output_per_mtok = 1 }]
gate = [{ id = "tests", kind = "subprocess", cmd = ["no-such-program"] }]
[[route]]
match = {}
mode = "enforce"
ladder = ["far/m"]
gates = ["tests"]`,
    )
    const vars = { OPENAI_BASE_URL: 'http://127.0.0.1:9' }
    const { code, out } = await router(['doctor', '--probe', '--json', '--config', config, '--db', 'none.db'], vars)
    const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: { name: string; ok: boolean; detail: string }[] }
    expect([code, ok]).toEqual([1, false])
    expect(checks.filter(check => !check.ok).map(({ name }) => name)).toEqual([
      'key of far',
      'gate tests',
      'OPENAI_BASE_URL',
      'provider far',
    ])
    expect(checks.find(({ name }) => name === 'key of far')?.detail).toBe('set FAR_KEY')
    expect(await stat(join(folder, 'none.db')).catch(() => 'absent')).toBe('absent')
  })

  it('doctor finds the program of a gate from the folder it runs in, and looks for the key of a judge', async () => {
    const config = join(folder, 'judged.toml')
    const gates = join(folder, 'gates')
    await mkdir(gates)
    await writeFile(join(gates, 'run.sh'), '#!/bin/sh\necho pass\n', { mode: 0o755 })
    const wrong = async (cwd: string) => {
      await writeFile(
        config,
        `provider = [{ id = "far", dialect = "chat", base_url = "http://127.0.0.1:9/v1", auth = "env", api_key_env = "FAR_KEY" }]
price = [{ model = "far/m", input_per_mtok = 1, output_per_mtok = 1 }]
gate = [
  { id = "tests", kind = "subprocess", cmd = ["./run.sh"], cwd = "${cwd}" },
  { id = "grade", kind = "judge", model = "far/m", rubric = "is it right" },
]
[[route]]
match = {}
mode = "enforce"
ladder = ["openai/gpt-4.1-mini"]
gates = ["tests", "grade"]`,
      )
      const { out } = await router(['doctor', '--json', '--config', config, '--db', 'none.db'], { OPENAI_API_KEY: 'x' })
      const { checks } = JSON.parse(out) as { checks: { name: string; ok: boolean; detail: string }[] }
      return checks.filter(({ ok }) => !ok).map(({ name, detail }) => [name, detail])
    }
    const key = ['key of far', 'set FAR_KEY']
    expect(await wrong(gates)).toEqual([key])
    expect(await wrong(join(folder, 'absent'))).toEqual([key, ['gate tests', expect.stringContaining('is no folder')]])
  })

  it('doctor says that the program of a gate has no folder to run in', async () => {
    const config = join(folder, 'gate.toml')
    await writeFile(
      config,
      `gate = [{ id = "tests", kind = "subprocess", cmd = ["/bin/true"] }]
[[route]]
match = {}
mode = "enforce"
ladder = ["openai/gpt-4.1-mini"]
gates = ["tests"]`,
    )
    const vars = { TMPDIR: '/nonexistent' }
    const { out } = await router(['doctor', '--json', '--config', config, '--db', 'none.db'], vars)
    const { checks } = JSON.parse(out) as { checks: { name: string; ok: boolean; detail: string }[] }
    expect(checks.find(({ name }) => name === 'gate tests')).toMatchObject({ ok: false })
  })

  it('explains itself in a pipe without colours, and answers what does not read with 2', async () => {
    const { out } = await router(['serve', '--help'])
    expect(out).toContain('--bind <bind>')
    expect(out).not.toMatch(/#\d/)
    expect(out).not.toContain('\u001b')
    const { out: explained } = await router(['explain', '--help'])
    for (const words of [['abc'], ['--db', 'x'], ['abc', '--db', 'x']])
      expect(await router(['explain', ...words, '--help'])).toMatchObject({ code: 0, out: explained })
    expect(await router([])).toEqual(await router(['help']))
    expect(await router(['serve', '--bnid', 'x'])).toEqual({
      code: 2,
      out: '',
      err: 'router serve has no option --bnid: did you mean --bind?\n',
    })
  })

  it('says at the start which variable nothing reads', async () => {
    const { err } = await router(['serve'], { ROUTER_MODEE: 'enforce', ROUTER_BIND: '203.0.113.1:9' })
    expect(err).toContain('ROUTER_MODEE is set, and nothing reads it: did you mean ROUTER_MODE?')
  })

  const codes: [what: string, args: string[], code: number, err: RegExp][] = [
    ['an unknown flag', ['serve', '--bogus'], 2, /--bogus/],
    ['an unknown command', ['verfy'], 2, /did you mean "router verify"/],
    ['a number that is none', ['trace', '--limit', 'many'], 2, /--limit: expected an integer/],
    ['a day that is none', ['savings', '--since', 'yesterday'], 2, /--since/],
    ['an unknown group', ['savings', '--group', 'colour'], 2, /--group/],
    ['a config that is nowhere', ['modes', '--config', '/nowhere.toml'], 2, /\/nowhere\.toml/],
    ['a store that is nowhere', ['trace', '--db', '/nowhere/router.db'], 3, /\/nowhere/],
    ['a bad address', ['serve', '--bind', 'here'], 2, /ROUTER_BIND/],
    ['a mode that is none', ['serve', '--mode', 'fast'], 2, /ROUTER_MODE/],
  ]
  it.each(codes)('leaves with its own code for %s', async (_, args, code, err) => {
    const ended = await router(args)
    expect([ended.code, ended.out]).toEqual([code, ''])
    expect(ended.err).toMatch(err)
    expect(ended.err).not.toMatch(/\n\s+at /)
  })

  it('leaves with 1 for an id that the store does not have', async () => {
    for (const command of ['trace', 'explain']) {
      expect(await router([command, 'no-such-id', ...store()])).toMatchObject({
        code: 1,
        out: '',
        err: expect.stringContaining('no-such-id'),
      })
    }
  })
})

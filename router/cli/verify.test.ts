import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { typed } from '../../shared/cli/testing/typed.ts'
import { toBase64 } from '../../shared/sign/bytes.ts'
import { type Sealed, seal } from '../../shared/sign/record-chain.ts'
import { check } from '../../shared/wire/issues.ts'
import { type VerifyReport, verifyReport } from '../../shared/wire/router/checkpoint.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import { storeFolder, TEST_SEED, testSigner, testWriter } from '../host/testing/store-folder.ts'
import { publishKey } from '../traces/keys.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { routerProgram } from './commands.ts'

let folder: Awaited<ReturnType<typeof storeFolder>>
let dbPath: string
beforeAll(async () => {
  folder = await storeFolder()
  dbPath = folder.path('router.db')
  const db = await folder.open()
  await publishKey(db, testSigner, new Date())
  const writer = testWriter(db, { limits: { checkpoint_records: 5 } })
  for (let count = 0; count < 20; count++) {
    writer.enqueue(sampleTrace({ tenant: count < 12 ? 'a' : 'b', at: Date.UTC(2026, 0, 1 + count), session: 'héé\n' }))
    if (count === 6) await writer.flush()
  }
  await writer.close()
})
afterAll(() => folder.remove())

const router = (...args: string[]) => typed(routerProgram, args, { env: { ROUTER_DB: dbPath } })

describe('router verify', () => {
  it('accepts the store and prints one line for each tenant', async () => {
    const { code, out } = await router('verify', '--strict')
    expect([code, out]).toEqual([
      0,
      'a: 12 records, valid, last checkpoint at seq 11, 0 after it\nb: 8 records, valid, last checkpoint at seq 7, 0 after it\nvalid: 20 records\n',
    ])
  })

  it('accepts an export that holds everything it needs, of one tenant or of all', async () => {
    const all = folder.path('all.jsonl')
    expect((await router('export', '--checkpoints', '--feedback', '--out', all)).code).toBe(0)
    const { code, out } = await router('verify', '--file', all, '--json', '--key', toBase64(testSigner.publicKey))
    const report = JSON.parse(out) as unknown
    expect(code).toBe(0)
    expect(check(verifyReport, report)).toEqual({ ok: true, value: report })
    expect(report).toMatchObject({ valid: true, records: 20 })

    const one = await router('export', '--tenant', 'b')
    expect(one.out).not.toContain('"tenant_id":"a"')
    const file = folder.path('b.jsonl')
    await writeFile(file, one.out)
    const bare = await router('verify', '--file', file)
    expect([bare.code, bare.out]).toEqual([
      1,
      'b: 8 records, whole, no checkpoint, 8 after it\nNOT VALID (unsigned): 8 records\n',
    ])
    expect(bare.err).toContain('no signed checkpoint covers 8 records of b')
    expect((await router('verify', '--file', file, '--allow-unsigned')).code).toBe(0)
    expect((await router('verify', '--file', file, '--strict', '--allow-unsigned')).code).toBe(1)
  })

  it('quotes a hostile file without letting it write to the terminal', async () => {
    const file = folder.path('hostile.jsonl')
    const lines = (await router('export', '--checkpoints')).out.trim().split('\n')
    const stranger = { ...(JSON.parse(lines[0]!) as TraceRecord), tenant_id: 'x\u001b[2K\rvalid: 20 records\u001b[8m' }
    await writeFile(file, [...lines, JSON.stringify(stranger)].join('\n'))
    const { code, out, err } = await router('verify', '--file', file)
    expect([code, out]).toEqual([
      1,
      expect.stringContaining('\nx\\u{1b}[2K\\u{d}valid: 20 records\\u{1b}[8m: 1 record, BROKEN'),
    ])
    expect(out + err).not.toContain('\u001b')
  })

  it('is not fooled by a chain made anew without its checkpoints, nor by an end that is under none', async () => {
    const key = toBase64(testSigner.publicKey)
    const lines = (await router('export', '--tenant', 'a', '--checkpoints')).out.trim().split('\n')
    const records = lines.slice(0, 12)
    let last: Sealed | undefined
    const forged = records.map(line => {
      const { hash: _, ...record } = JSON.parse(line) as TraceRecord
      last = seal({ ...record, session_id: 'forged' }, last)
      return JSON.stringify(last)
    })
    const file = folder.path('forged.jsonl')
    const said = async (text: string, ...args: string[]) => {
      await writeFile(file, text)
      const { code, out } = await router('verify', '--file', file, '--json', ...args)
      const { valid, reason } = JSON.parse(out) as VerifyReport
      return [code, valid, reason]
    }
    expect(await said(forged.join('\n'), '--key', key)).toEqual([1, false, 'unsigned'])
    const oldest = lines.filter(line => line.includes('"sig"'))[0]!
    const [own] = lines.slice(-1)
    expect(await said([...records, oldest].join('\n'), '--key', key)).toEqual([1, false, 'unsigned'])
    expect(await said(lines.filter(line => line !== own).join('\n'))).toEqual([1, false, 'no_key'])
    expect(await said('')).toEqual([1, false, 'unsigned'])
    expect(await said(lines.join('\n'), '--key', key)).toEqual([0, true, undefined])
  })

  it('says of a file without records that there are none', async () => {
    const file = folder.path('empty.jsonl')
    await writeFile(file, '')
    const { code, err } = await router('verify', '--file', file)
    expect([code, err]).toEqual([1, expect.stringContaining('there is no record in it')])
    expect(err).not.toContain('covers')
  })

  it('names what makes a checkpoint or a key say two things', async () => {
    const text = (await router('export', '--tenant', 'a', '--checkpoints')).out
    const file = folder.path('two-faced.jsonl')
    for (const [reason, forged] of [
      ['duplicate_member', text.replace('"kind":"head"', '"kind":"prune","kind":"head"')],
      ['unknown_member', text.replace('"kind":"head"', '"note":"","kind":"head"')],
      ['unknown_member', text.replace('"alg":', '"owner":"","alg":')],
      ['shape', text.replace(testSigner.keyId + '","alg"', '0123456789abcdef","alg"')],
    ] as const) {
      await writeFile(file, forged)
      const { code, out } = await router('verify', '--file', file)
      expect([code, out]).toEqual([1, `NOT VALID (${reason}): 0 records\n`])
    }
    const bytes = Buffer.from(text)
    bytes[bytes.indexOf(0xc3)] = 0xff
    await writeFile(file, bytes)
    expect((await router('verify', '--file', file)).out).toContain('BROKEN at index 0 (parse)')
  })

  it('exits 1 and names the index of a changed record, in an export and in the store', async () => {
    const lines = (await router('export', '--tenant', 'a')).out.split('\n')
    const file = folder.path('edited.jsonl')
    await writeFile(file, lines.with(11, lines[11]!.replace('0.0092', '0.0093')).join('\n'))
    const edited = await router('verify', '--file', file)
    expect(edited.code).toBe(1)
    expect(edited.out).toContain('a: 12 records, BROKEN at index 11 (hash)')

    const db = await folder.open()
    await db.execute("update traces set total_nano = 1 where tenant_id = 'b' and seq = 2")
    const stored = await router('verify', '--db', dbPath, '--tenant', 'b')
    await db.execute("update traces set total_nano = 2300000 where tenant_id = 'b' and seq = 2")
    expect([stored.code, stored.out]).toEqual([
      1,
      'b: 8 records, BROKEN at index 2 (columns), last checkpoint at seq 7, 0 after it\nBROKEN: 8 records\n',
    ])
  })

  it.each(['\ufeff', '\u2028', '\u00a0', '\f'])(
    'takes for blank what is white space of JSON, which %j is not',
    async line => {
      const file = folder.path('blank.jsonl')
      const whole = (await router('export', '--checkpoints')).out
      await writeFile(file, `\n \t\r\n${whole}\r\n`)
      expect((await router('verify', '--file', file)).code).toBe(0)
      await writeFile(file, `${whole}${line}\n`)
      const { code, out } = await router('verify', '--file', file)
      expect([code, out]).toEqual([1, expect.stringContaining('(parse)')])
    },
  )

  it.each([
    ['tenant_id', "'b'"],
    ['kind', "'prune'"],
    ['seq', '1152921504606846976'],
    ['digest', "'00'"],
  ])('finds a checkpoint whose %s stands otherwise beside it', async (column, value) => {
    const db = await folder.open()
    await db.execute(`create table was as select * from checkpoints where ix = 1`)
    await db.execute(`update checkpoints set ${column} = ${value} where ix = 1`)
    const { code, out, err } = await router('verify')
    await db.execute(`update checkpoints set ${column} = (select ${column} from was) where ix = 1`)
    await db.execute('drop table was')
    expect([code, out]).toEqual([1, 'NOT VALID (columns): 0 records\n'])
    expect(err).toContain('the columns of number 1 say something else than it does')
  })

  it('finds a cut end by checkpoints that were kept elsewhere', async () => {
    const lines = (await router('export', '--tenant', 'a', '--checkpoints')).out.trim().split('\n')
    const anchor = folder.path('anchor.jsonl')
    await writeFile(anchor, lines.filter(line => line.includes('"sig"')).join('\n'))
    const file = folder.path('cut.jsonl')
    await writeFile(file, lines.slice(0, 9).join('\n'))
    const result = await router('verify', '--file', file, '--anchor', anchor)
    expect([result.code, result.out.split('\n')[0]]).toEqual([
      1,
      'a: 9 records, BROKEN at index 9 (tail_cut), no checkpoint, 9 after it',
    ])
    expect((await router('verify', '--file', file)).err).toContain('no anchor')
    const emptied = folder.path('emptied.jsonl')
    await writeFile(emptied, '')
    const nothing = await router('verify', '--anchor', emptied)
    expect([nothing.code, nothing.out, nothing.err]).toEqual([3, '', expect.stringContaining('holds no checkpoint')])
    const kept = await router('verify', '--file', file, '--checkpoints', anchor)
    expect(kept.code).toBe(1)
  })

  it('says in a sentence what cannot be read', async () => {
    for (const args of [
      ['--db', folder.path('none.db')],
      ['--file', folder.path('none.jsonl')],
      ['--anchor', folder.path('none')],
    ]) {
      const { code, err } = await router('verify', ...args)
      expect([code, err.trim().split('\n').length]).toEqual([3, 1])
    }
    expect((await router('verify', '--db', 'x', '--file', 'y')).code).toBe(2)
    expect((await router('verify', '--key', 'nonsense')).err).toContain('--key expected')
  })

  it('knows the private key, which has the form of a public one, and says what to give', async () => {
    const [secret, mine] = [folder.path('router.db.key'), toBase64(testSigner.publicKey)]
    await writeFile(secret, `${toBase64(TEST_SEED)}\n`)
    const file = folder.path('signed.jsonl')
    await writeFile(file, (await router('export', '--checkpoints')).out)
    for (const args of [[], ['--file', file]]) {
      const { code, out, err } = await router('verify', ...args, '--key', secret)
      expect([code, out]).toEqual([2, expect.not.stringContaining('BROKEN')])
      expect(err + out).toContain(`its public key, ${mine}`)
      expect(err + out).not.toContain(toBase64(TEST_SEED))
      expect((await router('verify', ...args, '--key', mine)).code).toBe(0)
    }
  })
})

describe('router export', () => {
  it('writes the shortest piece that holds a window', async () => {
    const { out } = await router('export', '--since', '2026-01-03', '--until', '2026-01-05T00:00:00Z')
    expect(
      out
        .trim()
        .split('\n')
        .map(line => (JSON.parse(line) as { seq: number }).seq),
    ).toEqual([2, 3])
    expect((await router('export', '--since', 'soon')).err).toContain('--since: expected')
  })

  it('writes files for their owner only', async () => {
    const path = folder.path('own.jsonl')
    await router('export', '--out', path)
    expect((await readFile(path, 'utf8')).trim().split('\n')).toHaveLength(20)
  })
})

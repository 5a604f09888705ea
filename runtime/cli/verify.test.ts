import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { toBase64 } from '../../shared/sign/bytes.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, ReceiptKeys, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { programEnv } from '../../tests/program-env.ts'
import { MAIN, servedRuntime } from './testing/served-runtime.ts'

let on: Awaited<ReturnType<typeof servedRuntime>>
beforeAll(async () => {
  on = await servedRuntime()
})
afterAll(() => on.close())

async function files(): Promise<{ receipt: Receipt; journal: JournalExport; keys: ReceiptKeys }> {
  const { id } = await on.call<{ id: string }>('POST', '/v1/runs', { agentName: 'echo', input: { prompt: 'prove it' } })
  await on.call('GET', `/v1/runs/${id}/events`)
  const made = {
    receipt: await on.call<Receipt>('GET', `/v1/runs/${id}/receipt`),
    journal: await on.call<JournalExport>('GET', `/v1/runs/${id}/journal`),
    keys: await on.call<ReceiptKeys>('GET', '/.well-known/platform-receipts'),
  }
  for (const [name, value] of Object.entries(made)) await save(name, value)
  return made
}

const save = (name: string, value: unknown) => writeFile(join(on.folder, `${name}.json`), JSON.stringify(value))

/** The command as a process of its own, in the folder of the files, with nothing of the service in its environment. */
function runtime(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise(resolve => {
    execFile(
      process.execPath,
      [MAIN, ...args],
      { cwd: on.folder, env: { ...programEnv, PLATFORM_DATA_DIR: on.folder } },
      (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    )
  })
}

it('says valid with nothing but the fingerprint, and names what does not fit', async () => {
  const { receipt, journal, keys } = await files()
  const print = ['--fingerprint', keys.keyFingerprint]
  expect(await runtime('verify', 'receipt.json', ...print)).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^valid {6}run/),
  })
  const whole = await runtime('verify', 'receipt.json', 'journal.json', ...print)
  expect(whole).toMatchObject({ code: 0, out: expect.stringContaining(`all ${journal.eventCount} events match`) })
  for (const key of ['keys.json', keys.publicKey]) {
    expect((await runtime('verify', 'receipt.json', '--journal', 'journal.json', '--key', key)).code).toBe(0)
  }
  await save('cut', { ...journal, events: journal.events.slice(0, -1) })
  const cut = await runtime('verify', 'receipt.json', '--journal', 'cut.json', '--json', ...print)
  expect([cut.code, JSON.parse(cut.out)]).toMatchObject([1, { valid: false, reason: 'event_count_mismatch' }])
  const [first, ...rest] = journal.events
  await save('edited', { ...journal, events: [{ ...first, attempt: 2 }, ...rest] })
  expect((await runtime('verify', 'receipt.json', '--journal', 'edited.json', ...print)).out).toContain(
    'chain_broken (event 1)',
  )
  await save('forged', { ...receipt, payload: { ...receipt.payload, costUsd: 1 } })
  expect((await runtime('verify', 'forged.json', ...print)).out).toContain('signature_invalid')
  const foreign = await runtime('verify', 'receipt.json', '--fingerprint', '0'.repeat(64))
  expect(foreign).toMatchObject({ code: 1, out: expect.stringContaining('unknown_key') })
})

it('quotes a hostile file without letting it write to the terminal, and says that a receipt was signed late', async () => {
  const { receipt, keys } = await files()
  const print = ['--fingerprint', keys.keyFingerprint]
  await save('hostile', { ...receipt, '\u001b[2K\rvalid      run 1\u202e': 1 })
  const hostile = await runtime('verify', 'hostile.json', ...print)
  expect([hostile.code, hostile.out]).toEqual([
    ...[1, 'NOT VALID  unknown_member: a receipt has no member \\u{1b}[2K\\u{d}valid      run 1\\u{202e}\n'],
  ])

  expect((await runtime('verify', 'receipt.json', ...print)).out).not.toContain('late')
  const store = await openDb(join(on.folder, 'waybill.db'))
  const { runId } = receipt.payload
  await store.execute({ sql: 'delete from receipts where run_id = ?', args: [runId] })
  store.close()
  const late = await on.call<Receipt>('GET', `/v1/runs/${runId}/receipt`)
  await save('late', late)
  expect((await runtime('verify', 'late.json', ...print)).out).toContain(
    `\nlate       signed ${late.payload.issuedAt}, not in the commit that ended the run`,
  )
})

it('holds a receipt against what the list of keys says of its key', async () => {
  const { receipt, keys } = await files()
  const [key] = keys.keys
  for (const [name, change, why] of [
    ['revoked', { status: 'revoked' }, 'was revoked'],
    ['retired', { status: 'retired', notAfter: key!.notBefore }, `in use from ${key!.notBefore} to ${key!.notBefore}`],
    ['future', { notBefore: '2100-01-01T00:00:00.000Z' }, 'in use from 2100-01-01T00:00:00.000Z to now'],
  ] as const) {
    await save(name, { ...keys, keys: [{ ...key, ...change }] })
    const said = await runtime('verify', 'receipt.json', '--key', `${name}.json`)
    expect([said.code, said.out, said.err]).toEqual([2, '', expect.stringContaining(why)])
  }
  expect(receipt.payload.keyId).toBe(key!.keyId)
})

it('answers 2 and one line for what it cannot use', async () => {
  const { keys } = await files()
  const print = ['--fingerprint', keys.keyFingerprint]
  expect(await runtime('verify', 'none.json', ...print)).toEqual({
    code: 2,
    out: '',
    err: 'none.json is not a receipt: it cannot be read\n',
  })
  await writeFile(join(on.folder, 'half.json'), '{"payload":')
  expect((await runtime('verify', 'half.json', ...print)).err).toBe('half.json is not a receipt: it is not JSON\n')
  expect((await runtime('verify', 'keys.json', ...print)).err).toMatch(/^keys\.json is not a receipt: /)
  expect((await runtime('verify', 'receipt.json', '--fingerprint', 'abc')).code).toBe(2)
})

it('knows the private key, which has the form of a public one, and says what to give', async () => {
  const { receipt } = await files()
  const seed = new Uint8Array(32).fill(7)
  const { keyId, publicKey } = await signer(seed)
  await save('own', { ...receipt, payload: { ...receipt.payload, keyId } })
  const said = await runtime('verify', 'own.json', '--key', toBase64(seed))
  expect([said.code, said.out, said.err]).toEqual([2, '', expect.stringContaining(toBase64(publicKey))])
  expect(said.err).not.toContain(toBase64(seed))
})

it('goes on saying valid after the key was rotated, and a running service signs with the new one', async () => {
  const old = await files()
  const rotated = await runtime('keys', 'rotate')
  expect(rotated.code).toBe(0)
  expect(rotated.out.trim()).not.toBe(old.receipt.payload.keyId)
  const keys = await on.call<ReceiptKeys>('GET', '/.well-known/platform-receipts')
  expect(keys.keys.map(({ keyId, status }) => [keyId, status])).toEqual([
    [old.receipt.payload.keyId, 'retired'],
    [rotated.out.trim(), 'active'],
  ])
  expect(await on.call<VerifyResult>('POST', '/v1/runs/receipts/verify', old.receipt)).toMatchObject({ valid: true })
  await save('keys', keys)
  expect((await runtime('verify', 'receipt.json', '--key', 'keys.json')).code).toBe(0)
})

it('refuses a list that has the key of the receipt twice, of which one may be revoked', async () => {
  const { keys, receipt } = await files()
  const { keyId } = receipt.payload
  const key = keys.keys.find(one => one.keyId === keyId)!
  await save('keys', { ...keys, keys: [key, { ...key, status: 'revoked' }] })
  const said = await runtime('verify', 'receipt.json', '--key', 'keys.json')
  expect([said.code, said.err]).toEqual([2, expect.stringContaining(`keys.json lists the key ${keyId} twice: take`)])
})

it('says that a stolen key counts no more once it is revoked, which one in use is not', async () => {
  const old = await files()
  const { keyId } = old.receipt.payload
  const inUse = (await runtime('keys', 'rotate')).out.trim()
  expect(await runtime('keys', 'revoke', inUse)).toMatchObject({ code: 1, err: expect.stringContaining('keys rotate') })
  expect(await runtime('keys', 'revoke', keyId)).toMatchObject({ code: 0, err: '' })
  const refused = { valid: false, reason: 'key_revoked' }
  await expect
    .poll(() => on.call<VerifyResult>('POST', '/v1/runs/receipts/verify', old.receipt), { timeout: 10_000 })
    .toMatchObject(refused)
  await save('keys', await on.call<ReceiptKeys>('GET', '/.well-known/platform-receipts'))
  const said = await runtime('verify', 'receipt.json', '--key', 'keys.json')
  expect([said.code, said.err]).toEqual([2, expect.stringContaining('was revoked')])
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { isFull } from '../../tests/slice.ts'
import { publishedKeys, trustedKeys } from '../traces/keys.ts'
import { storedCheckpoints, storedRecords } from '../traces/stored-records.ts'
import { verifyRecords } from '../traces/verify.ts'
import { readSigningKey } from './signing-key.ts'
import { openSpillFile } from './spill-file.ts'
import { storeFolder, testWriter } from './testing/store-folder.ts'

const children = {
  'the writer in the main thread': new URL('./testing/durable-child.ts', import.meta.url).pathname,
  'the receipt thread': new URL('./testing/durable-thread-child.ts', import.meta.url).pathname,
}

let folder: Awaited<ReturnType<typeof storeFolder>>
beforeAll(async () => {
  folder = await storeFolder()
})
afterAll(() => folder.remove())

/** Runs the child until it has told of so many records, then kills it without a word. */
async function runAndKill(child: string, dbPath: string, acknowledged: number): Promise<string[]> {
  const running = spawn(process.execPath, [child, dbPath], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  running.stdout.on('data', chunk => {
    text += String(chunk)
    if (text.split('\n').length > acknowledged) running.kill('SIGKILL')
  })
  const [code, signal] = await once(running, 'close')
  expect([code, signal]).toEqual([null, 'SIGKILL'])
  // The last line may be cut.
  return text.split('\n').slice(0, -1)
}

it.each(Object.entries(children))(
  'keeps every record that %s acknowledged, once, over kills at random moments',
  async (name, child) => {
    const file = `${name}.db`
    const dbPath = folder.path(file)
    const told: string[] = []
    for (let round = 0; round < (isFull ? 5 : 2); round++)
      told.push(...(await runAndKill(child, dbPath, 1 + Math.floor(Math.random() * 400))))

    const db = await folder.open(file)
    const signer = await readSigningKey({ dbPath })
    const spill = await openSpillFile(dbPath)
    const writer = testWriter(db, {
      mode: 'durable',
      spill,
      ...(signer && { signer }),
      isGone: () => true,
    })
    writer.start()
    await expect.poll(() => spill.bytes(), { interval: 20, timeout: 20_000 }).toBe(0)
    await writer.close()

    const { rows } = await db.execute('select trace_id from traces')
    const stored = rows.map(row => String(row.trace_id))
    expect(new Set(stored).size).toBe(stored.length)
    const there = new Set(stored)
    expect(told.filter(id => !there.has(id))).toEqual([])
    expect(told.length).toBeGreaterThanOrEqual(5)
    const report = await verifyRecords({
      records: storedRecords(db),
      checkpoints: await storedCheckpoints(db),
      keys: trustedKeys(await publishedKeys(db)),
      sha256: nativeSha256,
    })
    expect(report).toMatchObject({ valid: true, records: stored.length, tenants: [{ unanchored_tail: 0 }] })
  },
)

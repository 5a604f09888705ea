import { appendFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readSpill, spillLine } from '../traces/spill.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { openSpillFile } from './spill-file.ts'

let folder: string
let dbPath: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-spill-'))
  dbPath = join(folder, 'router.db')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function drained(spill: Awaited<ReturnType<typeof openSpillFile>>) {
  const found = []
  let torn = 0
  for (const part of await spill.parts()) {
    const content = readSpill(await part.read())
    found.push(...content.records)
    torn += content.torn
    await part.remove()
  }
  return { ids: found.map(({ trace_id }) => trace_id), torn }
}

describe('the spill file', () => {
  it('keeps lines until their part is removed, in the order of their time', async () => {
    const spill = await openSpillFile(dbPath)
    const records = [3, 1, 2].map(second => sampleTrace({ at: second * 1000 }))
    await Promise.all(records.map(record => spill.append(spillLine(record))))
    expect(spill.bytes()).toBeGreaterThan(3000)
    expect(await readdir(folder)).toEqual(['router.db.spill.jsonl'])
    await spill.parts()
    const late = sampleTrace({ at: 4000 })
    await spill.append(spillLine(late))
    // A process that died between reading and removing: all of it is read again, with what came since.
    const again = await openSpillFile(dbPath)
    expect(await drained(again)).toEqual({
      ids: [records[1], records[2], records[0], late].map(one => one?.trace_id),
      torn: 0,
    })
    expect(await readdir(folder)).toEqual([])
    expect(again.bytes()).toBe(0)
    await Promise.all([spill.close(), again.close()])
  })

  it('skips a line that a dying process left half written, and not the one appended after it', async () => {
    const [whole, cut, next] = [sampleTrace(), sampleTrace(), sampleTrace()]
    await appendFile(`${dbPath}.spill.jsonl`, `${spillLine(whole)}\n${spillLine(cut).slice(0, 700)}`)
    const spill = await openSpillFile(dbPath)
    await spill.append(spillLine(next))
    const { ids, torn } = await drained(spill)
    expect(ids.sort()).toEqual([whole.trace_id, next.trace_id].sort())
    expect(torn).toBe(1)
    await spill.close()
  })

  it('misses no line when one process sets the file aside while another appends', async () => {
    const [writer, drainer] = [await openSpillFile(dbPath), await openSpillFile(dbPath)]
    const records = Array.from({ length: 300 }, () => sampleTrace())
    const seen = new Set<string>()
    let done = false
    const draining = (async () => {
      do for (const id of (await drained(drainer)).ids) seen.add(id)
      while (!done)
    })()
    for (const record of records) await writer.append(spillLine(record))
    done = true
    await draining
    for (const id of (await drained(drainer)).ids) seen.add(id)
    expect([...seen].sort()).toEqual(records.map(({ trace_id }) => trace_id).sort())
    await Promise.all([writer.close(), drainer.close()])
  })

  it('misses no line and refuses none when it is drained by the process that appends', async () => {
    const spill = await openSpillFile(dbPath)
    const records = Array.from({ length: 200 }, () => sampleTrace())
    const seen: string[] = []
    for (const record of records) {
      const appended = spill.append(spillLine(record))
      seen.push(...(await drained(spill)).ids)
      await appended
    }
    seen.push(...(await drained(spill)).ids)
    expect([...new Set(seen)].sort()).toEqual(records.map(({ trace_id }) => trace_id).sort())
    await spill.close()
  })

  it('refuses a line when the disk does', async () => {
    const spill = await openSpillFile(dbPath)
    await rm(folder, { recursive: true })
    await expect(spill.append('{}')).rejects.toThrow('ENOENT')
    await spill.close()
    await expect(readFile(`${dbPath}.spill.jsonl`)).rejects.toThrow()
  })
})

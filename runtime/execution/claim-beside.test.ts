import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InStatement } from '@libsql/client/web'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Db } from '../../shared/sql/db.ts'
import { reads } from '../../shared/sql/guarded-client.ts'
import { type NewRun, runStore } from '../runs/store.ts'
import { clearRecords } from '../vault/records.ts'
import { engineLimits } from './engine-deps.ts'
import type { AskModel } from './models/model.ts'
import { engineFixture, type FixtureOptions, says, script } from './testing/engine-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

const textOf = (statement: InStatement) => (typeof statement === 'string' ? statement : statement.sql)
const isClaim = (statement: InStatement) => textOf(statement).includes("status = 'running', owner = ?1, epoch")
const keepsTurns = (statement: InStatement) => isClaim(statement) && textOf(statement).includes('lanes')

/** A server prepares each statement anew, so there a claim is short while there is a place for all that is due. */
const STORES = ['file', 'remote'] as const
let kind: (typeof STORES)[number] = 'file'

/** The transactions of an engine whose runs are claimed as they are made, each by what its statements are about. */
async function fixture(options: FixtureOptions & { slots?: number } = {}) {
  const { slots = 4, wrap = db => db, ...rest } = options
  const writes: InStatement[][] = []
  const counted = (inner: Db): Db => ({
    ...inner,
    write(statements) {
      writes.push(statements)
      return inner.write(statements)
    },
    execute(statement) {
      if (!reads(textOf(statement))) writes.push([statement])
      return inner.execute(statement)
    },
  })
  const made = await engineFixture({
    claimsNewRuns: true,
    limits: { ...engineLimits, maxConcurrent: slots },
    ...rest,
    wrap: db => wrap({ ...counted(db), kind }),
  })
  open.push(made)
  await made.engine.start()
  await expect.poll(() => writes.some(list => list.some(isClaim))).toBe(true)
  await new Promise(resolve => setTimeout(resolve, 0))
  writes.length = 0
  return { ...made, writes }
}

/** Answers are given when they are let go. */
function heldModel() {
  const said: string[] = []
  const waiting: (() => void)[] = []
  let free = false
  const ask: AskModel = ({ messages: [first] }) =>
    new Promise(resolve => {
      said.push(first?.role === 'user' ? first.text : '')
      if (free) resolve(says('done'))
      else waiting.push(() => resolve(says('done')))
    })
  return {
    said,
    ask,
    letGo() {
      free = true
      for (const go of waiting.splice(0)) go()
    },
  }
}

describe.each(STORES)('a run that is made while a worker is free, in a store that is a %s one', store => {
  beforeEach(() => {
    kind = store
  })
  afterEach(() => {
    kind = 'file'
  })

  it('is claimed by the transaction that makes it, and costs three in all: no claim follows its end', async () => {
    const { create, until, writes } = await fixture()
    const id = await create({ prompt: 'hello' })
    await until(id)
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(writes.map(list => list.some(isClaim))).toEqual([true, false, false])
    expect(writes[0]?.some(keepsTurns)).toBe(store === 'file')
  })

  it('is executed with what it was given, and from where its journal begins', async () => {
    const { create, until, runs } = await fixture({ ask: script([says('first'), says('second')]) })
    const id = await create({ prompt: 'hello' })
    expect(await until(id)).toMatchObject({
      status: 'succeeded',
      input: { prompt: 'hello' },
      output: { result: 'first' },
    })
    expect((await runs.events(id, 1, 10)).map(({ seq }) => seq)).toEqual([1, 2])
  })

  it('waits its turn behind what has waited longer, and the run of a tenant with none here goes first', async () => {
    const model = heldModel()
    const { create, db } = await fixture({ slots: 1, ask: model.ask })
    await db.execute({ sql: 'insert into tenants (id, name, created_ms) values (?, ?, 1)', args: ['b', 'b'] })
    // Of another process, which has no worker free.
    const others = runStore(db, clearRecords)
    const older = { ...newRun('older'), createdMs: Date.now() - 1000 }
    await others.create(older)
    await create({ prompt: 'newer' })
    await expect.poll(() => model.said).toEqual(['older'])
    await others.create({ ...newRun('of b'), tenantId: 'b' })
    model.letGo()
    await expect.poll(() => model.said).toEqual(['older', 'newer', 'of b'])
  })

  it('takes a run along that was let go, and forgets the tries before that', async () => {
    const { create, until, db } = await fixture()
    const again = newRun('again')
    await runStore(db, clearRecords).create(again)
    await db.execute({ sql: 'update runs set recoveries = 2 where id = ?', args: [again.id] })
    await until(await create({ prompt: 'one' }))
    expect(await until(again.id)).toMatchObject({ status: 'succeeded' })
    const { rows } = await db.execute({ sql: 'select recoveries from runs where id = ?', args: [again.id] })
    expect(rows[0]?.recoveries).toBe(0)
  })

  it('takes no run along that was set aside, though a decision made it due', async () => {
    const { create, until, runs, db } = await fixture()
    const others = runStore(db, clearRecords)
    const aside = newRun('aside')
    await others.create(aside)
    await db.execute({
      sql: "update runs set status = 'waiting', parked = 'poisoned', due_ms = 0 where id = ?",
      args: [aside.id],
    })
    await until(await create({ prompt: 'one' }))
    await until(await create({ prompt: 'two' }))
    expect(await runs.get(aside.id)).toMatchObject({ status: 'waiting', parked: { reason: 'poisoned' } })
  })

  it('is left to others by a process that has no worker free, or that stops', async () => {
    const model = heldModel()
    const { create, runs, engine, writes } = await fixture({ slots: 1, ask: model.ask })
    await create({ prompt: 'one' })
    await expect.poll(() => model.said).toEqual(['one'])
    writes.length = 0
    const second = await create({ prompt: 'two' })
    expect(writes.some(list => list.some(isClaim))).toBe(false)
    expect(await runs.get(second)).toMatchObject({ status: 'queued' })
    engine.drain()
    model.letGo()
    const third = await create({ prompt: 'three' })
    expect(await runs.get(third)).toMatchObject({ status: 'queued' })
  })

  it('is claimed by one of two processes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'beside-'))
    try {
      const model = heldModel()
      const [one, two] = [
        await fixture({ slots: 3, ask: model.ask, url: join(folder, 'x.db') }),
        await fixture({ slots: 3, ask: model.ask, url: join(folder, 'x.db') }),
      ]
      const ids = await Promise.all(
        Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? one : two).create({ prompt: `p${at}` })),
      )
      await expect.poll(() => model.said.length).toBe(6)
      model.letGo()
      for (const id of ids) expect(await one.until(id)).toMatchObject({ status: 'succeeded' })
      expect(model.said.toSorted()).toEqual(Array.from({ length: 10 }, (_, at) => `p${at}`))
      for (const made of open.splice(0)) await made.close()
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('a creation that fails', () => {
  function failing(error: Error, after: boolean) {
    let left = 0
    return {
      fail: () => {
        left = 1
      },
      wrap: (inner: Db): Db => ({
        ...inner,
        async write(statements) {
          const fails = left > 0 && textOf(statements[0]!).includes('runs')
          if (fails) left--
          if (fails && !after) throw error
          const results = await inner.write(statements)
          if (fails) throw error
          return results
        },
      }),
    }
  }

  it('that was refused leaves the engine free to claim the next', async () => {
    const trouble = failing(Object.assign(new Error('refused'), { code: 'SQLITE_CONSTRAINT' }), false)
    const { create, until } = await fixture({ wrap: trouble.wrap })
    trouble.fail()
    await expect(create({ prompt: 'one' })).rejects.toThrow('refused')
    const id = await create({ prompt: 'two' })
    expect(await until(id)).toMatchObject({ status: 'succeeded' })
  })

  it('whose answer was lost may have been made: its run is released and executed', async () => {
    const trouble = failing(Object.assign(new Error('fetch failed'), { code: 'ECONNRESET' }), true)
    const { create, until, runs } = await fixture({ wrap: trouble.wrap })
    trouble.fail()
    await expect(create({ prompt: 'one' }, { id: 'lost' })).rejects.toThrow('fetch failed')
    expect(await runs.get('lost')).toMatchObject({ status: 'running' })
    expect(await until('lost')).toMatchObject({ status: 'succeeded' })
  })
})

function newRun(prompt: string): NewRun {
  return {
    id: uuidv7(),
    tenantId: 'default',
    agentName: 'agent',
    agentId: 'agent',
    versionId: 'agent',
    createdMs: Date.now(),
    input: JSON.stringify({ prompt }),
    labels: '{}',
    trigger: { kind: 'api' },
    isolation: 'shared',
    day: '2026-01-02',
  }
}

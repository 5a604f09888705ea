import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ModelRequest } from './models/model.ts'
import { engineFixture, says, script } from './testing/engine-fixture.ts'
import type { ConnectorAction } from './tools/connector-tool.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-approvals-'))
})
afterEach(() => rm(folder, { recursive: true }))

it.each([
  ['http://a.example', 2],
  ['http://b.example', 1],
])('repeats an interrupted call by a decision only where it goes as it did: %s', async (then, calls) => {
  const made: string[] = []
  const told: ModelRequest[] = []
  /** A life of the process, with what stands behind the connector then. */
  async function life(host: string, call: () => Promise<Record<string, unknown>>) {
    const action: ConnectorAction = {
      connectorId: 'http-pets',
      name: 'createPet',
      about: '',
      parameters: { type: 'object' },
      effect: 'once',
      to: `POST ${host}/pets`,
      coerceArguments: given => given,
      call() {
        made.push(host)
        return call()
      },
    }
    return engineFixture({
      url: join(folder, 'runs.db'),
      manifest: { connectors: ['http-pets'] },
      connectorsOf: async () => [action],
      ask: script([says('', [{ name: 'http-pets__createPet' }]), says('done')], told),
    })
  }

  const underWay = Promise.withResolvers<void>()
  const first = await life('http://a.example', () => {
    underWay.resolve()
    return new Promise(() => undefined)
  })
  const id = await first.create({ prompt: 'go' })
  await first.engine.start()
  await underWay.promise
  await first.engine.close(0)
  await first.close()

  const second = await life('http://a.example', async () => ({}))
  await second.engine.start()
  await second.until(id, ['waiting'])
  const asked = await second.db.execute({ sql: 'select reason, action from approvals where run_id = ?', args: [id] })
  expect(asked.rows.map(({ reason, action }) => [reason, JSON.parse(String(action)).to])).toEqual([
    ['uncertain_step', 'POST http://a.example/pets'],
  ])
  await second.close()

  const third = await life(then, async () => ({}))
  await third.db.write([
    {
      sql: `update approvals set status = 'approved', decision = '{"resolution":"retry"}' where run_id = ?`,
      args: [id],
    },
    { sql: 'update runs set due_ms = 0 where id = ?', args: [id] },
  ])
  await third.engine.start()
  expect(await third.until(id)).toMatchObject({ status: 'succeeded' })
  expect(made).toHaveLength(calls)
  const said = JSON.stringify(told.at(-1)!.messages)
  expect(said.includes('goes elsewhere or has other arguments than when a human was asked')).toBe(calls === 1)
  await third.close()
})

it.each([
  ['name', 2],
  ['title', 1],
])(
  'repeats an approved call that was interrupted only with the arguments that a human saw: %s',
  async (reads, calls) => {
    const made: unknown[] = []
    const told: ModelRequest[] = []
    /** A life of the process, with the argument by which the connector reads the dog then. */
    async function life(argument: string, call: () => Promise<Record<string, unknown>>) {
      const action: ConnectorAction = {
        connectorId: 'http-pets',
        name: 'putPet',
        about: '',
        parameters: { type: 'object' },
        effect: 'idempotent',
        coerceArguments: ({ name }) => ({ [argument]: name }),
        call(given) {
          made.push(given)
          return call()
        },
      }
      return engineFixture({
        url: join(folder, 'runs.db'),
        manifest: { connectors: ['http-pets'], approvals: { tools: ['connectors:write'] } },
        connectorsOf: async () => [action],
        ask: script([says('', [{ name: 'http-pets__putPet', arguments: { name: 'Rex' } }]), says('done')], told),
      })
    }

    const underWay = Promise.withResolvers<void>()
    const first = await life('name', () => {
      underWay.resolve()
      return new Promise(() => undefined)
    })
    const id = await first.create({ prompt: 'go' })
    await first.engine.start()
    await first.until(id, ['waiting'])
    await first.db.write([
      { sql: "update approvals set status = 'approved' where run_id = ?", args: [id] },
      { sql: 'update runs set due_ms = 0 where id = ?', args: [id] },
    ])
    first.engine.wake()
    await underWay.promise
    await first.engine.close(0)
    await first.close()

    const second = await life(reads, async () => ({}))
    await second.engine.start()
    expect(await second.until(id)).toMatchObject({ status: 'succeeded' })
    expect(made).toEqual(Array(calls).fill({ name: 'Rex' }))
    const said = JSON.stringify(told.at(-1)!.messages)
    expect(said.includes('a human has approved it with other arguments')).toBe(calls === 1)
    await second.close()
  },
)

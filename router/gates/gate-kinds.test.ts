import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../config/load-config.ts'
import type { RoutingConfig } from '../config/routing-config.ts'
import { buildGates } from './build-gates.ts'
import { commonKeys } from './common-keys.ts'
import type { GateHost } from './gate-host.ts'
import { type GateKind, gateKinds } from './gate-kinds.ts'
import { regexJobs } from './regex-job.ts'
import { never } from './testing/fake-gate.ts'
import { answered, fakeModels } from './testing/models.ts'
import { inputOf } from './testing/subject.ts'

/** The keys that a table of the kind cannot do without. */
const KEYS: Partial<Record<GateKind, object>> = {
  schema: { schema: { type: 'object', properties: { a: { pattern: '^b$' } } } },
  regex: { must: ['a'] },
  length: { max_chars: 100 },
  subprocess: { cmd: ['true'] },
  http: { url: 'https://gate.example/', headers_env: { authorization: 'TOKEN' } },
  function: { name: 'grade' },
  judge: { model: 'court/judge', rubric: 'It is JSON.' },
}

const yes = { verdict: 'pass' } as const
const jobs = regexJobs()
const host: GateHost = {
  runProcess: async () => ({
    kind: 'exited',
    code: 0,
    stdout: new TextEncoder().encode(JSON.stringify(yes)),
    stderr: new Uint8Array(),
  }),
  fetch: async () => Response.json(yes),
  functions: { grade: () => yes },
  regexRunner: { run: async job => jobs(job) },
  env: () => 'secret',
}

function configOf(gates: readonly object[], price = 1): RoutingConfig {
  const models = ['court/judge', 'court/second', 'court/third']
  const loaded = loadConfig(
    {
      provider: [{ id: 'court', dialect: 'chat', base_url: 'https://court.example', auth: 'none' }],
      price: models.map(model => ({ model, input_per_mtok: price, output_per_mtok: 1 })),
      gate: gates,
    },
    { hostHasProcesses: true, functions: ['grade'] },
  )
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join('\n'))
  return loaded.config
}

const names = Object.keys(gateKinds)

describe('the kinds of gates', () => {
  it('are one file each, which holds the kind that it is named for and nothing else', async () => {
    const files = readdirSync(new URL('./kinds/', import.meta.url)).map(file => file.replace(/\.ts$/, ''))
    expect(files.toSorted()).toEqual(names.toSorted())
    for (const [name, definition] of Object.entries(gateKinds)) {
      const module: Record<string, unknown> = await import(`./kinds/${name}.ts`)
      expect(Object.values(module)).toEqual([definition])
      expect(definition.kind).toBe(name)
    }
  })

  it('say something of each of their own keys, and the quick ones come first, as docs/settings.md has them', () => {
    for (const { about, words, schema, kind } of Object.values(gateKinds)) {
      expect(about).toMatch(/\.$/)
      expect([...Object.keys(commonKeys), 'kind', ...Object.keys(words)], kind).toEqual(Object.keys(schema.shape))
    }
    const slow = Object.values(gateKinds).map(kind => kind.slow)
    expect(slow).toEqual(slow.toSorted())
  })

  it.each(Object.values(gateKinds))('lead from a table to a verdict: $kind', async ({ kind, slow, callsModels }) => {
    const config = configOf([{ id: 'g', kind, ...KEYS[kind] }])
    const { gates, problems } = buildGates(Object.values(config.gates), host)
    expect(problems).toEqual([])
    const gate = gates.get('g')!
    expect(gate).toMatchObject({ kind, slow, callsModels, timeoutMs: slow ? 30_000 : 1000 })
    const { models } = fakeModels({
      ask: () => answered({ text: '{"score":1}' }),
      repeat: () => answered({ text: '{"a":"b"}' }),
    })
    const { verdict, error } = await gate.run({ ...inputOf({ text: '{"a":"b"}' }), models }, never)
    expect(['pass', 'fail']).toContain(verdict)
    expect(error).toBeUndefined()
  })

  it('name every model that they call, so that a price is in the hash of prices and not in that of the config', () => {
    const priced = (price: number) =>
      configOf(
        [
          { id: 'j', kind: 'judge', model: 'court/judge', fallback_model: 'court/second', rubric: 'r' },
          { id: 'c', kind: 'consistency', model: 'court/third' },
        ],
        price,
      )
    expect(priced(1).configHash).toBe(priced(2).configHash)
    expect(priced(1).priceTableHash).not.toBe(priced(2).priceTableHash)
  })
})

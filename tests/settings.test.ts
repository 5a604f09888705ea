import { glob, readFile } from 'node:fs/promises'
import { parse } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { nodeProgram } from '../node-agent/cli/program.ts'
import { nodeRunEnv } from '../node-agent/env.ts'
import { nodeWords } from '../node-agent/env-words.ts'
import { routerProgram } from '../router/cli/commands.ts'
import { loadConfig } from '../router/config/load-config.ts'
import { defaultsWords } from '../router/config/route-words.ts'
import { topKeys } from '../router/config/schema.ts'
import { routerEnv } from '../router/env.ts'
import { routerWords } from '../router/env-words.ts'
import { runtimeProgram } from '../runtime/cli/commands.ts'
import { runtimeEnv } from '../runtime/env.ts'
import { runtimeWords } from '../runtime/env-words.ts'
import { configTables } from '../scripts/settings/config-tables.ts'
import { settingsPage } from '../scripts/settings/page.ts'
import { everyExit } from '../shared/cli/exit-code.ts'
import type { VariableGroups, VariableWords } from '../shared/env/variable-words.ts'

const root = new URL('..', import.meta.url).pathname
const page = settingsPage()
/** What the first column of a table names. */
const listed = new Set([...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name!))
const FAMILY = /^PLATFORM_(?:PROVIDER|OAUTH)_/

async function sources(...patterns: string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for await (const path of glob(patterns, { cwd: root })) {
    if (!/node_modules/.test(path)) found.set(path, await readFile(root + path, 'utf8'))
  }
  return found
}

async function productCode(...folders: string[]): Promise<Map<string, string>> {
  const all = await sources(...folders.map(folder => `${folder}/**/*.ts`))
  return new Map([...all].filter(([path]) => !/\.test\.ts$|\/testing\/|\.gen\.ts$|-words\.ts$/.test(path)))
}

const pages = async () => {
  const all = await sources('README.md', 'docs/*.md', 'docs/guides/*.md', 'docs/deploy/*')
  // Not the page itself.
  return [...all].filter(([path]) => !/docs\/settings\.md$/.test(path))
}

it('the page is what its generator makes', async () => {
  expect(await readFile(`${root}docs/settings.md`, 'utf8'), 'run `npx node scripts/settings.ts`').toBe(page)
})

describe.each([
  ['runtime', runtimeEnv, runtimeWords],
  ['router', routerEnv, routerWords],
  ['node', nodeRunEnv, nodeWords],
] as [string, z.ZodObject, VariableGroups<string>][])('variables of the %s', (_program, schema, groups) => {
  const words = Object.values(groups).flatMap(group => Object.entries(group)) as [string, VariableWords][]

  it('have their words, each once', () => {
    expect(words.map(([name]) => name).sort()).toEqual(Object.keys(schema.shape).sort())
  })

  it.each(words)('%s: default and example read, as the schema has it', (name, said) => {
    const one = schema.shape[name] as z.ZodType
    const unset = one.safeParse(undefined)
    const own = unset.success && !isEmpty(unset.data) ? unset.data : undefined
    if (said.default === undefined) expect(own, 'the schema has a default that the words leave out').toBe(undefined)
    else expect(one.parse(said.default)).toEqual(unset.data)
    if (said.example !== undefined) expect(one.safeParse(said.example).error).toBe(undefined)
  })
})

const isEmpty = (value: unknown) =>
  value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

it('every variable that the product reads is on the page', async () => {
  const missing = new Set<string>()
  for (const [path, text] of await productCode('runtime', 'router', 'node-agent', 'shared')) {
    const read = [
      ...text.matchAll(/\b(?:env|vars)\??\.([A-Z][A-Z0-9_]+)/g),
      ...text.matchAll(/['"]((?:ROUTER|PLATFORM|NODE|WAYBILL|OTEL|FIRECRACKER|AWS)_[A-Z0-9_]*[A-Z0-9])['"]/g),
      ...[...text.matchAll(/\{([^{}]*)\} = (?:[\w.]+\.)?(?:env|vars)\b/g)].flatMap(([, names]) => [
        ...names!.matchAll(/\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b/g),
      ]),
    ]
    for (const [, name] of read) if (!listed.has(name!) && !FAMILY.test(name!)) missing.add(`${path}: ${name}`)
  }
  expect([...missing]).toEqual([])
})

it('every variable that a document names is on the page', async () => {
  // Variables of the tests and of the benches are not the operator's.
  const ofTests = [...(await sources('tests/**/*.ts', 'scripts/**/*.ts')).values()].join('\n')
  const missing = new Set<string>()
  for (const [path, text] of await pages()) {
    for (const [name] of text.matchAll(/\b(?:PLATFORM|ROUTER|NODE|WAYBILL|OTEL|FIRECRACKER)_[A-Z0-9_]*[A-Z0-9]/g)) {
      if (listed.has(name) || FAMILY.test(name) || /_(?:PROVIDER|OAUTH)$/.test(name)) continue
      if (name.startsWith('WAYBILL_') && ofTests.includes(name)) continue
      missing.add(`${path}: ${name}`)
    }
  }
  expect([...missing]).toEqual([])
})

it('every link to a place of the page leads to a heading', async () => {
  const places = new Set(
    [...page.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    ),
  )
  const links = [...(await pages()), ['docs/settings.md', page.replaceAll('](#', '](settings.md#')] as const].flatMap(
    ([path, text]) => [...text.matchAll(/settings\.md#([\w-]+)/g)].map(([, place]) => ({ path, place: place! })),
  )
  expect(links.length).toBeGreaterThan(5)
  expect(links.filter(({ place }) => !places.has(place))).toEqual([])
})

it('every header of ours that a document names, or that the services read or send, is on the page', async () => {
  const missing = new Set<string>()
  const see = (path: string, name: string) => {
    if (!listed.has(name.toLowerCase()) && name !== 'x-router-') missing.add(`${path}: ${name}`)
  }
  for (const [path, text] of await pages())
    for (const [name] of text.matchAll(
      /\b(?:x-router-[a-z-]+|idempotency-[a-z]+|webhook-[a-z]+(?=`)|x-should-retry)\b/gi,
    ))
      see(path, name)
  for (const [path, text] of await productCode(
    'runtime',
    'router/auth',
    'router/enforce',
    'router/receipt',
    'shared/wire',
  )) {
    for (const [, name] of text.matchAll(
      /['"`]((?:x-router|idempotency|webhook)-[a-z-]*[a-z]|x-should-retry|x-csrf-token)['"`]/g,
    ))
      if (!path.startsWith('runtime/connectors/')) see(path, name!)
  }
  expect([...missing]).toEqual([])
})

describe('the routing config', () => {
  const keys = new Set(configTables().flatMap(table => table.keys.map(({ key }) => key)))
  const names = new Set<string>([...keys, ...topKeys])

  it.each(topKeys)('%s has its place on the page', name => {
    expect(page).toMatch(name === 'version' ? /`version` may stand at the top/ : new RegExp(`[${name}[.]]`))
  })

  it('is on the page as far as documents show it', async () => {
    const missing: string[] = []
    const see = (path: string, name: string) => void (names.has(name) || missing.push(`${path}: ${name}`))
    const walk = (path: string, value: unknown) => {
      if (Array.isArray(value)) for (const item of value) walk(path, item)
      else if (typeof value === 'object' && value !== null)
        for (const [name, inner] of Object.entries(value)) {
          see(path, name)
          // What these hold is named by the operator.
          if (!['schema', 'header', 'headers', 'headers_env', 'tenant'].includes(name)) walk(path, inner)
        }
    }
    let shown = 0
    for (const [path, text] of await pages()) {
      for (const [, toml] of text.matchAll(/^```toml[^\n]*\n([\s\S]*?)^```/gm)) {
        const document = parse(toml!)
        if (!topKeys.some(name => name in document)) continue
        shown++
        walk(path, document)
      }
      for (const [, name] of text.matchAll(/`([a-z_]+) = (?:true|false|"|\[|\d)[^`]*`/g)) see(path, name!)
    }
    expect(shown).toBeGreaterThan(1)
    expect(missing).toEqual([])
  })

  it('has the defaults of a route that the page says', () => {
    const route = { ladder: ['anthropic/claude-haiku-4-5', 'anthropic/claude-sonnet-5'] }
    const read = loadConfig({ route: [route], pricing: { unpriced: 'null' } }, { hostHasProcesses: true })
    if (!read.ok) throw new Error(JSON.stringify(read.problems))
    const applied = read.config.routes[0] as unknown as Record<string, unknown>
    let compared = 0
    for (const [key, said] of Object.entries(defaultsWords)) {
      const literal = typeof said === 'string' ? undefined : /^`([a-z_]+|[\d.]+)`$/.exec(said.unset)?.[1]
      if (literal === undefined || key === 'must_pass') continue
      const name = key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      expect(String(applied[name]), key).toBe(literal)
      compared++
    }
    expect(compared).toBeGreaterThan(10)
  })
})

describe.each([
  ['router', routerProgram, 'router/cli'],
  ['runtime', runtimeProgram, 'runtime/cli'],
  ['node-agent', nodeProgram, 'node-agent/cli'],
] as const)('the commands of %s', (_name, program, folder) => {
  it('stand in its help, each once, and their exit codes are documented', async () => {
    const loaded = await Promise.all(Object.values(program.commands).map(load => load()))
    const paths = [...new Set(loaded.flat())].map(command => command.paths!.map(words => words.join(' '))[0]!)
    const listed = program.groups.flatMap(([, commands]) => commands)
    expect([...listed].sort()).toEqual(paths.sort())
    expect(paths).toEqual(expect.arrayContaining(Object.keys(program.exits)))
    for (const [path, text] of await productCode(folder)) {
      const own = [...text.matchAll(/static override paths = \[\[([^\]]+)\]/g)].map(([, words]) =>
        words!.replaceAll(/[',]/g, '').trim(),
      )
      if (own.length === 0) continue
      const told = own.flatMap(command => Object.keys({ ...everyExit, ...program.exits[command] }))
      const returned = [...text.matchAll(/return (?:[^\n;]* \? (\d) : (\d)|(\d))\n/g)].flatMap(([, a, b, c]) =>
        [a, b, c].filter(code => code !== undefined),
      )
      expect(told, path).toEqual(expect.arrayContaining(returned))
    }
  })
})

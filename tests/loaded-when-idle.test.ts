import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { programEnv } from './program-env.ts'

const root = new URL('..', import.meta.url)
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-idle-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** What the main thread of a service has loaded, from its start to its end without a call. */
async function loadedBy(service: string): Promise<{ packages: string[]; own: string[]; paths: string[] }> {
  const list = join(folder, `${service}.json`)
  const preload = new URL('loaded-modules.ts', import.meta.url).href
  const child = spawn(process.execPath, ['--import', preload, `${service}/cli/main.ts`, 'serve'], {
    cwd: root,
    env: {
      ...programEnv,
      LOADED_MODULES: list,
      PLATFORM_BIND: '127.0.0.1:0',
      PLATFORM_DATA_DIR: join(folder, 'data'),
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_DB: join(folder, 'router.db'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  const urls = (JSON.parse(await readFile(list, 'utf8')) as string[]).filter(url => url.startsWith(root.href))
  const paths = urls.map(url => url.slice(root.href.length))
  const packageOf = (path: string) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]
  return {
    paths,
    packages: [...new Set(paths.flatMap(path => packageOf(path) ?? []))].sort(),
    own: paths.filter(path => packageOf(path) === undefined),
  }
}

/** Loading is most of a start, and what was loaded stays in memory: a feature that is not used is not loaded. */
const BOTH = [
  '@cfworker/json-schema',
  '@hono/node-server',
  '@hono/zod-validator',
  '@libsql/client',
  '@libsql/core',
  '@neon-rs/load',
  '@noble/ed25519',
  '@noble/hashes',
  'clipanion',
  'detect-libc',
  'hono',
  'js-base64',
  'libsql',
  'zod',
]
const ROUTER = [...BOTH, 'smol-toml', 'undici']
const RUNTIME = [...BOTH, '@noble/ciphers', 'croner']
describe.each([
  [
    'router',
    ROUTER,
    376,
    /^(?:runtime|node-agent)\/|files\.gen|\/onboard\/|undici\/(?:index\.js|lib\/(?:web|mock|interceptor))/,
  ],
  [
    'runtime',
    RUNTIME,
    563,
    /^(?:router|node-agent\/(?:isolation|guest))\/|files\.gen|openapi\/(?:compile|custom-connector)\.ts/,
  ],
] as const)('an idle %s', (service, packages, most, later) => {
  let loaded: Awaited<ReturnType<typeof loadedBy>>
  beforeAll(async () => {
    loaded = await loadedBy(service)
  }, 60_000)

  it('has loaded these packages and no other', () => expect(loaded.packages).toEqual(packages.toSorted()))

  it('has loaded no more modules of its own', () => {
    expect(loaded.own.length).toBeGreaterThan(50)
    expect(loaded.own.slice(most)).toEqual([])
  })

  it('has not loaded what only a feature needs', () =>
    expect(loaded.paths.filter(path => later.test(path))).toEqual([]))
})

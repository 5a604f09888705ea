import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bill, type Lock } from './bill.ts'

const root = new URL('../..', import.meta.url).pathname
const read = async <T>(name: string) => JSON.parse(await readFile(join(root, name), 'utf8')) as T
interface Component {
  group?: string
  name: string
  version: string
  purl: string
  hashes: { alg: string; content: string }[]
  licenses: { expression?: string; license?: { id: string } }[]
}

it('holds each package of an installation with its version, its license and the hash of its archive, and no other', async () => {
  const lock = await read<Lock>('package-lock.json')
  const bundled = await read<string[]>('scripts/sbom/bundled.json')
  const { components, dependencies } = bill(lock, bundled)
  const found = new Map((components as Component[]).map(one => [one.purl, one]))
  let seen = 0
  for (const [place, { version, integrity, license, dev, devOptional, name }] of Object.entries(lock.packages)) {
    if (place === '') continue
    const full = name ?? place.replace(/^.*node_modules\//, '')
    const one = found.get(`pkg:npm/${full.replace('@', '%40')}@${version}`)
    if ((dev || devOptional) && !bundled.includes(place)) continue
    seen++
    expect(one, place).toBeDefined()
    expect([one!.group, one!.name].filter(Boolean).join('/')).toBe(full)
    const [hash] = one!.hashes
    expect(`${hash!.alg.replace('SHA-', 'sha')}-${Buffer.from(hash!.content, 'hex').toString('base64')}`).toBe(
      integrity,
    )
    expect(one!.licenses[0]!.expression ?? one!.licenses[0]!.license?.id, place).toBe(license)
  }
  expect(seen).toBeGreaterThanOrEqual(found.size)
  expect(found.size).toBeGreaterThan(20)
  for (const name of ['vitest', 'typescript', 'fast-check']) expect([...found.keys()].join()).not.toContain(`/${name}@`)
  const { dependencies: direct, devDependencies: dev } =
    await read<Record<'dependencies' | 'devDependencies', Record<string, string>>>('package.json')
  const ours = dependencies.find(({ ref }) => ref.startsWith('pkg:npm/waybill@'))!.dependsOn
  const inside = bundled.map(place => [place.replace('node_modules/', ''), lock.packages[place]!.version!] as const)
  const own = inside.filter(([name]) => dev[name] !== undefined)
  const pinned = [...Object.entries(direct), ...own].map(
    ([name, version]) => `pkg:npm/${name.replace('@', '%40')}@${version}`,
  )
  expect(ours).toEqual(pinned.sort())
})

it('is the same bytes each time it is written', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-sbom-'))
  const written = await Promise.all(
    ['one', 'other'].map(name => {
      const out = join(folder, name)
      execFileSync(process.execPath, [join(root, 'scripts/sbom.ts'), '--out', out])
      return readFile(out, 'utf8')
    }),
  )
  expect(written[0]).toBe(written[1])
  expect(JSON.parse(written[0]!)).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.5' })
  await rm(folder, { recursive: true })
})

it('nothing of ours runs when the package is installed', async () => {
  const { scripts } = await read<{ scripts: Record<string, string> }>('package.json')
  // `prepare` is for a clone: npm does not run it where the package is a dependency.
  const atInstall = ['preinstall', 'install', 'postinstall', 'preprepare', 'postprepare', 'prepublish']
  expect(Object.keys(scripts).filter(name => atInstall.includes(name))).toEqual([])
  const lock = await read<{ packages: Record<string, { hasInstallScript?: boolean }> }>('package-lock.json')
  expect(lock.packages['']!.hasInstallScript).toBeUndefined()
})

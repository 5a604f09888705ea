/** What a lock file of version 3 says of one place in node_modules. */
interface Locked {
  version?: string
  integrity?: string
  license?: string
  dev?: boolean
  devOptional?: boolean
  optional?: boolean
  name?: string
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}
export interface Lock {
  name: string
  version: string
  packages: Record<string, Locked>
}

/** RFC of package URLs: the at sign of a scope is escaped. */
const purl = (name: string, version: string) => `pkg:npm/${name.replace(/^@/, '%40')}@${version}`
const MODULES = 'node_modules/'
const nameAt = (place: string) => place.slice(place.lastIndexOf(MODULES) + MODULES.length)

/** Subresource integrity as CycloneDX wants it: the algorithm by its name, the digest in hex. */
function hashesOf(integrity: string) {
  return integrity.split(' ').map(one => {
    const [algorithm = '', digest = ''] = one.split(/-(.*)/s)
    const bits = algorithm.replace('sha', '')
    return { alg: bits === '1' ? 'SHA-1' : `SHA-${bits}`, content: Buffer.from(digest, 'base64').toString('hex') }
  })
}

/** A lock says `(A OR B)` as well as `A`; CycloneDX keeps expressions apart from names. */
const licensesOf = (license: string) =>
  /[ ()]/.test(license) ? [{ expression: license }] : [{ license: { id: license } }]

/** Where a package's own dependency is: in the nearest node_modules upwards, as Node looks for it. */
function resolved(packages: Lock['packages'], from: string, name: string): string | undefined {
  for (let at = from; ; ) {
    const place = `${at === '' ? '' : `${at}/`}${MODULES}${name}`
    if (packages[place]) return place
    if (at === '') return undefined
    const up = at.lastIndexOf(`/${MODULES}`)
    at = up === -1 ? '' : at.slice(0, up)
  }
}

/**
 * The bill of materials of everything that an installation of the package brings along, or has in the package's own files; no time and no
 * serial number, so it can be compared.
 */
export function bill({ name, version, packages }: Lock, bundled: readonly string[]) {
  const places = Object.keys(packages)
    .filter(place => place !== '' && !packages[place]!.dev && !packages[place]!.devOptional)
    .concat(bundled)
    .filter((place, index, all) => all.indexOf(place) === index)
    .sort()
  const refOf = (place: string) => purl(packages[place]!.name ?? nameAt(place), packages[place]!.version ?? '')
  const components = new Map<string, object>()
  const edges = new Map<string, Set<string>>()
  for (const place of places) {
    const locked = packages[place]!
    const { version: own = '', integrity, license } = locked
    const full = locked.name ?? nameAt(place)
    const [group, short] = full.startsWith('@') ? full.split('/') : [undefined, full]
    const ref = refOf(place)
    components.set(ref, {
      type: 'library',
      'bom-ref': ref,
      ...(group && { group }),
      name: short,
      version: own,
      scope: locked.optional ? 'optional' : 'required',
      ...(integrity && { hashes: hashesOf(integrity) }),
      ...(license && { licenses: licensesOf(license) }),
      purl: ref,
    })
  }
  const kept = new Set(places)
  const root = purl(name, version)
  for (const place of ['', ...places]) {
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = packages[place] ?? {}
    const inside = Object.keys(devDependencies ?? {}).filter(one => bundled.includes(MODULES + one))
    const more = place === '' ? inside : Object.keys(peerDependencies ?? {})
    const wanted = Object.keys({ ...dependencies, ...optionalDependencies }).concat(more)
    const from = place === '' ? root : refOf(place)
    const to = edges.get(from) ?? new Set<string>()
    edges.set(from, to)
    for (const one of wanted) {
      const found = resolved(packages, place, one)
      if (found !== undefined && kept.has(found)) to.add(refOf(found))
    }
  }
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { type: 'application', 'bom-ref': root, name, version, purl: root } },
    components: [...components.values()],
    dependencies: [...edges].map(([ref, to]) => ({ ref, dependsOn: [...to].sort() })),
  }
}

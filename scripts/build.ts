import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, globSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, normalize, relative } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { oneFileForTheSameUsers } from './build/chunks.ts'
import './generate.ts'

/**
 * `npm run build`: the published form under dist/. Declarations stand file by file; the JavaScript of modules that are
 * always loaded together stands in one file, since to find and compile several hundred takes a third of a second. What is no
 * dependency of the package goes in, with its licence, and so does zod: its index loads messages in fifty languages, which are
 * 15 MB in every process.
 */
const root = new URL('..', import.meta.url).pathname
rmSync(`${root}dist`, { recursive: true, force: true })
execFileSync(`${root}node_modules/.bin/tsc`, ['-p', 'scripts/tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
const { bin, exports, dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Record<
  string,
  Record<string, string>
>
const commands = Object.values(bin!)
const entries = [...commands, ...Object.values(exports!)].filter(path => path.endsWith('.js')).map(nameOf)
const inputs = [...new Set([...entries, ...programs()])]
const begins = [
  ...commands.map(nameOf),
  ...programs(),
  'shared/cli/program',
  'router/cli/commands',
  'runtime/cli/commands',
  'node-agent/cli/program',
]
const alone = new Set(begins.map(name => `${root}${name}.ts`))
const { plugin, groups } = oneFileForTheSameUsers(loadedAtStart(inputs), alone)
const bundle = await rolldown({
  input: Object.fromEntries(inputs.map(name => [name, `${root}${name}.ts`])),
  platform: 'node',
  preserveEntrySignatures: 'allow-extension',
  external: id => isBuiltin(id) || isInstalled(id),
  tsconfig: false,
  transform: { target: 'node22' },
  plugins: [keepsPlaces(), inAscii(), plugin],
  onLog(level, log, next) {
    if (level === 'warn') throw new Error(log.message)
    next(level, log)
  },
})
const { output } = await bundle.write({
  dir: `${root}dist`,
  entryFileNames: '[name].js',
  // The processes of wasm sandboxes may read their own folder and no other.
  chunkFileNames: ({ moduleIds }) => {
    const isOfWasm = moduleIds.length > 0 && moduleIds.every(id => id.includes('/node-agent/isolation/wasm/'))
    return `${isOfWasm ? 'node-agent/isolation/wasm' : 'shared/chunks'}/[name]-[hash].js`
  },
  codeSplitting: { groups },
  comments: { jsdoc: false, annotation: false },
})
await bundle.close()
// The guest's agent is compiled where the image is built.
for (const name of ['agent.c', 'clients/waybill.js', 'clients/waybill.py']) {
  mkdirSync(dirname(`${root}dist/node-agent/guest/${name}`), { recursive: true })
  copyFileSync(`${root}node-agent/guest/${name}`, `${root}dist/node-agent/guest/${name}`)
}
keepLicences(output.flatMap(file => (file.type === 'chunk' ? file.moduleIds : [])))
for (const path of commands) chmodSync(root + path, 0o755)

/** Whether an installation of the package brings it along. */
function isInstalled(id: string): boolean {
  const name = /^(?:@[^/]+\/)?[^./][^/]*/.exec(id)?.[0]
  return name !== undefined && name !== 'zod' && dependencies![name] !== undefined
}

/** The licence of each package that is in the bundle; the list of them that the bill of materials is made from must be the same. */
function keepLicences(modules: readonly string[]): void {
  const places = modules.flatMap(id => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? [])
  const found = new Map(
    [...new Set(places)].map(place => [place.slice(place.lastIndexOf('node_modules/') + 13), place]),
  )
  mkdirSync(`${root}dist/licenses`, { recursive: true })
  for (const [name, place] of found) {
    const text = globSync('{LICENSE,LICENCE,license}*', { cwd: place })[0]
    if (text === undefined) throw new Error(`${name} is in the bundle and has no licence file.`)
    copyFileSync(join(place, text), `${root}dist/licenses/${name.replace('/', '-')}.txt`)
  }
  const names = [...found.values()].map(place => relative(root, place)).sort()
  const bundled = JSON.parse(readFileSync(`${root}scripts/sbom/bundled.json`, 'utf8')) as string[]
  if (names.join() !== bundled.join()) throw new Error(`scripts/sbom/bundled.json should hold ${JSON.stringify(names)}`)
}

function nameOf(path: string): string {
  return normalize(path)
    .replace(/^dist\//, '')
    .replace(/\.js$/, '')
}

/** What each program of the package imports at its start; an export is one that imports itself. */
function loadedAtStart(inputs: readonly string[]): Record<string, string[]> {
  const more: Record<string, string[]> = {
    'router/cli/main': ['router/cli/commands', 'router/cli/serve', 'shared/host/until-signal', 'router/host/node'],
    'runtime/cli/main': ['runtime/cli/commands', 'runtime/cli/serve', 'runtime/host/services', 'runtime/host/node'],
    'router/host/receipt-thread/start': ['router/host/receipt-thread/worker'],
    'shared/host/write-thread': [],
  }
  const opensStore = ['shared/host/local-client']
  return Object.fromEntries(
    inputs.map(name => {
      const imported = more[name] === undefined ? [] : [...more[name], ...opensStore]
      return [name.replaceAll('/', '-'), [name, ...imported].map(path => `${root}${path}.ts`)]
    }),
  )
}

/** Programs that the package starts as processes or threads of their own, by their own files. */
function programs(): string[] {
  return globSync('{shared,router,runtime,node-agent}/**/*.ts', { cwd: root })
    .filter(path => !path.endsWith('.test.ts') && !path.includes('/testing/'))
    .flatMap(path => {
      const text = readFileSync(root + path, 'utf8')
      const started = [...text.matchAll(/new URL\('(\.[^']+)\.ts', import\.meta\.url\)/g)]
      const itself = text.includes('new URL(import.meta.url)') ? [path.replace(/\.ts$/, '')] : []
      return [...itself, ...started.map(([, to]) => join(dirname(path), to!))]
    })
}

/** What a module finds beside itself is found there, whatever file the module came to stand in. */
function keepsPlaces(): Plugin {
  const PLACE = 'place-in-dist:'
  return {
    name: 'keeps-places',
    transform(code, id) {
      if (!code.includes('import.meta.url')) return null
      const place = `new URL('${PLACE}${relative(root, id).replace(/\.ts$/, '.js')}', import.meta.url).href`
      return { code: code.replaceAll('import.meta.url', place), map: null }
    },
    renderChunk(code, { fileName }) {
      if (!code.includes(PLACE)) return null
      const up = relative(dirname(fileName), '.') || '.'
      return { code: code.replaceAll(PLACE, `${up}/`), map: null }
    },
  }
}

/**
 * The engine keeps the text of every file that it has loaded, with two bytes for each character where one of them needs it: a dash in a
 * sentence doubled the 900 kB of the runtime.
 */
function inAscii(): Plugin {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return {
    name: 'in-ascii',
    // The last hook: the text is printed anew after the others.
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle))
        if (file.type === 'chunk') file.code = file.code.replaceAll(/[\u0080-\uffff]/g, escaped)
    },
  }
}

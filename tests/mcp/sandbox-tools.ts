import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Names the libraries of a program. */
const LINKED = 'ldd'
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url))

/**
 * What an operator puts into NODE_AGENT_SANDBOX_TOOLS so that MCP servers of npm run in a container: this Node, the libraries that
 * it is linked with, and the packages with everything that they need. Made once for each version of Node and of the packages.
 */
export function sandboxTools(...packages: readonly string[]): string {
  const versions = packages.map(name => `${name.replaceAll(/\W+/g, '-')}-${manifestOf(join(MODULES, name)).version}`)
  const folder = join(tmpdir(), `waybill-sandbox-tools-${process.versions.node}-${versions.join('-')}`)
  if (existsSync(folder)) return folder
  const made = mkdtempSync(`${folder}.`)
  execFileSync('chmod', ['755', made])
  mkdirSync(join(made, 'bin'))
  const node = realpathSync(process.execPath)
  cpSync(node, join(made, 'bin/node'))
  const linked = execFileSync(LINKED, [node], { encoding: 'utf8' })
  for (const [, path] of linked.matchAll(/(\/\S+) \(0x/g)) {
    const to = join(made, path!.replace(/^\/usr/, ''))
    mkdirSync(dirname(to), { recursive: true })
    cpSync(realpathSync(path!), to)
  }
  for (const path of closure(packages.map(name => join(MODULES, name)))) {
    cpSync(path, join(made, 'node_modules', path.slice(MODULES.length + 1)), { recursive: true, dereference: true })
  }
  try {
    renameSync(made, folder)
  } catch (error) {
    // Another test was faster.
    rmSync(made, { recursive: true })
    if (!existsSync(folder)) throw error
  }
  return folder
}

interface Package {
  version: string
  dependencies?: Record<string, string>
}

const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Package

/** The folders of packages and of all that they depend on, each found as Node finds it. */
function closure(open: readonly string[]): Set<string> {
  const found = new Set<string>()
  const rest = [...open]
  for (let folder = rest.pop(); folder !== undefined; folder = rest.pop()) {
    if (found.has(folder)) continue
    found.add(folder)
    for (const name of Object.keys(manifestOf(folder).dependencies ?? {})) rest.push(resolved(name, folder))
  }
  return found
}

function resolved(name: string, from: string): string {
  for (let at = from; at.startsWith(MODULES); at = dirname(at)) {
    const here = join(at === MODULES ? at : join(at, 'node_modules'), name)
    if (existsSync(join(here, 'package.json'))) return here
  }
  throw new Error(`${name} is not installed, which ${from} needs`)
}

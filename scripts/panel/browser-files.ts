import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = new URL('../..', import.meta.url).pathname
const IMPORT = /(\bfrom\s+|\bimport\s*)'([^']+)'/g
/** What a page loads when it is needed; elsewhere a module that is loaded later is for hosts. */
const LATER = /(\bimport\()'(\.[^']+)'/g

const PACKAGES = '/node_modules/'
/** Packages that are modules for browsers as they are, without one of their own that they need. */
const FOR_BROWSERS = /^@noble\//

/** Of a module of a package, with the package in it. */
function servedName(path: string): string {
  const [, inPackage] = path.split(PACKAGES)
  return inPackage === undefined
    ? basename(path).replace(/\.ts$/, '.js')
    : inPackage.replace('@', '').replaceAll('/', '-')
}

/** What is for readers of the source is not sent to browsers, but for the notice of a licence. */
function withoutComments(source: string): string {
  return source
    .replace(/^[ \t]*\/\*(?!!)(?:(?!\*\/)[\s\S])*\*\/[ \t]*$/gm, '')
    .replace(/^[ \t]*\/\/.*$/gm, '')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n{2,}/g, '\n')
    .trimStart()
}

/** As this project writes imports. */
function withOwnQuotes(source: string): string {
  return source.replace(/^(import .* from |export .* from )"([^"]+)"/gm, "$1'$2'")
}

export interface BrowserPart {
  /** Modules that a page loads itself; what they import is found from there. */
  entries: readonly URL[]
  /** Served beside the modules as they stand. */
  assets: readonly string[]
}

/** Everything of this package that runs in browsers, by the module of texts that serves it. */
export const BROWSER_PARTS = {
  'router/panel/files.gen.ts': {
    name: 'panelFiles',
    entries: [new URL('../../router/panel/browser/panel.ts', import.meta.url)],
    assets: [
      'shared/browser/base.css',
      'shared/browser/shell.css',
      'router/panel/browser/panel.css',
      'router/panel/browser/icon.svg',
    ],
  },
  'runtime/dashboard/files.gen.ts': {
    name: 'dashboardFiles',
    entries: [
      new URL('../../runtime/dashboard/browser/shell/dashboard.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/start/setup.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/start/invite.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/overview/overview.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/run/run.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/runs/runs.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/approvals/approvals.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/agent/manifest.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/agent/forecast.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/schedules/schedule.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/chat/chat.ts', import.meta.url),
      new URL('../../runtime/dashboard/browser/connectors/own-connector.ts', import.meta.url),
    ],
    assets: [
      'shared/browser/base.css',
      'shared/browser/shell.css',
      ...['dashboard.css', 'figures.css', 'no-script.css', 'icon.svg'].map(
        name => `runtime/dashboard/browser/styles/${name}`,
      ),
    ],
  },
  'runtime/receipts/verifier.gen.ts': {
    name: 'verifierFiles',
    entries: [
      new URL('../../runtime/receipts/browser/verify-receipt.ts', import.meta.url),
      new URL('../../runtime/receipts/browser/verifier-form.ts', import.meta.url),
    ],
    assets: [],
  },
} as const satisfies Record<string, BrowserPart & { name: string }>

/**
 * The browser's half of a service by the names it is served under: every module that the entries reach, without its types. Hosts
 * without files serve them from a module of texts, and there is no bundler that could do otherwise than the source says.
 */
export function browserFiles({ entries, assets }: BrowserPart): Record<string, string> {
  const files = new Map<string, string>()
  const sources = new Map<string, string>()

  function add(path: string): string {
    const name = servedName(path)
    const known = sources.get(name)
    if (known === path) return name
    if (known !== undefined) throw new Error(`${path} and ${known} would be served under one name: rename one`)
    sources.set(name, path)
    const source = readFileSync(path, 'utf8')
    const plain = withoutComments(path.includes(PACKAGES) ? withOwnQuotes(source) : stripTypeScriptTypes(source))
    const served = (_: string, words: string, specifier: string) => {
      if (specifier.startsWith('.')) return `${words}'./${add(join(dirname(path), specifier))}'`
      if (FOR_BROWSERS.test(specifier)) return `${words}'./${add(fileURLToPath(import.meta.resolve(specifier)))}'`
      throw new Error(`${path} imports ${specifier}, which no browser can load`)
    }
    const text = (path.includes('/browser/') ? plain.replace(LATER, served) : plain).replace(IMPORT, served)
    files.set(name, text)
    return name
  }

  for (const { pathname } of entries) add(pathname)
  for (const asset of assets) files.set(basename(asset), withoutComments(readFileSync(join(root, asset), 'utf8')))
  return Object.fromEntries([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The module that holds them, as TypeScript. */
export function browserFilesModule({ name, ...part }: BrowserPart & { name: string }): string {
  const files = Object.entries(browserFiles(part)).map(
    ([file, text]) => `  ${JSON.stringify(file)}: ${quoted(text)},\n`,
  )
  return `// Written by \`npm run generate\` from browser/.
export const ${name}: Readonly<Record<string, string>> = {\n${files.join('')}}\n`
}

/** As a template, so that a change of one line is a change of one line here too. */
function quoted(text: string): string {
  return '`' + text.replace(/[\\`]|\$(?=\{)/g, '\\$&') + '`'
}

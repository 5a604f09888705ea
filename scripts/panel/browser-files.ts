import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, dirname, join } from 'node:path'

const ENTRY = new URL('../../router/panel/browser/panel.ts', import.meta.url).pathname
/** Served beside the modules as they stand. */
const ASSETS = ['panel.css', 'icon.svg']
const IMPORT = /(\bfrom\s*|\bimport\s*)'([^']+)'/g

/**
 * The browser's half of the panel by the names it is served under: every module that the entry reaches, without its types. Hosts
 * without files serve them from a module of texts, and there is no bundler that could do otherwise than the source says.
 */
export function browserFiles(): Record<string, string> {
  const files = new Map<string, string>()
  const sources = new Map<string, string>()

  function add(path: string): string {
    const name = basename(path).replace(/\.ts$/, '.js')
    const known = sources.get(name)
    if (known === path) return name
    if (known !== undefined) throw new Error(`${path} and ${known} would be served under one name: rename one`)
    sources.set(name, path)
    const plain = stripTypeScriptTypes(readFileSync(path, 'utf8')).replace(/[ \t]+$/gm, '')
    const text = plain.replace(IMPORT, (_, words: string, specifier: string) => {
      if (!specifier.startsWith('.')) throw new Error(`${path} imports ${specifier}, which no browser can load`)
      return `${words}'./${add(join(dirname(path), specifier))}'`
    })
    files.set(name, text.replace(/\n{3,}/g, '\n\n').trimStart())
    return name
  }

  add(ENTRY)
  for (const asset of ASSETS) files.set(asset, readFileSync(join(dirname(ENTRY), asset), 'utf8'))
  return Object.fromEntries([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The module that holds them, as TypeScript. */
export function browserFilesModule(): string {
  const files = Object.entries(browserFiles()).map(([name, text]) => `  ${JSON.stringify(name)}: ${quoted(text)},\n`)
  return `// Written by \`npx node scripts/panel.ts\` from browser/.
export const panelFiles: Readonly<Record<string, string>> = {\n${files.join('')}}\n`
}

/** As a template, so that a change of one line is a change of one line here too. */
function quoted(text: string): string {
  return '`' + text.replace(/[\\`]|\$(?=\{)/g, '\\$&') + '`'
}

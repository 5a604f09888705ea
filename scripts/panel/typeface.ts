import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = new URL('../../node_modules/@fontsource-variable/geist/', import.meta.url).pathname
const SUBSET = 'files/geist-latin-wght-normal.woff2'

/** The letters of every page by the names they are served under: the typeface in base64, and the licence that goes with each copy. */
export function typefaceFiles(): Record<string, string> {
  const { version } = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8')) as { version: string }
  return {
    [`geist-${version}.woff2`]: readFileSync(join(FOLDER, SUBSET)).toString('base64'),
    'geist-license.txt': readFileSync(join(FOLDER, 'LICENSE'), 'utf8'),
  }
}

/** The module that holds them, as TypeScript. */
export function typefaceModule(): string {
  const entries = Object.entries(typefaceFiles()).map(([name, text]) => `  '${name}': ${JSON.stringify(text)},\n`)
  return `// Written by \`npm run generate\` from @fontsource-variable/geist: the typeface Geist, SIL Open Font License 1.1.
export const typefaceFiles: Readonly<Record<string, string>> = {\n${entries.join('')}}\n`
}

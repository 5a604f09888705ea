import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { bill, type Lock } from './sbom/bill.ts'

/**
 * `npm run sbom [-- --out FILE]`: what an installation brings along and what the build puts into the bundle, as CycloneDX 1.5, from the lock file
 * and the list that the build checks; the same files give the same bytes.
 */
const { values } = parseArgs({ options: { out: { type: 'string', default: 'sbom.cdx.json' } } })
const read = async <T>(path: string) => JSON.parse(await readFile(new URL(path, import.meta.url), 'utf8')) as T
const made = bill(await read<Lock>('../package-lock.json'), await read<string[]>('./sbom/bundled.json'))
await writeFile(values.out, `${JSON.stringify(made, null, 2)}\n`)
process.stdout.write(`${made.components.length} packages in ${values.out}\n`)

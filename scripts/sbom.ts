import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { bill, type Lock } from './sbom/bill.ts'

/** `npm run sbom [-- --out FILE]`: the production dependencies as CycloneDX 1.5, from the lock file alone; the same lock gives the same bytes. */
const { values } = parseArgs({ options: { out: { type: 'string', default: 'sbom.cdx.json' } } })
const lock = JSON.parse(await readFile(new URL('../package-lock.json', import.meta.url), 'utf8')) as Lock
const made = bill(lock)
await writeFile(values.out, `${JSON.stringify(made, null, 2)}\n`)
process.stdout.write(`${made.components.length} packages in ${values.out}\n`)

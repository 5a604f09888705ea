// The process that unseals a machine into its jail. It stands in the machine's group, so the memory is charged to the machine.
import { readFileSync } from 'node:fs'
import { openFiles } from './sealed-files.ts'

const [folder, root] = process.argv.slice(2)
try {
  await openFiles(readFileSync(0), folder!, root!)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

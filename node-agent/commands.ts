import { runProgram } from '../shared/cli/program.ts'
import { nodeProgram } from './cli/program.ts'

process.exitCode = await runProgram(nodeProgram, process.argv.slice(2))

import { runProgram } from '../../shared/cli/program.ts'
import { runtimeProgram } from './program.ts'

process.exitCode = await runProgram(runtimeProgram, process.argv.slice(2))

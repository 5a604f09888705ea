import { runProgram } from '../../shared/cli/program.ts'
import { routerProgram } from './commands.ts'

process.exitCode = await runProgram(routerProgram, process.argv.slice(2))

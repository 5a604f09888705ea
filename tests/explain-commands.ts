import { nodeProgram } from '../node-agent/cli/program.ts'
import { routerProgram } from '../router/cli/commands.ts'
import { runtimeProgram } from '../runtime/cli/commands.ts'
import { runProgram } from '../shared/cli/program.ts'

/** A program that has commands of a program of the package explained, one after the other: a process for each takes minutes. */
const [name, ...commands] = process.argv.slice(2)
const program = [runtimeProgram, routerProgram, nodeProgram].find(one => one.name === name)!
for (const command of commands) {
  const code = await runProgram(program, [...command.split(' '), '--help'])
  process.stdout.write(`== ${command} ended with ${code}\n`)
}

#!/usr/bin/env node
import { endWithReader } from '../../shared/host/closed-output.ts'
import { refuseFewThreads } from '../../shared/host/few-threads.ts'
import { keepCompiled } from '../../shared/host/keep-compiled.ts'
import { shutInspector } from '../../shared/host/shut-inspector.ts'
import { refuseOldNode } from '../../shared/version.ts'

// Before anything else is loaded.
refuseOldNode(process)
refuseFewThreads()
shutInspector()
keepCompiled()
endWithReader({ isService: process.argv[2] === 'serve' })
const { runProgram } = await import('../../shared/cli/program.ts')
const { routerProgram } = await import('./commands.ts')
process.exitCode = await runProgram(routerProgram, process.argv.slice(2))

#!/usr/bin/env node
import { Builtins, Cli } from 'clipanion'
import { VERSION } from '../../shared/version.ts'
import { ServeCommand } from './serve.ts'

const cli = new Cli({ binaryLabel: 'Waybill router', binaryName: 'router', binaryVersion: VERSION })
for (const command of [Builtins.HelpCommand, Builtins.VersionCommand, ServeCommand]) cli.register(command)
process.exitCode = await cli.run(process.argv.slice(2))

#!/usr/bin/env node
import { Builtins, Cli } from 'clipanion'
import { VERSION } from '../../shared/version.ts'
import { KeysCreateCommand, KeysListCommand, KeysRevokeCommand, KeysRotateCommand } from './keys.ts'
import { SchedulesPreviewCommand } from './schedules.ts'
import { ServeCommand } from './serve.ts'
import { SessionsChatCommand } from './sessions-chat.ts'
import { VerifyCommand } from './verify.ts'

const cli = new Cli({ binaryLabel: 'Waybill runtime', binaryName: 'runtime', binaryVersion: VERSION })
for (const command of [
  Builtins.HelpCommand,
  Builtins.VersionCommand,
  ServeCommand,
  KeysCreateCommand,
  KeysListCommand,
  KeysRevokeCommand,
  KeysRotateCommand,
  SessionsChatCommand,
  VerifyCommand,
  SchedulesPreviewCommand,
]) {
  cli.register(command)
}
process.exitCode = await cli.run(process.argv.slice(2))

import { Transform } from 'node:stream'
import { Builtins, Cli } from 'clipanion'
import { CompletionCommand } from '../../shared/cli/completion-command.ts'
import { groupHelp, withoutPlaces } from '../../shared/cli/group-help.ts'
import { unknownCommand } from '../../shared/cli/unknown-command.ts'
import { VERSION } from '../../shared/version.ts'
import { AgentsApplyCommand, AgentsListCommand } from './agents.ts'
import { ApprovalsApproveCommand, ApprovalsListCommand, ApprovalsRejectCommand } from './approvals.ts'
import { ArchiveCommand, ArchiveVerifyCommand } from './archive.ts'
import { BackupCommand, CompactCommand, RestoreCommand } from './backup.ts'
import { DoctorCommand } from './doctor.ts'
import { ExportCommand } from './export.ts'
import {
  KeysCreateCommand,
  KeysListCommand,
  KeysRevokeCommand,
  KeysRotateCommand,
  KeysRotateMasterCommand,
} from './keys.ts'
import { RunCommand } from './run.ts'
import { RunsRequestCommand } from './runs.ts'
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
  KeysRotateMasterCommand,
  SessionsChatCommand,
  VerifyCommand,
  ArchiveCommand,
  ArchiveVerifyCommand,
  SchedulesPreviewCommand,
  DoctorCommand,
  AgentsApplyCommand,
  AgentsListCommand,
  RunCommand,
  RunsRequestCommand,
  ApprovalsListCommand,
  ApprovalsApproveCommand,
  ApprovalsRejectCommand,
  ExportCommand,
  BackupCommand,
  CompactCommand,
  RestoreCommand,
  CompletionCommand,
]) {
  cli.register(command)
}
const argv = process.argv.slice(2)
const help = groupHelp('runtime', argv, cli.definitions())
const unknown = unknownCommand('runtime', argv, cli.definitions())
if (help !== undefined) process.stdout.write(help)
else if (unknown !== undefined) {
  process.stderr.write(unknown)
  process.exitCode = 1
} else if (argv.some(one => one === '--help' || one === '-h')) {
  const stdout = new Transform({ transform: (chunk, _encoding, done) => done(null, withoutPlaces(String(chunk))) })
  stdout.pipe(process.stdout)
  process.exitCode = await cli.run(argv, { stdout })
} else process.exitCode = await cli.run(argv)

import type { Program } from '../../shared/cli/program.ts'
import { runtimeExits } from './exit-words.ts'

export const runtimeProgram: Program = {
  name: 'runtime',
  about: 'The waybill runtime: runs agents durably, within budgets, and signs a receipt for what they did.',
  exits: runtimeExits,
  groups: [
    ['Start', ['serve', 'init', 'login', 'run', 'sessions chat', 'open', 'doctor']],
    ['Agents', group('agents', 'list', 'apply', 'get', 'versions', 'diff', 'promote', 'delete')],
    ['Runs', group('runs', 'list', 'get', 'logs', 'request', 'cancel', 'retry', 'fork', 'delete')],
    ['Approvals', group('approvals', 'list', 'approve', 'reject')],
    ['Conversations', group('sessions', 'list', 'get', 'stop', 'delete')],
    ['Schedules', group('schedules', 'list', 'create', 'preview', 'fires', 'run', 'pause', 'resume', 'delete')],
    ['Money', ['usage', ...group('budgets', 'list', 'get', 'set', 'delete')]],
    ['Proof', ['verify', 'export', 'archive', 'archive verify']],
    [
      'Access to others',
      [
        ...group('providers', 'list', 'set', 'test', 'delete'),
        ...group('secrets', 'list', 'set', 'delete'),
        ...group('connectors', 'catalog', 'list', 'test', 'delete'),
        ...group('webhooks', 'list', 'create', 'test', 'deliveries', 'delete'),
      ],
    ],
    ['Nodes', group('nodes', 'list', 'create', 'drain', 'undrain', 'delete')],
    [
      'The store on this machine',
      [...group('keys', 'create', 'list', 'revoke', 'rotate', 'rotate-master'), 'backup', 'restore', 'compact'],
    ],
    ['Several databases', group('shards', 'add', 'list', 'move', 'close', 'open')],
    ['This program', ['contexts list', 'contexts use', 'logout', 'completion']],
  ],
  commands: {
    serve: async () => [(await import('./serve.ts')).ServeCommand],
    init: async () => [(await import('./init.ts')).InitCommand],
    login,
    logout: login,
    contexts: login,
    open: async () => [(await import('./open.ts')).OpenCommand],
    run: async () => [(await import('./run.ts')).RunCommand],
    sessions: async () => {
      const all = await import('./sessions.ts')
      const { SessionsChatCommand } = await import('./sessions-chat.ts')
      return [...Object.values(all), SessionsChatCommand]
    },
    agents: async () => Object.values(await import('./agents.ts')),
    runs: async () => Object.values(await import('./runs.ts')),
    approvals: async () => Object.values(await import('./approvals.ts')),
    schedules: async () => Object.values(await import('./schedules.ts')),
    usage: async () => [(await import('./budgets.ts')).UsageCommand],
    budgets: async () => Object.values(await import('./budgets.ts')),
    providers: async () => Object.values(await import('./secrets.ts')),
    secrets: async () => Object.values(await import('./secrets.ts')),
    connectors: async () => Object.values(await import('./connectors.ts')),
    webhooks: async () => Object.values(await import('./webhooks.ts')),
    nodes: async () => Object.values(await import('./nodes.ts')),
    keys: async () => Object.values(await import('./keys.ts')),
    shards: async () => Object.values(await import('./shards.ts')),
    verify: async () => [(await import('./verify.ts')).VerifyCommand],
    export: async () => [(await import('./export.ts')).ExportCommand],
    archive: async () => {
      const { ArchiveCommand, ArchiveVerifyCommand } = await import('./archive.ts')
      return [ArchiveCommand, ArchiveVerifyCommand]
    },
    backup: async () => [(await import('./backup.ts')).BackupCommand],
    restore: async () => [(await import('./backup.ts')).RestoreCommand],
    compact: async () => [(await import('./backup.ts')).CompactCommand],
    doctor: async () => [(await import('./doctor.ts')).DoctorCommand],
    completion: async () => [(await import('../../shared/cli/completion-command.ts')).CompletionCommand],
  },
}

function group(noun: string, ...verbs: string[]): string[] {
  return verbs.map(one => `${noun} ${one}`)
}

async function login() {
  return Object.values(await import('./login.ts'))
}

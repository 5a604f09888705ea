import { expect, it } from 'vitest'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { createLog } from '../../shared/log/log.ts'
import { VaultError } from '../vault/vault.ts'
import { type ReceiptServiceDeps, receiptService } from './service.ts'

function failing(error: Error) {
  const lines: string[] = []
  const deps: ReceiptServiceDeps = {
    store: {} as ReceiptServiceDeps['store'],
    signing: { current: () => Promise.reject(error) },
    keys: { list: async () => [] },
    versionOf: async () => undefined,
    runOf: async () => undefined,
    sha256: nativeSha256,
    now: () => new Date(),
    log: createLog({ filter: { all: 'info', byTarget: new Map() }, write: line => void lines.push(line) }),
    issued: { add: () => undefined },
  }
  return { service: receiptService(deps), lines }
}

const ended = {} as Parameters<ReturnType<typeof receiptService>['signRemoteRun']>[0]

it('says that there is no key where none opens', async () => {
  const { service, lines } = failing(new VaultError('other_key', 'sealed under another key'))
  await expect(service.published()).rejects.toThrow('this service signs no receipts')
  expect(lines.join()).toContain('the signing key does not open')
})

it('says what the store says where it has no room for a key, and lets a run end', async () => {
  const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  const { service, lines } = failing(full)
  await expect(service.published()).rejects.toBe(full)
  expect(await service.signRemoteRun(ended)).toBeUndefined()
  expect(lines.join()).toContain('the signing key could not be read or made')
})

import { ApiError } from '../../shared/http/api-error.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Counter } from '../../shared/metrics/metrics.ts'
import { RECEIPT, unknownMember } from '../../shared/proof/members.ts'
import { journalFault, walkFault } from '../../shared/proof/receipt-proof.ts'
import { toBase64, utf8 } from '../../shared/sign/bytes.ts'
import type { Signer } from '../../shared/sign/ed25519.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import type { ListedKey } from '../../shared/sign/keyring.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { CHAIN } from '../../shared/wire/runtime/journal.ts'
import {
  RECEIPT_ALGORITHM,
  type Receipt,
  type ReceiptKey,
  type ReceiptKeys,
  type ReceiptPayload,
  type VerifyReason,
  type VerifyRequest,
  type VerifyResult,
} from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { EndedRun } from '../execution/engine-deps.ts'
import type { Principal } from '../http/http-env.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { VaultError } from '../vault/vault.ts'
import { checkReceipt, checkRecord, checkRemoteRun } from './check-receipt.ts'
import { type HashedFacts, type Statement, statementFrom, statementOf } from './payload.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { ReceiptStore } from './store.ts'
import { hashWith } from './verify-offline.ts'

export interface ReceiptServiceDeps {
  store: ReceiptStore
  signing: Pick<SigningKeys, 'current'>
  keys: { list(): Promise<ListedKey[]> }
  versionOf: (versionId: string) => Promise<{ manifestHash: string } | undefined>
  runOf: (runId: string) => Promise<Pick<Run, 'tenantId' | 'status'> | undefined>
  /** A run that a node holds: what its receipt would say, or `unknown` while the head of its journal is. */
  remoteRun?: (runId: string) => Promise<HashedFacts | 'unknown' | undefined>
  sha256: Sha256
  now: () => Date
  log: Log
  issued: Pick<Counter, 'add'>
}

type Checks = VerifyResult['checks']

export type ReceiptService = ReturnType<typeof receiptService>

export function receiptService(deps: ReceiptServiceDeps) {
  const { store, keys, sha256, now, issued } = deps

  return {
    /** For the commit in which the end of a run on a node becomes known. */
    async signRemoteRun(facts: HashedFacts): Promise<string | undefined> {
      const key = await signerAtEnd(deps)
      if (!key) return undefined
      const receipt = await issue(statementFrom(facts), key, now())
      issued.add(1)
      return JSON.stringify(receipt)
    },

    /** For the commit that ends a run. */
    async sign({ run, output, models, ...ended }: EndedRun): Promise<string | undefined> {
      const key = await signerAtEnd(deps)
      if (!key) return undefined
      const version = await deps.versionOf(run.versionId)
      if (!version) throw new Error(`run ${run.id} is of a version that is gone: ${run.versionId}`)
      const statement = statementOf(
        {
          runId: run.id,
          tenantId: run.tenantId,
          agentName: run.agentName,
          agentVersionId: run.versionId,
          manifestHash: version.manifestHash,
          status: ended.status,
          head: ended.head,
          input: canonicalize(run.input),
          output,
          ...ended.spent,
          models,
          isolation: ended.isolation,
          nodeId: run.nodeId,
          createdMs: run.createdMs,
          finishedMs: ended.finishedMs,
        },
        sha256,
      )
      const receipt = await issue(statement, key, new Date(ended.finishedMs))
      issued.add(1)
      return JSON.stringify(receipt)
    },

    async get(principal: Principal, runId: string): Promise<Receipt> {
      const found = await store.find(runId)
      if (found) return own(principal, found, 'receipt', runId).receipt
      const run = own(principal, await deps.runOf(runId), 'run', runId)
      if (!isTerminal(run.status)) {
        throw new ApiError('run_not_terminal', `run ${runId} is ${run.status}: its receipt is made when it ends`)
      }
      return issueLate(deps, runId)
    },

    verify: (request: VerifyRequest, tenantId: string | undefined) => verify(deps, request, tenantId),

    /** The document with the keys; a service that has just started makes its first one now. */
    async published(): Promise<ReceiptKeys> {
      await signerOf(deps)
      const document = published(await keys.list())
      if (document) return document
      throw new ApiError(
        'not_found',
        'this service signs no receipts: it has no master key, or another one than its signing key was sealed under',
      )
    },
  }
}

/** Without a tenant, a receipt is checked against its key and the journal that came with it, and nothing that is stored. */
async function verify(
  deps: ReceiptServiceDeps,
  { receipt, journal }: VerifyRequest,
  tenantId: string | undefined,
): Promise<VerifyResult> {
  const checks: Checks = { signature: 'failed', journal: 'not_checked', record: 'not_checked' }
  if (unknownMember(receipt, RECEIPT) !== undefined)
    return {
      valid: false,
      reason: 'unknown_member',
      ...claimed(receipt.payload),
      checks: { ...checks, signature: 'not_checked' },
    }
  const signed = await checkReceipt(receipt, await deps.keys.list())
  if (!signed.ok) return { valid: false, reason: signed.reason, ...claimed(receipt.payload), checks }
  checks.signature = 'ok'
  const { payload } = signed
  const about = aboutOf(payload, tenantId)
  const failed = (reason: VerifyReason, brokenAt?: number): VerifyResult => ({
    valid: false,
    reason,
    ...about,
    checks,
    ...(brokenAt !== undefined && { brokenAt }),
  })
  if (journal) {
    const fault = await journalFault(journal, payload, { sha256: hashWith(deps.sha256) })
    checks.journal = fault ? 'failed' : 'ok'
    if (fault) return failed(fault.reason, fault.brokenAt)
  }
  const stored = payload.tenantId === tenantId ? await deps.store.stored(payload.runId) : undefined
  if (!stored) {
    const remote = payload.tenantId === tenantId ? await deps.remoteRun?.(payload.runId) : undefined
    if (remote === undefined || remote === 'unknown') return { valid: true, ...about, checks }
    const problem = checkRemoteRun(payload, statementFrom(remote))
    checks.record = problem === undefined ? 'ok' : 'failed'
    return problem === undefined ? { valid: true, ...about, checks } : failed(problem)
  }
  const fault = walkFault(stored.walk, payload)
  checks.journal = fault === undefined ? 'ok' : 'failed'
  if (fault !== undefined) return failed(fault.reason, fault.brokenAt)
  const problem = checkRecord(payload, statementOf(stored.facts, deps.sha256), stored.inputDropped)
  checks.record = problem === undefined ? 'ok' : 'failed'
  return problem === undefined ? { valid: true, ...about, checks } : failed(problem)
}

/** Undefined where there is no key that opens; rejects where the store does not answer, or has no room for a first one. */
async function signerOf(deps: ReceiptServiceDeps): Promise<Signer | undefined> {
  try {
    return await deps.signing.current()
  } catch (error) {
    if (!(error instanceof VaultError)) throw error
    deps.log.error('receipts cannot be signed: the signing key does not open', { error })
    return undefined
  }
}

/** What is wrong with a key must not keep a run from its end: its receipt is made later, when there is a key again. */
async function signerAtEnd(deps: ReceiptServiceDeps): Promise<Signer | undefined> {
  try {
    return await signerOf(deps)
  } catch (error) {
    deps.log.error('a receipt is not signed yet: the signing key could not be read or made', { error })
    return undefined
  }
}

/** A run may have ended where nothing could be signed; its receipt is made at the first request once there is a key. */
async function issueLate(deps: ReceiptServiceDeps, runId: string): Promise<Receipt> {
  const remote = await deps.remoteRun?.(runId)
  if (remote !== undefined) return issueForRemoteRun(deps, runId, remote)
  const found = await deps.store.stored(runId)
  if (!found) throw notFound('receipt', runId)
  if (!found.walk.ok) {
    throw new ApiError(
      'internal',
      `no receipt is made for run ${runId}: its journal breaks at event ${found.walk.brokenAt}`,
    )
  }
  const key = await signerOf(deps)
  if (!key) {
    throw new ApiError(
      'not_found',
      `run ${runId} has no receipt yet: this service has no master key, or another one than its signing key was sealed under`,
    )
  }
  await deps.store.add(found.facts.tenantId, await issue(statementOf(found.facts, deps.sha256), key, deps.now()))
  deps.issued.add(1)
  const kept = await deps.store.find(runId)
  if (!kept) throw notFound('receipt', runId)
  return kept.receipt
}

async function issueForRemoteRun(
  deps: ReceiptServiceDeps,
  runId: string,
  remote: HashedFacts | 'unknown',
): Promise<Receipt> {
  if (remote === 'unknown') {
    throw new ApiError(
      'node_offline',
      `the receipt of run ${runId} is made when its node has reported the end of the journal`,
    )
  }
  const key = await signerOf(deps)
  if (!key) throw notFound('receipt', runId)
  await deps.store.add(remote.tenantId, await issue(statementFrom(remote), key, deps.now()))
  deps.issued.add(1)
  const kept = await deps.store.find(runId)
  if (!kept) throw notFound('receipt', runId)
  return kept.receipt
}

function aboutOf({ runId, tenantId, issuedAt, keyId }: ReceiptPayload, caller: string | undefined) {
  return { runId, ...(tenantId === caller && { tenantId }), issuedAt, keyId }
}

/** What a receipt says of itself that is not proven. */
function claimed(payload: Record<string, unknown>): Pick<VerifyResult, 'runId' | 'keyId'> {
  const { runId, keyId } = payload
  return {
    ...(typeof runId === 'string' && { runId: runId.slice(0, 128) }),
    ...(typeof keyId === 'string' && { keyId: keyId.slice(0, 128) }),
  }
}

/**
 * The signed receipt. The public key goes with it, so that a verifier needs to have kept only a fingerprint; it is bound to
 * the payload by `keyId`, which is the beginning of its fingerprint.
 */
async function issue(statement: Statement, key: Signer, issuedAt: Date): Promise<Receipt> {
  const payload = { ...statement, issuedAt: issuedAt.toISOString(), keyId: key.keyId }
  const signature = await key.sign(utf8(canonicalize(payload)))
  return {
    payload,
    signature: toBase64(signature),
    algorithm: RECEIPT_ALGORITHM,
    publicKey: toBase64(key.publicKey),
  }
}

/** The document at `/.well-known/platform-receipts`; undefined before there is a key. */
function published(keys: readonly ListedKey[]): ReceiptKeys | undefined {
  const active = keys.find(({ status }) => status === 'active')
  if (!active) return undefined
  const { keyId, publicKey, keyFingerprint } = toReceiptKey(active)
  return {
    algorithm: RECEIPT_ALGORITHM,
    keyId,
    publicKey,
    keyFingerprint,
    chain: CHAIN,
    canonicalization: 'RFC8785',
    keys: keys.map(toReceiptKey),
    docs: '/openapi.json',
  }
}

function toReceiptKey({ keyId, fingerprint, publicKey, status, notBefore, notAfter }: ListedKey): ReceiptKey {
  return {
    keyId,
    publicKey: toBase64(publicKey),
    keyFingerprint: fingerprint,
    status,
    notBefore: notBefore.toISOString(),
    ...(notAfter && { notAfter: notAfter.toISOString() }),
  }
}

import { fromBase64, toBase64 } from '../../shared/sign/bytes.ts'
import type { CurveKeys } from '../../shared/sign/curve-keys.ts'
import type { Signer } from '../../shared/sign/ed25519.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import type { Sealing, VaultAad } from '../vault/vault.ts'
import type { ActiveKey, KeyStore } from './key-store.ts'

export interface SigningKeysDeps {
  keys: KeyStore
  sealing: Sealing
  signer: CurveKeys['signer']
  clock: Clock
  /** A seed that the operator keeps; it goes before any that is stored. */
  seed?: Uint8Array<ArrayBuffer> | undefined
}

/** How long a process may go on with the key it knows. */
const FRESH_MS = 10_000
/**
 * A key is valid this much longer than it is used, at both ends: a process that has not heard of the next one yet must not sign in
 * vain, nor one whose clock is a little behind, nor a run that ended the moment before the first key was made.
 */
const OVERLAP_MS = 60_000

export type SigningKeys = ReturnType<typeof signingKeys>

const aadOf = (keyId: string): VaultAad => ({ tenantId: 'platform', recordId: keyId, field: 'receiptSeed' })

export const RECEIPT_KEY_SEALED: SealedColumn = {
  table: 'receipt_keys',
  column: 'sealed_seed',
  key: ['key_id'],
  aadOf: ({ key_id }) => aadOf(String(key_id)),
}

/** The key of this moment. The seed is sealed under the master key; without one, and without a given seed, nothing is signed. */
export function signingKeys({ keys, sealing, signer, clock, seed }: SigningKeysDeps) {
  let held: { signer: Signer | undefined; sinceMs: number } | undefined
  let loading: Promise<Signer | undefined> | undefined

  /** The clock was ahead when the key was made: what is signed with it now has to verify as well. */
  async function inUse({ keyId, notBeforeMs }: ActiveKey): Promise<void> {
    const nowMs = clock.now().getTime()
    if (nowMs < notBeforeMs) await keys.validFrom(keyId, nowMs - OVERLAP_MS)
  }

  async function load(): Promise<Signer | undefined> {
    if (seed) return ofOperator(seed)
    const vault = await sealing()
    if (!vault) return undefined
    let active = await keys.active()
    if (!active) {
      await keys.begin(await newKey(), clock.now().getTime() - OVERLAP_MS)
      active = await keys.active()
    }
    if (active?.sealedSeed === undefined) return undefined
    await inUse(active)
    if (held?.signer?.keyId === active.keyId) return held.signer
    return signer(fromBase64(await vault.open(active.sealedSeed, aadOf(active.keyId))))
  }

  async function ofOperator(given: Uint8Array<ArrayBuffer>): Promise<Signer> {
    const mine = held?.signer ?? (await signer(given))
    const active = await keys.active()
    if (active?.keyId !== mine.keyId) {
      const nowMs = clock.now().getTime()
      await keys.rotate({ ...mine, sealedSeed: undefined }, nowMs - OVERLAP_MS, nowMs + OVERLAP_MS)
    } else await inUse(active)
    return mine
  }

  async function newKey() {
    const vault = await sealing()
    if (!vault) throw new Error('a signing key cannot be kept without a master key')
    const fresh = crypto.getRandomValues(new Uint8Array(32))
    const made = await signer(fresh)
    return { ...made, sealedSeed: await vault.seal(toBase64(fresh), aadOf(made.keyId)) }
  }

  return {
    /** Undefined where there is nothing to sign with. */
    async current(): Promise<Signer | undefined> {
      if (held && clock.monotonic() - held.sinceMs < FRESH_MS) return held.signer
      loading ??= load()
        .then(found => {
          held = { signer: found, sinceMs: clock.monotonic() }
          return found
        })
        .finally(() => {
          loading = undefined
        })
      return loading
    },

    async rotate(): Promise<string> {
      const made = await newKey()
      const nowMs = clock.now().getTime()
      await keys.rotate(made, nowMs - OVERLAP_MS, nowMs + OVERLAP_MS)
      held = undefined
      return made.keyId
    },
  }
}
